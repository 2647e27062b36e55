"""The table of permissions, tested with RabbitMQ and with Warren: which operations are refused, and the
texts.
"""

import json
import re
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests import rabbitmq, rights
from tests.integration.api import quoted
from tests.integration.federation import managed_rabbitmq
from tests.warren_process import running_warren

# RabbitMQ 3.10 shows them to every user; 4.3 behaves as Warren does (decision 0021).
SHOWN_TO_ALL = {"queue.declare-passive-any.thing", "exchange.declare-passive-any.thing"}

# RabbitMQ 4 says which permission is missing: `read access to queue` where 3.10 says `access to queue`.
NAMED_PERMISSION = re.compile(r"\b(?:configure|read|write) (?=access to )")


def without_topics(document: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    return {key: entries for key, entries in document.items() if key != "topic_permissions"}


@pytest.mark.rabbitmq
@pytest.mark.timeout(600)
def test_every_permission_is_required_where_rabbitmq_requires_it(tmp_path: Path) -> None:
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed: nothing to compare with")
    definitions = rights.definitions()
    document, theirs = tmp_path / "definitions.json", tmp_path / "theirs.json"
    document.write_text(json.dumps(definitions))
    with ExitStack() as stack:
        (tmp_path / "rabbitmq").mkdir()
        server, client = stack.enter_context(managed_rabbitmq(tmp_path / "rabbitmq"))
        is_rabbitmq_4 = server.version() >= (4,)
        theirs.write_text(json.dumps(without_topics(definitions) if is_rabbitmq_4 else definitions))
        server.control("import_definitions", str(theirs))
        ours = stack.enter_context(running_warren(tmp_path, {"load_definitions": str(document)}))

        def permit_topics(case: rights.Case) -> None:
            """Set the topic permissions of `case`, which RabbitMQ 4 deletes with their exchanges."""
            for entry in definitions["topic_permissions"] if is_rabbitmq_4 else ():
                if any(entry["exchange"] == case.of(exchange) for exchange in case.topics):
                    path = f"/topic-permissions/{rights.VHOST}/{quoted(str(entry['user']))}"
                    assert client.status(f"PUT {path}", entry) in (201, 204)

        expected = rights.refusals(server.port, prepared=permit_topics)
        found = rights.refusals(ours.port)
    if is_rabbitmq_4:
        expected = {user: NAMED_PERMISSION.sub("", text) for user, text in expected.items()}
    meant = set() if is_rabbitmq_4 else SHOWN_TO_ALL
    differing = {
        user: (expected[user], reported) for user, reported in found.items() if reported != expected[user]
    }
    assert {user: pair for user, pair in differing.items() if user not in meant} == {}
    assert set(differing) == meant
    for tried in rights.ALL:
        if tried.user not in meant:
            assert (expected[tried.user] == "") is tried.is_allowed, (tried.user, expected[tried.user])
