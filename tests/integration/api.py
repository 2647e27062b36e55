"""An HTTP client for the management API of a started broker."""

import base64
import http.client
import json
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from tests.integration.broker_process import BrokerProcess
from tests.patience import patient

TIMEOUT_S = patient(30)
# A broker closes a connection that was idle for longer: RabbitMQ 4.3.6 after 5 s.
IDLE_S_MAX = 2


@dataclass(frozen=True)
class Answer:
    """An HTTP response; `value` is its parsed JSON, None if there is none."""

    status: int
    value: Any
    headers: Mapping[str, str]

    @property
    def reason(self) -> object:
        """The reason of a refusal."""
        return self.value["reason"]


class ManagedBroker(Protocol):
    """A broker whose management API listens on `ports["http"]`."""

    ports: dict[str, int]


class HttpClient:
    """An HTTP client for one user of one broker, with one persistent connection."""

    def __init__(self, node: ManagedBroker, user: str | None = "guest:guest") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=TIMEOUT_S)
        self.origin = f"http://127.0.0.1:{node.ports['http']}"
        self._used_at = time.monotonic()
        self._headers = {}
        if user is not None:
            self._headers["authorization"] = "Basic " + base64.b64encode(user.encode()).decode()

    def ask(self, line: str, body: object = None, headers: Mapping[str, str] = {}) -> Answer:
        """The response to `line`, a method and the path after `/api`; a body of bytes is sent as it is."""
        method, path = line.split(" ", 1)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if time.monotonic() - self._used_at > IDLE_S_MAX:
            # The next request opens it again.
            self._connection.close()
        self._used_at = time.monotonic()
        self._connection.request(method, "/api" + path, data, {**self._headers, **headers})
        response = self._connection.getresponse()
        content = response.read()
        is_json = response.headers.get_content_type() == "application/json" and content
        return Answer(response.status, json.loads(content) if is_json else None, dict(response.headers))

    def get(self, path: str) -> Any:
        """The value at `path`, which must exist."""
        answer = self.ask(f"GET {path}")
        assert answer.status == 200, answer
        return answer.value

    def status(self, line: str, body: object = None) -> int:
        """The status alone."""
        return self.ask(line, body).status

    def refusal(self, line: str, body: object = None) -> tuple[int, object]:
        """The status and the reason of a refusal."""
        answer = self.ask(line, body)
        return answer.status, answer.reason

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def quoted(name: str) -> str:
    """`name` encoded as one segment of a path."""
    return quote(name, safe="")


def get(node: BrokerProcess, path: str, protocol: str = "http") -> tuple[int, bytes]:
    """Status and body of a GET as guest."""
    with closing(
        http.client.HTTPConnection("127.0.0.1", node.ports[protocol], timeout=TIMEOUT_S)
    ) as connection:
        authorization = "Basic " + base64.b64encode(b"guest:guest").decode()
        connection.request("GET", path, headers={"authorization": authorization})
        response = connection.getresponse()
        return response.status, response.read()


def states(node: BrokerProcess) -> list[str]:
    """The states of all connections."""
    return [connection["state"] for connection in json.loads(get(node, "/api/connections")[1])]


def get_page(node: BrokerProcess, path: str) -> tuple[int, Mapping[str, str], bytes]:
    """An unauthenticated GET of `path`, which is not below `/api`: status, lower-case headers, and body."""
    with closing(
        http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=TIMEOUT_S)
    ) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, {name.lower(): text for name, text in response.getheaders()}, response.read()
