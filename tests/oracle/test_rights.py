"""The table of permissions, tested with RabbitMQ and with Warren: which operations are refused, and the
texts.
"""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests import rabbitmq, rights
from tests.warren_process import running_warren

# RabbitMQ 3.10 shows them to every user; 4.3 behaves as Warren does (decision 0021).
MEANT = {"queue.declare-passive-any.thing", "exchange.declare-passive-any.thing"}


@pytest.mark.rabbitmq
@pytest.mark.timeout(600)
def test_every_permission_is_required_where_rabbitmq_requires_it(tmp_path: Path) -> None:
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed: nothing to compare with")
    document = tmp_path / "definitions.json"
    document.write_text(json.dumps(rights.definitions()))
    with ExitStack() as stack:
        (tmp_path / "rabbitmq").mkdir()
        server = rabbitmq.RabbitMQ(tmp_path / "rabbitmq")
        stack.callback(server.stop)
        server.start()
        server.control("import_definitions", str(document))
        ours = stack.enter_context(running_warren(tmp_path, {"load_definitions": str(document)}))
        expected = rights.refusals(server.port)
        found = rights.refusals(ours.port)
    differing = {
        user: (expected[user], reported) for user, reported in found.items() if reported != expected[user]
    }
    assert {user: pair for user, pair in differing.items() if user not in MEANT} == {}
    assert set(differing) == MEANT
    for tried in rights.ALL:
        if tried.user not in MEANT:
            assert (expected[tried.user] == "") is tried.is_allowed, (tried.user, expected[tried.user])
