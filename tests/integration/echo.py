"""A small client of the transport: it echoes lines, and executes a few commands."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from warren.framing.driven_connection import DrivenConnection
from warren.framing.outbox import Buffer
from warren.framing.output_listener import OutputListener
from warren.model.turn import Turn
from warren.runtime.clock import Clock
from warren.session.peer import Peer
from warren.transport.listener import ConnectionSlots, Listener, ListenerSettings
from warren.transport.protocol import LoopContext
from warren.transport.tls import Tls

# Of every test that is not about this deadline: no test takes so long, also on a busy machine.
HANDSHAKE_MS = 60_000


class Echo(DrivenConnection):
    """Lines in, lines out. `hello` opens, `quit` ends, `crash` fails, `flood N` sends N bytes."""

    is_finished = False
    is_link = False
    is_reading_paused = False

    def __init__(self, peer: Peer, output_listener: OutputListener, deadline: int) -> None:
        super().__init__()
        self.peer = peer
        self.is_output_paused = False
        self.received = 0
        self.lost_count = 0
        self.written_count = 0
        self.gone = asyncio.Event()
        self._deadline: int | None = deadline
        self._output_listener = output_listener
        self._output: list[Buffer] = []
        self._rest = b""

    def say(self, data: bytes) -> None:
        if not self._output:
            self._output_listener.output_ready()
        self._output.append(data)

    def process_more(self, work: int = 0) -> None:
        """No input is ever left over."""

    def receive(self, data: bytes, work: int = 0) -> None:
        self.changes += 1
        self.received += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._obey(line)

    def _obey(self, line: bytes) -> None:
        if line == b"hello":
            self.is_open = True
            self._deadline = None
        if line == b"crash":
            raise RuntimeError("told to")
        if line.startswith(b"flood "):
            self.say(bytes(int(line[6:])))
            return
        if line == b"whoami":
            line = f"{self.peer.name} {self.peer.certificate_login}".encode()
        self.say(line + b"\n")
        self.is_finished = line == b"quit"

    def take_output(self) -> list[Buffer]:
        self.changes += 1
        output, self._output = self._output, []
        return output

    def pause_output(self) -> None:
        self.is_output_paused = True

    def resume_output(self) -> None:
        self.is_output_paused = False

    def output_written(self) -> None:
        self.written_count += 1

    def deadline(self) -> int | None:
        return self._deadline

    def expire(self) -> None:
        self.changes += 1
        self.is_finished = True

    def lost(self) -> None:
        self.lost_count += 1
        self.gone.set()


class EchoServer:
    """A listener and every connection that it has accepted."""

    def __init__(self, listener: Listener, loop_context: LoopContext, clients: list[Echo]) -> None:
        self.listener = listener
        self.loop_context = loop_context
        self.clients = clients
        self.host, self.port = listener.addresses[0]


async def was_dropped(reader: asyncio.StreamReader) -> bool:
    """Wait for the end; True if the connection ended, orderly or by a reset, without data before."""
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


@asynccontextmanager
async def serving(
    tls: Tls | None = None,
    change: Callable[[ListenerSettings], ListenerSettings] = lambda settings: settings,
    connection_slots: ConnectionSlots | None = None,
    *,
    handshake_ms: int = HANDSHAKE_MS,
) -> AsyncIterator[EchoServer]:
    """A started listener on a free loopback port, to which clients say hello within `handshake_ms`."""
    clients: list[Echo] = []

    loop = asyncio.get_running_loop()
    turn = Turn(Clock().now, loop.call_soon)

    def connect(peer: Peer, output_listener: OutputListener) -> Echo:
        clients.append(Echo(peer, output_listener, turn.now() + handshake_ms))
        return clients[-1]

    loop_context = LoopContext(loop, turn)
    settings = change(ListenerSettings(host="127.0.0.1", port=0))
    listener = Listener(settings, loop_context, connect, tls, connection_slots=connection_slots)
    await listener.start()
    try:
        yield EchoServer(listener, loop_context, clients)
    finally:
        await listener.stop()
        listener.abort()
        loop_context.deadlines.stop()
