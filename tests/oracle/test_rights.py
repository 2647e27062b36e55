"""The table of rights, tried at RabbitMQ and at Warren: who is refused what, and in which words."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests import rabbitmq, rights
from tests.warren_process import running_warren

# RabbitMQ 3.10 shows them to everybody; 4.3 does as Warren does (decision 0021).
MEANT = {"queue.declare-passive-any.thing", "exchange.declare-passive-any.thing"}


@pytest.mark.rabbitmq
@pytest.mark.timeout(600)
def test_every_right_is_asked_for_where_rabbitmq_asks_for_it(tmp_path: Path) -> None:
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
    differing = {user: (expected[user], told) for user, told in found.items() if told != expected[user]}
    assert {user: pair for user, pair in differing.items() if user not in MEANT} == {}
    assert set(differing) == MEANT
    for tried in rights.ALL:
        if tried.user not in MEANT:
            assert (expected[tried.user] == "") is tried.is_allowed, (tried.user, expected[tried.user])
