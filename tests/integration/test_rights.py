"""The table of permissions, tested over AMQP and HTTP: each operation requires these and no others."""

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests import rights
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.rights import Attempt, Case

OVER_HTTP = [case for case in rights.CASES if case.http]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    document = tmp_path_factory.mktemp("rights") / "definitions.json"
    document.write_text(json.dumps(rights.definitions()))
    with broker(WARREN_LOAD_DEFINITIONS=str(document)) as started:
        yield started


@pytest.mark.parametrize("case", rights.CASES, ids=lambda case: case.name)
def test_an_operation_on_a_channel_requires_exactly_its_permissions(node: BrokerProcess, case: Case) -> None:
    reported = rights.refusals(node.port, (case,))
    for tried in rights.tries(case):
        if tried.is_allowed:
            assert reported[tried.user] == ""
        else:
            assert reported[tried.user].startswith("403 ACCESS_REFUSED - access to "), reported


@pytest.mark.parametrize("case", OVER_HTTP, ids=lambda case: case.name)
def test_an_operation_over_http_requires_exactly_its_permissions(node: BrokerProcess, case: Case) -> None:
    with closing(rights.connected(node.port, rights.ADMINISTRATOR)) as administrator:
        for tried in rights.tries(case):
            rights.prepare(administrator, case)
            status = asked(node, tried)
            # What a channel refuses of a message is 400, as in RabbitMQ, and of anything else 401.
            refused = 400 if case.name == "basic.publish" else 401
            assert (status < 300) if tried.is_allowed else (status == refused), (tried.user, status)


def asked(node: BrokerProcess, tried: Attempt) -> int:
    """The response to the request of the case, as its user."""
    assert tried.case.http is not None
    method, path, body = tried.case.http
    names = {name: tried.case.of(name) for name in ("q", "x", "dlx")}
    for name, called in names.items():
        path = path.replace("{" + name + "}", called)
        body = json.loads(json.dumps(body).replace("{" + name + "}", called))
    with closing(HttpClient(node, f"{tried.user}:{rights.PASSWORD}")) as client:
        return client.status(f"{method} {path}", body)
