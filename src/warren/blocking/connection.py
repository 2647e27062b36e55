"""A blocking connection: performs the I/O of a `ClientConnection` until an answer has arrived.

What AMQP says is decided by `client/connection`. Loops that publish or consume much use the socket itself:
they begin with the bytes of `take_unread`, and make no more calls while deliveries or confirms are due.
"""

import socket
import ssl
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.login import ClientLogin
from warren.client.raw_frames import method_frame
from warren.client.uri import Target
from warren.framing.output_listener import OutputListener
from warren.limits import MESSAGE_SIZE_MAX
from warren.model.coroutine_driver import Pending, drive
from warren.model.turn import Turn
from warren.wire.method import Method
from warren.wire.methods import ConnectionCloseOk

GOODBYE_S_MAX = 2
RECEIVE_BYTES = 65_536
# One frame at a time, so that what follows an answer is left for `take_unread`.
_WORK = 1

Reply = TypeVar("Reply", bound=Method)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """Options of a connection other than its address."""

    product: str
    # A broker sends connection.blocked and basic.cancel only to clients with these capabilities.
    capabilities: tuple[str, ...] = ()
    # Seconds; 0 disables heartbeats, so that the broker sends no unsolicited frames. Others are sent only
    # while a call waits.
    heartbeat: int = 0
    # For the handshake, and for each call.
    answer_s_max: float = 60
    # None: the trusted certificates of the system.
    context: ssl.SSLContext | None = field(default=None, repr=False)


class BlockingConnection:
    """An open connection; the constructor connects and performs the handshake."""

    def __init__(self, target: Target, options: ConnectOptions) -> None:
        self._answer_s_max = options.answer_s_max
        self.socket = _connect(target, options)
        self._turn = Turn(_now_ms, lambda end: None)
        login = ClientLogin(
            user=target.user,
            password=target.password,
            vhost=target.vhost,
            product=options.product,
            capabilities=options.capabilities,
            heartbeat_s=options.heartbeat,
            frame_size_max=MESSAGE_SIZE_MAX,
            handshake_ms=int(options.answer_s_max * 1000),
        )
        self._engine = ClientConnection(login, self._turn, _OutputIgnored(), ConnectionListener())
        self._channels: dict[int, ClientChannel] = {}
        # Why the socket cannot be used any more.
        self._cause: BaseException | None = None
        try:
            self._run(self._engine.open())
        except BaseException:
            self.socket.close()
            raise

    @property
    def frame_size_max(self) -> int:
        """The agreed maximum size of a frame."""
        return self._engine.outbox.frame_size_max

    @property
    def server_properties(self) -> dict[str, object]:
        """What the broker has told of itself."""
        return self._engine.server_properties

    def open_channel(self, channel: int = 1) -> None:
        """Open the channel number `channel`. Raises BrokerRefused."""
        self._channels[channel] = self._run(self._engine.open_channel(ChannelListener(), channel))

    def call(self, channel: int, method: Method, answer: type[Reply]) -> Reply:
        """Send one method and return its answer.

        Raises BrokerRefused for a close, if the connection is lost, or if there is no answer in time.
        """
        return self._run(self._channels[channel].call(method, answer))

    def call_many(
        self, channel: int, methods: list[Method], answer: type[Method], *, window: int = 64
    ) -> None:
        """Send many methods with at most `window` unanswered, and wait for all answers."""
        called = self._channels[channel]
        for start in range(0, len(methods), window):
            outcomes = [_Outcome(called.call(method, answer)) for method in methods[start : start + window]]
            self._wait(outcomes[-1])
            for outcome in outcomes:
                self._result(outcome)

    def take_unread(self) -> bytes:
        """Return the bytes received after the last answer; a reader of the socket starts with these."""
        return self._engine.take_unread()

    def close(self) -> None:
        """Send connection.close, wait briefly for the answer, and close the socket; errors are ignored."""
        give_up_s = time.monotonic() + GOODBYE_S_MAX
        try:
            self.socket.settimeout(GOODBYE_S_MAX)
            drive(self._engine.close())
            self.socket.sendall(b"".join(self._engine.take_output()))
            # Where the next frame begins is not known if the socket was read without the engine.
            goodbye = method_frame(0, ConnectionCloseOk())
            tail = b""
            while not self._engine.is_finished and not tail.endswith(goodbye):
                self.socket.settimeout(max(give_up_s - time.monotonic(), 0.001))
                data = self.socket.recv(RECEIVE_BYTES)
                if not data:
                    break
                tail = (tail + data)[-len(goodbye) :]
        except OSError:
            pass  # already closed, or it takes too long
        finally:
            self.socket.close()

    def _run(self, coroutine: Coroutine[Pending, None, Result]) -> Result:
        """Return the result of `coroutine`, which waits for answers of the broker."""
        outcome = _Outcome(coroutine)
        self._wait(outcome)
        return self._result(outcome)

    def _result(self, outcome: "_Outcome[Result]") -> Result:
        error = outcome.error
        if error is None:
            return outcome.value  # type: ignore[return-value]
        is_close = error.code and error.text.startswith(f"{error.code} ")
        text = f"the broker answered {error.text}" if is_close else error.text
        raise BrokerRefused(text, error.code) from self._cause

    def _wait(self, outcome: "_Outcome[Result]") -> None:
        """Write output and receive input until `outcome` is over, but no longer than a call may take."""
        engine = self._engine
        give_up_ms = self._turn.begin() + int(self._answer_s_max * 1000)
        try:
            while True:
                self._write(give_up_ms)
                if outcome.is_over:
                    return
                if engine.has_more:
                    engine.process_more(_WORK)
                elif not self._receive(give_up_ms):
                    engine.expire()
                    if self._turn.now() >= give_up_ms:
                        engine.lost(f"the broker has not answered within {self._answer_s_max:g} s")
        finally:
            self.socket.settimeout(self._answer_s_max)

    def _write(self, give_up_ms: int) -> None:
        """Write all output of the engine."""
        output = self._engine.take_output()
        if not output:
            return
        try:
            self.socket.settimeout(max(give_up_ms - self._turn.begin(), 1) / 1000)
            self.socket.sendall(b"".join(output))
        except OSError as error:
            self._lose(f"the connection to the broker was lost: {error}", error)

    def _receive(self, give_up_ms: int) -> bool:
        """Read once; False if nothing came until the time of the engine, or that of the call, is over."""
        due = self._engine.deadline()
        wait_ms = (give_up_ms if due is None else min(due, give_up_ms)) - self._turn.begin()
        if wait_ms <= 0:
            return False
        try:
            self.socket.settimeout(wait_ms / 1000)
            data = self.socket.recv(RECEIVE_BYTES)
        except TimeoutError:
            self._turn.begin()
            return False
        except OSError as error:
            self._lose(f"the connection to the broker was lost: {error}", error)
            return True
        if data:
            self._engine.receive(data, _WORK)
        else:
            self._lose("the broker closed the connection", EOFError())
        return True

    def _lose(self, text: str, cause: BaseException) -> None:
        if not self._engine.is_finished:
            self._cause = cause
            self._engine.lost(text)


class _Outcome(Generic[Result]):
    """How a coroutine has ended, or that it has not."""

    def __init__(self, coroutine: Coroutine[Pending, None, Result]) -> None:
        self.is_over = False
        self.value: Result | None = None
        self.error: BrokerRefused | None = None
        drive(self._follow(coroutine))

    async def _follow(self, coroutine: Coroutine[Pending, None, Result]) -> None:
        try:
            self.value = await coroutine
        except BrokerRefused as error:
            self.error = error
        self.is_over = True


class _OutputIgnored(OutputListener):
    """Output is written when a call begins, and after each read."""

    def output_ready(self) -> None:
        """Do nothing."""

    def output_full(self) -> None:
        """Do nothing."""


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _connect(target: Target, options: ConnectOptions) -> socket.socket:
    if target.host.startswith("/"):
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        local.settimeout(options.answer_s_max)
        try:
            local.connect(target.host)
        except BaseException:
            local.close()
            raise
        return local
    plain = socket.create_connection((target.host, target.port), options.answer_s_max)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not target.is_tls:
        return plain
    context = options.context or ssl.create_default_context()
    return context.wrap_socket(plain, server_hostname=target.host)
