"""RabbitMQ with its plugins gives the errors in the table of cases, from which unit tests take them."""

from __future__ import annotations

import base64
import html
import http.client
import json
from collections.abc import Iterator

import pytest
from tests import rabbitmq
from tests.oracle.parameter_cases import POLICIES, SETS, SHOVELS, UPSTREAMS, Cases, shovel
from tests.oracle.parameter_differences import (
    LATER_SHOVELS,
    LATER_UPSTREAMS,
    POLICIES_OF_RABBITMQ_4,
    SHOVELS_OF_RABBITMQ_4,
    UPSTREAMS_OF_RABBITMQ_4,
    answered,
)
from tests.warren_process import free_port

PLUGINS = ("rabbitmq_management", "rabbitmq_shovel_management", "rabbitmq_federation_management")
AUTHORIZATION = "Basic " + base64.b64encode(b"guest:guest").decode()
FAILED = "Validation failed\n\n"


class Management:
    """The HTTP API of a RabbitMQ."""

    def __init__(self, port: int, *, is_rabbitmq_4: bool) -> None:
        self._port = port
        self.is_rabbitmq_4 = is_rabbitmq_4

    def put(self, path: str, body: object) -> tuple[str, ...]:
        """Set an object and delete it again; returns the errors if it is refused."""
        status, answer = self._ask("PUT", path, json.dumps(body))
        if status in (201, 204):
            self._ask("DELETE", path, None)
            return ()
        assert status == 400, (status, answer)
        reason = html.unescape(json.loads(answer)["reason"])
        assert reason.startswith(FAILED)
        return tuple(reason.removeprefix(FAILED).rstrip("\n").split("\n"))

    def _ask(self, method: str, path: str, body: str | None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request(method, path, body, {"authorization": AUTHORIZATION})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Management]:
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    port = free_port()
    settings = f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {port}\n"
    server = rabbitmq.RabbitMQ(
        tmp_path_factory.mktemp("rabbitmq"), listen="127.0.0.1", settings=settings, plugins=PLUGINS
    )
    try:
        server.start()
        yield Management(port, is_rabbitmq_4=server.version() >= (4,))
    finally:
        server.stop()
        server.remove()


def differences(management: Management, component: str, cases: Cases) -> list[object]:
    return [
        (value, expected, found)
        for value, expected in cases
        if (found := management.put(f"/api/parameters/{component}/%2f/n", {"value": value})) != expected
    ]


@pytest.mark.rabbitmq
@pytest.mark.timeout(300)
def test_rabbitmq_gives_the_errors_of_the_table(management: Management) -> None:
    shovels, upstreams, policies = SHOVELS, UPSTREAMS, POLICIES
    if management.is_rabbitmq_4:
        shovels = [*answered(SHOVELS, SHOVELS_OF_RABBITMQ_4), *LATER_SHOVELS]
        upstreams = [*answered(UPSTREAMS, UPSTREAMS_OF_RABBITMQ_4), *LATER_UPSTREAMS]
        policies = answered(POLICIES, POLICIES_OF_RABBITMQ_4)
    cases: Cases = [(shovel(changes), expected) for changes, expected in shovels]
    assert differences(management, "shovel", cases) == []
    assert differences(management, "federation-upstream", upstreams) == []
    assert differences(management, "federation-upstream-set", SETS) == []
    for definition, expected in policies:
        body = {"pattern": "^nothing$", "definition": definition}
        assert (definition, management.put("/api/policies/%2f/n", body)) == (definition, expected)
