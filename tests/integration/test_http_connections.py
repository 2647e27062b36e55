"""HTTP clients that send incomplete requests, read nothing, or open many connections do not affect others."""

import asyncio
import base64
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pika
import pytest
import uvloop
from aiohttp import web
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.echo import was_dropped
from tests.patience import patient

from warren.management.http_connections import HttpConnections, HttpPortSettings
from warren.management.http_protocol import HttpProtocol, HttpTimeouts

TIMEOUT_S = patient(30)
GUEST = b"authorization: Basic " + base64.b64encode(b"guest:guest") + b"\r\n"
HALF = b"GET /api/overview HTTP/1.1\r\nhost: x\r\n"
DESCRIPTORS = 256
SHORT = HttpTimeouts(headers_s=0.1, idle_s=0.3, stalled_s=0.3)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await work

    uvloop.run(limited())


@asynccontextmanager
async def port(connections_max: int = 10, timeouts: HttpTimeouts = SHORT) -> AsyncIterator[tuple[str, int]]:
    """A port that answers `/` shortly, and `/much` with more than a socket buffer holds."""

    async def short(request: web.Request) -> web.Response:
        return web.Response(text="here")

    async def much(request: web.Request) -> web.Response:
        return web.Response(body=bytes(20_000_000))

    app = web.Application()
    app.router.add_get("/", short)
    app.router.add_get("/much", much)
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()

    def made(timeouts: HttpTimeouts) -> HttpProtocol:
        assert runner.server is not None
        return HttpProtocol(runner.server, asyncio.get_running_loop(), timeouts)

    settings = HttpPortSettings(connections_max=connections_max, tls=None, timeouts=timeouts)
    connections = HttpConnections(settings, made)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    connections.listen(listening)
    try:
        yield listening.getsockname()[:2]
    finally:
        await connections.stop()
        await runner.cleanup()
        connections.close()


async def ask(where: tuple[str, int]) -> bytes:
    """The status line of a short answer."""
    reader, writer = await asyncio.open_connection(*where)
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    line = await reader.readline()
    writer.close()
    return line


@pytest.mark.parametrize("data", [b"", b"G", HALF, b"\r\n\r\n", b"GET / HTTP/1.1\r\nx: "])
def test_an_incomplete_request_times_out(data: bytes) -> None:
    async def work() -> None:
        async with port() as where:
            reader, writer = await asyncio.open_connection(*where)
            writer.write(data)
            answer = await reader.read()
            assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
            writer.close()

    run(work())


def test_headers_sent_slowly_time_out() -> None:
    async def work() -> None:
        async with port() as where:
            reader, writer = await asyncio.open_connection(*where)
            writer.write(HALF)
            ended = asyncio.ensure_future(reader.read())
            while not ended.done():
                writer.write(b"a: b\r\n")
                await asyncio.wait({ended}, timeout=0.02)
            writer.close()

    run(work())


def test_endless_headers_are_refused_before_they_take_memory() -> None:
    async def work() -> None:
        async with port(timeouts=HttpTimeouts()) as where:
            reader, writer = await asyncio.open_connection(*where)
            writer.write(HALF)
            for at in range(99):
                writer.write(b"h%d: %b\r\n" % (at, b"v" * 20_000))
            answer = await reader.read(1000)
            assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
            writer.close()

    run(work())


def test_an_idle_connection_is_closed() -> None:
    async def work() -> None:
        async with port() as where:
            reader, writer = await asyncio.open_connection(*where)
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await reader.readuntil(b"here")).startswith(b"HTTP/1.1 200 ")
            assert await reader.read() == b""
            writer.close()

    run(work())


@pytest.mark.parametrize("more", [b"", b"connection: close\r\n"])
def test_an_answer_that_is_not_read_times_out(more: bytes) -> None:
    async def work() -> None:
        async with port(connections_max=1) as where:
            connected = socket.create_connection(where)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connected.sendall(b"GET /much HTTP/1.1\r\nhost: x\r\n" + more + b"\r\n")
            # Its slot is free when the connection is dropped, not before: it is still being answered.
            while True:
                try:
                    if (await ask(where)).startswith(b"HTTP/1.1 200 "):
                        break
                except ConnectionError:
                    pass
                await asyncio.sleep(0.02)
            connected.close()

    run(work())


def test_a_full_port_drops_idle_connections_for_new_ones() -> None:
    async def work() -> None:
        async with port(connections_max=4, timeouts=HttpTimeouts()) as where:
            waiting = []
            for _ in range(20):
                reader, writer = await asyncio.open_connection(*where)
                writer.write(HALF)
                waiting.append((reader, writer))
            assert await ask(where) == b"HTTP/1.1 200 OK\r\n"
            # The connection that was idle for longest was closed first.
            assert await was_dropped(waiting[0][0])
            for _, writer in waiting:
                writer.close()

    run(work())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("data")
    with broker("--data-dir", str(folder), descriptors=DESCRIPTORS) as node:
        yield node


@pytest.mark.parametrize("protocol", ["http", "http/prometheus", "amqp", "stream"])
def test_many_incomplete_requests_leave_descriptors_to_the_store_and_other_clients(
    small: BrokerProcess, protocol: str
) -> None:
    with ExitStack() as stack:
        for _ in range(DESCRIPTORS + 50):
            try:
                connected = socket.create_connection(("127.0.0.1", small.ports[protocol]), timeout=TIMEOUT_S)
            except ConnectionError:
                continue
            stack.enter_context(connected)
            with suppress(ConnectionError):
                connected.sendall(HALF if protocol.startswith("http") else b"AMQP")
        client = HttpClient(small)
        name = "files-" + protocol.replace("/", "-")
        assert client.status(f"PUT /vhosts/{name}", {}) == 201
        assert client.status(f"PUT /queues/{name}/q", {"durable": True}) == 201
        message = {
            "properties": {"delivery_mode": 2},
            "routing_key": "q",
            "payload": "x",
            "payload_encoding": "string",
        }
        assert client.ask(f"POST /exchanges/{name}/amq.default/publish", message).value == {"routed": True}
        assert client.get(f"/vhosts/{name}")["cluster_state"] != {}
        assert client.status("GET /health/checks/virtual-hosts") == 200
        if protocol.startswith("http"):
            parameters = pika.ConnectionParameters("127.0.0.1", small.port, name)
            pika.BlockingConnection(parameters).close()
        client.close()


BOMB = gzip.compress(bytes(50_000_000))


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "x-gzip", "gzip, gzip", "GZIP", "foo"])
def test_a_compressed_body_is_refused_after_authentication(
    client: HttpClient, node: BrokerProcess, encoding: str
) -> None:
    body = zlib.compress(bytes(50_000_000)) if encoding == "deflate" else BOMB
    headers = {"content-encoding": encoding, "content-type": "application/json"}
    stranger = HttpClient(node, "guest:wrong")
    assert stranger.ask("POST /definitions", body, headers).status == 401
    stranger.close()
    answer = client.ask("POST /definitions", body, headers)
    assert (answer.status, answer.value["error"]) == (415, "unsupported_media_type")
    assert client.ask("PUT /queues/%2F/plain", b"{}", {"content-encoding": "identity"}).status in (201, 204)


def test_an_unauthenticated_client_cannot_send_a_large_body(client: HttpClient, node: BrokerProcess) -> None:
    stranger = HttpClient(node, None)
    assert stranger.status("POST /login", b"username=x&password=" + b"y" * 100_000) == 400
    stranger.close()


def test_a_malformed_request_puts_no_secret_into_the_log(tmp_path: Path) -> None:
    with broker() as node:
        for start in (b"GET /api/overview HTTP/1.1\r\n", b"\x16\x03\x01", b"GET /" + b"secret" * 5000):
            with socket.create_connection(("127.0.0.1", node.ports["http"]), timeout=TIMEOUT_S) as connected:
                try:
                    connected.sendall(start + b"Authorization: Basic " + b"secret" * 8000 + b"\r\n\r\n")
                    assert connected.recv(65_536).startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
                except ConnectionError:
                    pass
        node.stop()
        log = "".join(node.lines)
        assert "secret" not in log
        assert "Traceback" not in log


@pytest.mark.parametrize("line", [b"GET /api/overview", b"GET /none", b"PATCH /api/queues", b"GARBAGE"])
def test_answers_do_not_reveal_software_versions(node: BrokerProcess, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", node.ports["http"]), timeout=TIMEOUT_S) as connected:
        connected.sendall(line + b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        answer = b""
        while piece := connected.recv(65_536):
            answer += piece
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert b"\r\nserver: warren" in head
    assert b"aiohttp" not in head
    assert b"python" not in head


@pytest.mark.parametrize(
    "half",
    [
        b"PUT /api/queues/%2F/q HTTP/1.1\r\nhost: x\r\n" + GUEST + b"content-length: 100\r\n\r\n{",
        b"PUT /api/queues/%2F/q HTTP/1.1\r\nhost: x\r\n" + GUEST + b"transfer-encoding: chunked\r\n\r\n1;a=",
        b"POST /api/warren/staged/%2F/amq.direct?query=q&batch=0&partition=0 HTTP/1.1\r\nhost: x\r\n"
        + GUEST
        + b"content-type: application/vnd.apache.arrow.stream\r\ncontent-length: 100\r\n\r\nARROW",
    ],
)
def test_a_client_that_disconnects_during_its_body_writes_nothing_to_the_log(half: bytes) -> None:
    with broker() as node:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", node.ports["http"])) as client:
                client.sendall(half)
                # So that the body is being read when the client disconnects.
                assert HttpClient(node).status("GET /overview") == 200
        assert HttpClient(node).status("GET /overview") == 200
        assert node.stop() == 0
        assert not [line for line in node.lines if "exception" in line or "Traceback" in line]
