"""Plain sockets: input, output, closing, and limits."""

import asyncio
import contextlib
import resource
import socket
import struct
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop
from msgspec.structs import replace
from tests.integration.echo import EchoServer, serving, was_dropped
from tests.patience import patient

from warren.transport.listener import ConnectionSlots

TIMEOUT_S = patient(20)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await work

    uvloop.run(limited())


def test_answers_are_returned_in_order() -> None:
    async def work() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            lines = [b"hello\n", *(b"%d\n" % at for at in range(5000))]
            writer.writelines(lines)
            assert await reader.readexactly(len(b"".join(lines))) == b"".join(lines)
            writer.close()
            await server.clients[0].gone.wait()
            assert server.clients[0].lost_count == 1
            assert server.listener.connection_count == 0

    run(work())


def test_final_output_arrives_although_unread_input_remains() -> None:
    async def work() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"hello\nquit\n" + b"x" * 1_000_000)
            assert await reader.read() == b"hello\nquit\n"
            writer.close()
            await server.clients[0].gone.wait()

    run(work())


def test_a_client_that_half_closes_receives_pending_output() -> None:
    async def work() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"hello\nlast\n")
            writer.write_eof()
            assert await reader.read() == b"hello\nlast\n"
            await server.clients[0].gone.wait()

    run(work())


def test_a_reset_closes_one_connection() -> None:
    async def work() -> None:
        async with serving() as server:
            connected = socket.create_connection((server.host, server.port))
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            _, writer = await asyncio.open_connection(sock=connected)
            writer.write(b"hello\n")
            while not (server.clients and server.clients[0].received):
                await asyncio.sleep(0)
            writer.transport.abort()
            await server.clients[0].gone.wait()
            assert server.listener.connection_count == 0

    run(work())


def test_an_exception_in_a_connection_closes_only_that_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with serving() as server:
            other_reader, other = await asyncio.open_connection(server.host, server.port)
            other.write(b"hello\n")
            assert await other_reader.readline() == b"hello\n"
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"crash\n")
            assert await was_dropped(reader)
            await server.clients[1].gone.wait()
            other.write(b"still here\n")
            assert await other_reader.readline() == b"still here\n"
            other.close()

    run(work())
    assert "unexpected exception in connection 127.0.0.1:" in caplog.text


def test_a_silent_client_is_dropped_at_its_deadline() -> None:
    async def work() -> None:
        async with serving(handshake_ms=200) as server:
            loop = asyncio.get_running_loop()
            start = loop.time()
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"hel")
            assert await reader.read() == b""
            assert loop.time() - start + 0.01 >= 0.2
            writer.close()
            await server.clients[0].gone.wait()

    run(work())


def test_a_client_that_does_not_disconnect_is_dropped_after_the_linger_time() -> None:
    async def work() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"hello\nquit\n")
            assert await reader.read() == b"hello\nquit\n"
            # The client's side stays open; the broker does not wait longer.
            await server.clients[0].gone.wait()
            assert server.listener.connection_count == 0
            writer.close()

    run(work())


def test_output_to_a_slow_reader_is_paused_and_resumed() -> None:
    async def work() -> None:
        async with serving() as server:
            connected = socket.socket()
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connected.connect((server.host, server.port))
            reader, writer = await asyncio.open_connection(sock=connected, limit=2048)
            size = 20_000_000
            writer.write(b"hello\nflood %d\n" % size)
            while not (server.clients and server.clients[0].is_output_paused):
                await asyncio.sleep(0.001)
            await reader.readexactly(6)
            left = size
            while left:
                left -= len(await reader.read(1 << 20))
            writer.write(b"after\n")
            assert await reader.readline() == b"after\n"
            assert not server.clients[0].is_output_paused
            writer.close()

    run(work())


def small_window(server: EchoServer) -> socket.socket:
    """A client with small kernel buffers."""
    connected = socket.socket()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connected.connect((server.host, server.port))
    return connected


def test_a_client_that_stops_reading_is_dropped_although_it_sends() -> None:
    async def work() -> None:
        async with serving(change=lambda settings: replace(settings, send_timeout_ms=300)) as server:
            connected = small_window(server)
            connected.sendall(b"hello\nflood 20000000\n")
            while not (server.clients and server.clients[0].gone.is_set()):
                with contextlib.suppress(ConnectionError):
                    connected.send(b"alive\n")
                await asyncio.sleep(0.01)
            assert server.clients[0].received > len(b"hello\nflood 20000000\n")
            connected.close()

    run(work())


def test_a_client_that_reads_slowly_is_not_dropped() -> None:
    """It reads a few bytes of the megabytes in the kernel buffers: nothing more is written meanwhile."""

    async def work() -> None:
        async with serving(change=lambda settings: replace(settings, send_timeout_ms=2_000)) as server:
            connected = small_window(server)
            connected.sendall(b"hello\nflood 20000000\n")
            connected.setblocking(False)
            loop = asyncio.get_running_loop()
            end = loop.time() + 5
            while loop.time() < end:
                assert await loop.sock_recv(connected, 4096)
                await asyncio.sleep(0.02)
            assert not server.clients[0].gone.is_set()
            connected.close()

    run(work())


def test_reading_is_paused_while_the_connection_requires_it() -> None:
    async def work() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello\n"
            client = server.clients[0]
            client.is_reading_paused = True
            writer.write(b"one\n")
            assert await reader.readline() == b"one\n"
            before = client.received
            writer.write(b"x" * 100_000)
            client.say(b"ping\n")
            assert await reader.readline() == b"ping\n"
            assert client.received == before
            client.is_reading_paused = False
            client.say(b"pong\n")
            assert await reader.readline() == b"pong\n"
            while client.received < before + 100_000:
                await asyncio.sleep(0)
            writer.close()

    run(work())


def test_connections_beyond_the_limit_are_dropped_and_the_others_stay() -> None:
    async def work() -> None:
        async with serving(connection_slots=ConnectionSlots(2)) as server:
            clients = [await asyncio.open_connection(server.host, server.port) for _ in range(2)]
            for reader, writer in clients:
                writer.write(b"hello\n")
                assert await reader.readline() == b"hello\n"
            reader, writer = await asyncio.open_connection(server.host, server.port)
            assert await was_dropped(reader)
            writer.close()
            clients[0][1].write(b"here\n")
            assert await clients[0][0].readline() == b"here\n"
            for _, client in clients:
                client.close()

    run(work())


def test_accepting_resumes_after_file_descriptors_ran_out() -> None:
    async def work() -> None:
        async with serving() as server:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            held = [socket.socket() for _ in range(4)]
            for one in held:
                one.setblocking(False)
            used = max(one.fileno() for one in held) + 1
            resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
            try:
                loop = asyncio.get_running_loop()
                for one in held:
                    await loop.sock_connect(one, (server.host, server.port))
                for one in held:
                    # Accepted with a spare descriptor and closed, as no descriptor is left for them.
                    connected, _ = await asyncio.open_connection(sock=one)
                    assert await was_dropped(connected)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for one in held:
                    one.close()
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello\n"
            writer.close()

    run(work())


def test_both_address_families_listen_on_one_free_port() -> None:
    async def work() -> None:
        async with serving(change=lambda settings: replace(settings, host="")) as server:
            assert len({port for _, port in server.listener.addresses}) == 1
            for host, port in server.listener.addresses:
                reader, writer = await asyncio.open_connection("::1" if ":" in host else "127.0.0.1", port)
                writer.write(b"hello\n")
                assert await reader.readline() == b"hello\n"
                writer.close()

    run(work())


@pytest.mark.parametrize(
    ("header", "host"),
    [
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 5672\r\n", "192.0.2.7:56324 -> 198.51.100.1:5672"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1:"),
        (
            b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\xdc\x04\x16\x28",
            "192.0.2.7:56324 -> 198.51.100.1:5672",
        ),
    ],
)
def test_behind_a_proxy_the_peer_is_the_address_in_the_header(header: bytes, host: str) -> None:
    async def work() -> None:
        async with serving(change=lambda settings: replace(settings, is_proxied=True)) as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(header + b"hello\nwhoami\n")
            assert await reader.readline() == b"hello\n"
            assert (await reader.readline()).decode().startswith(host)
            writer.close()

    run(work())


@pytest.mark.parametrize(
    "start", [b"AMQP\x00\x00\x09\x01 and more octets", b"PROXY TCP4 " + b"1" * 200, b"PROXY"]
)
def test_a_proxied_listener_drops_a_client_without_a_proxy_header(start: bytes) -> None:
    async def work() -> None:
        def change(settings: Any) -> Any:
            return replace(settings, is_proxied=True, handshake_ms=100)

        async with serving(change=change) as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(start)
            assert await was_dropped(reader)
            assert server.clients == []
            writer.close()

    run(work())


def test_incomplete_handshakes_are_limited_per_address() -> None:
    async def come(server: EchoServer, host: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(b"PROXY TCP4 " + host + b" 198.51.100.1 56324 5672\r\nping\n")
        return reader, writer

    async def work() -> None:
        async with serving(change=lambda base: replace(base, is_proxied=True, half_open_max=2)) as server:
            first, second = [await come(server, b"192.0.2.7") for _ in range(2)]
            for reader, _ in (first, second):
                assert await reader.readline() == b"ping\n"
            assert await was_dropped((await come(server, b"192.0.2.7"))[0])
            other, _ = await come(server, b"192.0.2.8")
            assert await other.readline() == b"ping\n"
            # A completed handshake makes room for another.
            first[1].write(b"hello\n")
            assert await first[0].readline() == b"hello\n"
            third, _ = await come(server, b"192.0.2.7")
            assert await third.readline() == b"ping\n"

    run(work())


@pytest.mark.parametrize("is_proxied", [False, True])
def test_a_suspended_listener_refuses_clients_keeps_those_it_has_and_accepts_others_later(
    is_proxied: bool,
) -> None:
    header = b"PROXY UNKNOWN\r\n" if is_proxied else b""

    async def come(server: EchoServer, line: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(header + line)
        assert await reader.readline() == line
        return reader, writer

    async def work() -> None:
        async with serving(change=lambda base: replace(base, is_proxied=is_proxied)) as server:
            open_reader, open_writer = await come(server, b"hello\n")
            half_open, _ = await come(server, b"ping\n")
            addresses = list(server.listener.addresses)
            await server.listener.suspend()
            assert await was_dropped(half_open)
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(server.host, server.port)
            open_writer.write(b"still here\n")
            assert await open_reader.readline() == b"still here\n"
            # Twice is as good as once.
            await server.listener.suspend()
            await server.listener.resume()
            await server.listener.resume()
            assert server.listener.addresses == addresses
            _, writer = await come(server, b"hello\n")
            writer.close()
            open_writer.close()

    run(work())


def test_a_listener_whose_port_was_taken_meanwhile_stays_suspended() -> None:
    async def work() -> None:
        async with serving() as server:
            await server.listener.suspend()
            with (
                socket.create_server((server.host, server.port)),
                pytest.raises(OSError, match="in use"),
            ):
                await server.listener.resume()
            await server.listener.resume()
            _, writer = await asyncio.open_connection(server.host, server.port)
            writer.close()

    run(work())
