"""Event streams: which answers can be followed, and streams that are not read."""

import base64
import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.patience import patient

from warren.limits_http import LIVE_USER_STREAMS_MAX

TIMEOUT_S = patient(60)
GUEST = "authorization: Basic " + base64.b64encode(b"guest:guest").decode()
STREAMS = 150
# The memory bound of all streams, in one process with everything that makes their answers.
MEMORY_MAX = 80_000_000


@pytest.mark.parametrize(
    "path",
    [
        "/api/warren/live",
        "/api/warren/live/",
        "/api/warren%2Flive?path=/api/overview",
        "/api/warren/%6Cive?path=/api/overview",
        "/api/warren/liv%65?path=/api/overview",
        "/api/%77arren/live/?path=/api/overview",
        "/api/./warren/live?path=/api/overview",
        "/api/x/../warren/live?path=/api/overview",
        "/api//warren/live",
        "/api/warren/queues/%2F/q/rows",
        "/api/warren/queues/%2F/q/row%73",
        "/api/warren/streams/%2F/q/rows",
        "/api/none",
        "/api/definitions#x",
        "/api/login",
        "/api/../metrics",
        "/metrics",
        "//x/api/overview",
        "http://x/api/overview",
        "/api/overview\r\nx: y",
    ],
)
def test_only_a_get_that_answers_json_can_be_followed(client: HttpClient, path: str) -> None:
    client.ask("PUT /queues/%2F/q", {})
    escaped = path.replace("%", "%25").replace("&", "%26").replace("#", "%23").replace("?", "%3F")
    escaped = escaped.replace("\r\n", "%0D%0A").replace(" ", "%20")
    answer = client.ask(f"GET /warren/live?path=/api/overview&path={escaped}")
    assert (answer.status, answer.value["error"]) == (400, "bad_request")


def test_a_name_with_a_slash_can_be_followed(node: BrokerProcess) -> None:
    with follow(node, "path=/api/exchanges/%252F/amq.topic") as connected, connected.makefile("rb") as lines:
        event = next(line for line in lines if line.startswith(b"data: "))
        assert json.loads(event.removeprefix(b"data: "))["body"]["name"] == "amq.topic"


def peak(node: BrokerProcess) -> int:
    """The peak memory of the process, in bytes."""
    lines = Path(f"/proc/{node.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def follow(node: BrokerProcess, query: str) -> socket.socket:
    """An event stream that is not read after its first line."""
    connected = socket.socket()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connected.settimeout(TIMEOUT_S)
    connected.connect(("127.0.0.1", node.ports["http"]))
    connected.sendall(f"GET /api/warren/live?{query} HTTP/1.1\r\nhost: x\r\n{GUEST}\r\n\r\n".encode())
    return connected


def test_unread_streams_take_bounded_memory_and_are_closed() -> None:
    with broker() as node, ExitStack() as stack:
        client = HttpClient(node)
        assert client.status("PUT /global-parameters/large", {"value": "x" * 900_000}) == 201
        before = peak(node)
        # Each follows another answer, of which its socket takes a part.
        for at in range(STREAMS):
            connected = stack.enter_context(follow(node, f"path=/api/global-parameters%3Fn={at}"))
            assert connected.recv(12) == b"HTTP/1.1 200"
        # All were requested before this one is answered.
        assert client.get(f"/global-parameters?n={STREAMS}")
        # One more is closed as soon as it would have to wait.
        with follow(node, "path=/api/global-parameters%3Fn=last") as last:
            while last.recv(65_536):
                pass
        assert peak(node) - before < MEMORY_MAX
        client.close()


def test_the_number_of_streams_of_a_user_is_bounded(node: BrokerProcess) -> None:
    with ExitStack() as stack:
        for at in range(LIVE_USER_STREAMS_MAX + 1):
            connected = stack.enter_context(follow(node, "path=/api/whoami"))
            answered = b"HTTP/1.1 200" if at < LIVE_USER_STREAMS_MAX else b"HTTP/1.1 503"
            assert connected.recv(12) == answered
