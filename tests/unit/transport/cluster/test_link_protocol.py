"""The protocol of a socket between nodes: when it writes, reads and closes."""

import asyncio
from collections.abc import Callable, Coroutine

from tests.clock import ManualClock
from tests.unit.cluster.link_nodes import Network

from warren.cluster.link_connection import LinkConnection
from warren.cluster.link_frames import LinkFrameKind
from warren.limits import LINGER_MS
from warren.transport.cluster.link_protocol import LinkProtocol, LinkRegistry
from warren.transport.protocol import LoopContext


class MemoryTransport(asyncio.Transport):
    """A socket that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_reading = True
        self.is_closed = False
        self.is_aborted = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Accept any limit."""

    def writelines(self, data: object) -> None:
        assert isinstance(data, list)
        self.written += data

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_closed


class Socket(LinkRegistry):
    """A protocol with its socket, and the node behind it."""

    def __init__(self) -> None:
        self.clock = ManualClock(50_000)
        self.node = Network().add(1, "one")
        loop_context = LoopContext(asyncio.get_running_loop(), self.clock.turn)
        self.buffer = memoryview(bytearray(64))
        self.protocol = LinkProtocol(self, loop_context, self.buffer)
        self.transport = MemoryTransport()
        self.connection: LinkConnection | None = None
        self.ended_for: list[str] = []
        self.protocol.connection_made(self.transport)

    def connect(self, protocol: LinkProtocol, transport: asyncio.Transport) -> LinkConnection:
        self.connection = self.node.links.accept(protocol, self.clock.now)
        return self.connection

    def proven(self, protocol: LinkProtocol) -> None:
        raise AssertionError

    def ended(self, protocol: LinkProtocol, connection: LinkConnection) -> None:
        self.ended_for.append(connection.reason)

    def read(self, data: bytes) -> None:
        self.buffer[: len(data)] = data
        self.protocol.buffer_updated(len(data))

    def send(self) -> None:
        assert self.connection is not None
        self.connection.send(LinkFrameKind.PING, b"")


def in_loop(scenario: Callable[[Socket], Coroutine[None, None, None]]) -> None:
    """Run `scenario` with a socket."""

    async def run() -> None:
        socket = Socket()
        await turn()
        await scenario(socket)

    asyncio.run(run())


async def turn() -> None:
    """Let the loop run once."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_output_is_written_once_in_a_turn() -> None:
    async def scenario(socket: Socket) -> None:
        socket.send()
        socket.send()
        assert socket.transport.written == []
        await turn()
        assert len(socket.transport.written) == 1

    in_loop(scenario)


def test_nothing_is_written_while_the_socket_is_full_and_all_of_it_later() -> None:
    async def scenario(socket: Socket) -> None:
        socket.protocol.pause_writing()
        socket.send()
        await turn()
        assert socket.transport.written == []
        socket.protocol.resume_writing()
        await turn()
        assert len(socket.transport.written) == 1

    in_loop(scenario)


def test_a_read_that_fills_the_buffer_is_followed_by_the_turns_of_others() -> None:
    async def scenario(socket: Socket) -> None:
        # The beginning of a frame of 255 bytes.
        socket.read(b"\0\0\0\xff\x01\0" + bytes(57))
        assert socket.transport.is_reading
        socket.read(bytes(64))
        assert not socket.transport.is_reading
        await turn()
        assert socket.transport.is_reading

    in_loop(scenario)


def test_the_last_output_is_written_before_the_socket_is_closed() -> None:
    async def scenario(socket: Socket) -> None:
        # A full socket is no reason to keep it.
        socket.protocol.pause_writing()
        socket.read(b"\xff" * 10)
        assert not socket.transport.is_closed
        await turn()
        assert socket.transport.written[0].endswith(b"refused")
        assert socket.transport.is_closed
        assert not socket.transport.is_aborted
        socket.clock.now += LINGER_MS
        socket.protocol.expire(socket.clock.now)
        assert socket.transport.is_aborted

    in_loop(scenario)


def test_a_socket_that_was_closed_is_told_once() -> None:
    async def scenario(socket: Socket) -> None:
        socket.protocol.connection_lost(None)
        socket.protocol.connection_lost(None)
        socket.protocol.expire(socket.clock.now)
        socket.protocol.flush()
        assert socket.ended_for == ["the peer has closed the connection"]

    in_loop(scenario)
