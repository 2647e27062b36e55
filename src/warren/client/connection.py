"""One connection in the role of the client, without I/O: handshake, channels, heartbeats and close.

    HANDSHAKE ── open-ok ──▶ OPEN ── close from either side ──▶ CLOSING ── close-ok, or timeout ──▶ FINISHED

Whoever performs the I/O calls it as the transport calls a connection of the broker: `receive`, `take_output`,
`deadline`, `expire`, `lost`. Coroutines of `model/coroutine_driver` await `open`, `open_channel` and `close`.
"""

from enum import Enum
from typing import TypeVar

from warren import limits, limits_relay
from warren.client.answer import Answer
from warren.client.channel import ChannelListener, ClientChannel
from warren.client.errors import BrokerRefused, malformed
from warren.client.login import ClientLogin
from warren.client.raw_frames import decoded
from warren.errors import FrameError
from warren.framing.driven_connection import LINK_CAPABILITY, DrivenConnection
from warren.framing.heartbeat import HEARTBEAT_FRAME, Heartbeat, HeartbeatAction
from warren.framing.outbox import Buffer, Outbox
from warren.framing.output_listener import OutputListener
from warren.model.turn import Turn
from warren.wire import methods
from warren.wire.frames import HEARTBEAT, METHOD, FrameReader
from warren.wire.method import Method

Reply = TypeVar("Reply", bound=Method)

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

_WORK_MAX = limits.WORK_PER_TURN_MAX
_EMPTY_VHOST = (
    "a URI that ends with a slash after its port names the virtual host with the empty name: "
    "omit the slash or write /%2f for the virtual host '/'"
)


class ClientState(Enum):
    """The states of a connection."""

    HANDSHAKE = "starting"
    OPEN = "running"
    CLOSING = "closing"
    FINISHED = "closed"


class ClientPhase(Enum):
    """The phases of the handshake, which say where a connection has failed that could not be opened."""

    GREETING = "greeting"
    LOGIN = "login"
    VHOST = "virtual host"


class ConnectionListener:
    """Port: what happens on a connection without a call; the methods raise nothing."""

    __slots__ = ()

    def blocked(self, reason: str) -> None:
        """The broker accepts no publishes for `reason` (an alarm); an empty reason ends this."""

    def has_room(self) -> None:
        """The output was written: a publisher that was held back by a full outbox may continue."""

    def ended(self, error: BrokerRefused | None) -> None:
        """The connection, which was open, has ended, with `error` unless it was closed by `close`.

        One that could not be opened is told by `open` alone, since another address may be tried.
        """


class ClientConnection(DrivenConnection):
    """One connection; `open` performs its handshake."""

    __slots__ = (
        "_awaited", "_channels", "_closing_deadline", "_handshake_deadline", "_heartbeat",
        "_is_reading_paused", "_listener", "_login", "_output_listener", "_reader", "_received",
        "channels_max", "error", "outbox", "phase", "server_properties", "state", "turn",
    )  # fmt: skip

    def __init__(
        self, login: ClientLogin, turn: Turn, output_listener: OutputListener, listener: ConnectionListener
    ) -> None:
        super().__init__()
        self._login = login
        self._listener = listener
        self._output_listener = output_listener
        self._reader = FrameReader()
        self._reader.frame_size_max = min(login.frame_size_max, limits.FRAME_SIZE_MAX)
        self._channels: dict[int, ClientChannel] = {}
        # The method of channel 0 that is awaited, with its type.
        self._awaited: tuple[type[Method], Answer[Method]] | None = None
        self._handshake_deadline = turn.now() + login.handshake_ms
        self._closing_deadline: int | None = None
        self._heartbeat: Heartbeat | None = None
        self._received = 0
        self.turn = turn
        self.outbox = Outbox(output_listener)
        self.state = ClientState.HANDSHAKE
        # The phase of the handshake that was begun last.
        self.phase = ClientPhase.GREETING
        # Why the connection has ended; None while it is open, or was closed by `close`.
        self.error: BrokerRefused | None = None
        self.server_properties: dict[str, object] = {}
        self.channels_max = login.channels_max
        self._is_reading_paused = False

    @property
    def is_finished(self) -> bool:
        """True when only the result of `take_output` must be written before the socket is closed."""
        return self.state is ClientState.FINISHED

    @property
    def is_reading_paused(self) -> bool:
        """True while the socket must not be read; see `pause_reading`."""
        return self._is_reading_paused

    # --- calls ----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Perform the handshake (0-9-1 §2.2.4). Raises BrokerRefused."""
        login = self._login
        self.outbox.raw(PROTOCOL_HEADER)
        start = await self._expect(methods.ConnectionStart)
        self.server_properties = start.server_properties
        self.phase = ClientPhase.LOGIN
        mechanism = self._chosen_mechanism(start.mechanisms.split())
        self.outbox.method(
            0,
            methods.ConnectionStartOk(
                client_properties=login.properties(), mechanism=mechanism, response=login.response(mechanism)
            ),
        )
        self._tune(await self._expect(methods.ConnectionTune))
        self.phase = ClientPhase.VHOST
        self.outbox.method(0, methods.ConnectionOpen(virtual_host=login.vhost))
        try:
            await self._expect(methods.ConnectionOpenOk)
        except BrokerRefused as error:
            if login.vhost or not error.code:
                raise
            raise BrokerRefused(f"{error}; {_EMPTY_VHOST}", error.code) from None
        self.is_open = True
        self.state = ClientState.OPEN
        self.wake()

    async def open_channel(self, listener: ChannelListener, number: int = 0) -> ClientChannel:
        """Open a channel, whose deliveries and confirms `listener` receives. Raises BrokerRefused.

        `number` is the number of a channel that is not open; 0 chooses one.
        """
        number = number or next(
            (free for free in range(1, self.channels_max + 1) if free not in self._channels), 0
        )
        if not self.is_open or not number:
            raise self.error or BrokerRefused(f"all {self.channels_max} channels are open")
        channel = self._channels[number] = ClientChannel(number, self.outbox, self.turn, listener)
        await channel.call(methods.ChannelOpen(), methods.ChannelOpenOk)
        return channel

    async def close(self) -> None:
        """Close the connection, and wait until the broker has, at most a few seconds."""
        if not self.is_open:
            self.finish(None)
            return
        self._begin_closing()
        self.outbox.method(0, methods.ConnectionClose(reply_code=200, reply_text="Goodbye"))
        try:
            await self._expect(methods.ConnectionCloseOk)
        except BrokerRefused:
            return
        self.finish(None)

    async def _expect(self, kind: type[Reply]) -> Reply:
        """Wait for the method `kind` on channel 0."""
        if self.is_finished:
            raise self.error or BrokerRefused("the connection is closed")
        answer: Answer[Method] = Answer()
        self._awaited = (kind, answer)
        return await answer  # type: ignore[return-value]

    def _chosen_mechanism(self, offered: list[str]) -> str:
        """Return the first SASL mechanism of the login that the broker offers. Raises BrokerRefused."""
        for mechanism in self._login.mechanisms:
            if mechanism in offered:
                return mechanism
        wanted = " or ".join(self._login.mechanisms)
        raise self._failed(
            BrokerRefused(f"the broker offers no login with {wanted}, but {', '.join(offered)}")
        )

    def _tune(self, tune: methods.ConnectionTune) -> None:
        """Answer connection.tune with the lower of both proposals; 0 is no limit of the broker."""
        login = self._login
        if 0 < tune.frame_max < limits.FRAME_SIZE_MIN:
            raise self._failed(
                malformed(
                    f"a maximum frame size of {tune.frame_max} bytes, less than {limits.FRAME_SIZE_MIN}"
                )
            )
        frame_size_max = min(tune.frame_max or limits.FRAME_SIZE_MAX, login.frame_size_max)
        self.channels_max = min(tune.channel_max or login.channels_max, login.channels_max)
        heartbeat_s = tune.heartbeat if login.heartbeat_s is None else login.heartbeat_s
        self.outbox.method(
            0,
            methods.ConnectionTuneOk(
                channel_max=self.channels_max, frame_max=frame_size_max, heartbeat=heartbeat_s
            ),
        )
        self.outbox.frame_size_max = frame_size_max
        self._reader.frame_size_max = frame_size_max
        self._heartbeat = Heartbeat(heartbeat_s, self.turn.now())

    def _failed(self, error: BrokerRefused) -> BrokerRefused:
        """End the connection with `error`, which is returned."""
        self.finish(error)
        return error

    # --- input ------------------------------------------------------------------------------------

    @property
    def is_link(self) -> bool:
        """True for a shovel or federation link."""
        return LINK_CAPABILITY in self._login.capabilities

    def receive(self, data: bytes, work: int = _WORK_MAX) -> None:
        """Process the bytes of one read, at most about `work` frames; raises nothing. See `has_more`."""
        self._received += len(data)
        if not self.is_finished:
            self._process(data, work)

    def process_more(self, work: int = _WORK_MAX) -> None:
        """Process another turn's work of received data. Call it while `has_more` is true."""
        self._process(b"", work)

    def take_unread(self) -> bytes:
        """Return the bytes that were received and not processed, and forget them.

        Whoever reads the socket itself from here on starts with these.
        """
        self.has_more = False
        return self._reader.take_unread()

    def _process(self, data: bytes, work: int) -> None:
        """Process `data`, or if it is empty what was received before."""
        self.has_more = False
        try:
            if data:
                self._reader.feed(data)
            self._process_frames(work)
        except FrameError:
            self._fail(malformed(self._bad_frame()))
        except BrokerRefused as error:
            self._fail(error)

    def _bad_frame(self) -> str:
        """Describe the frame that the reader has refused."""
        size, size_max = self._reader.size, self._reader.frame_size_max
        if size > size_max:
            return f"a frame of {size} bytes, more than the agreed {size_max}"
        return "a frame without an end"

    def _process_frames(self, work: int) -> None:
        reader = self._reader
        channels = self._channels
        while not self.is_finished and reader.advance():
            number = reader.channel
            if number:
                channel = channels.get(number)
                if channel is not None:
                    # The last frame is counted below.
                    work = channel.handle_run(reader, work) + 1
                    if not channel.is_open:
                        channels.pop(number, None)
                elif self.state is not ClientState.CLOSING and not _is_close_ok(reader):
                    raise malformed(f"a frame on channel {number}, which is not open")
            elif reader.kind == METHOD:
                self._receive_method(reader.payload())
            elif reader.kind != HEARTBEAT:
                raise malformed(f"a frame of type {reader.kind} on channel 0")
            work -= 1
            if not work:
                self.has_more = reader.has_more()
                return

    def _receive_method(self, payload: bytes) -> None:
        """Process a method of channel 0."""
        method = decoded(payload)
        awaited = self._awaited
        if isinstance(method, methods.ConnectionClose):
            self.outbox.method(0, methods.ConnectionCloseOk())
            self.finish(BrokerRefused(f"{method.reply_code} {method.reply_text}", method.reply_code))
        elif isinstance(method, methods.ConnectionBlocked):
            self._listener.blocked(method.reason or "unknown")
        elif isinstance(method, methods.ConnectionUnblocked):
            self._listener.blocked("")
        elif awaited is not None and isinstance(method, awaited[0]):
            self._awaited = None
            awaited[1].complete(method)
        else:
            raise malformed(f"a {method.name} that nothing asked for")

    def lost(self, reason: str = "the connection to the broker was lost") -> None:
        """Handle the closed socket."""
        self.finish(BrokerRefused(reason))

    # --- output -----------------------------------------------------------------------------------

    def take_output(self) -> list[Buffer]:
        """Return the pending output in order, and empty the outbox."""
        return self.outbox.take()

    def pause_output(self) -> None:
        """Note that the socket accepts no more output."""
        self.outbox.is_paused = True

    def resume_output(self) -> None:
        """Note that the socket accepts output again."""
        self.outbox.is_paused = False
        self.output_written()

    def output_written(self) -> None:
        """Tell the listener that there is room for publishes."""
        if not self.outbox.is_full():
            self._listener.has_room()

    def pause_reading(self, is_paused: bool) -> None:
        """Stop reading from the broker, or continue, because what it delivers cannot be passed on."""
        if is_paused != self._is_reading_paused:
            self._is_reading_paused = is_paused
            self.wake()

    def wake(self) -> None:
        """Have the socket follow the state of the connection, also if there is no output."""
        self.changes += 1
        self._output_listener.output_ready()

    # --- time and end -----------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """The time (ms) at which to call `expire`; None if there is no deadline."""
        if self.state is ClientState.HANDSHAKE:
            return self._handshake_deadline
        if self.state is ClientState.CLOSING:
            return self._closing_deadline
        return self._heartbeat.deadline() if self.is_open and self._heartbeat is not None else None

    def expire(self) -> None:
        """Handle a deadline: of the handshake, of the close, or of a heartbeat."""
        now, due = self.turn.now(), self.deadline()
        if due is None or now < due:
            return
        if self.state is ClientState.HANDSHAKE:
            self.finish(BrokerRefused(f"no connection within {self._login.handshake_ms} ms"))
        elif self.state is ClientState.CLOSING:
            self.finish(self.error)
        else:
            self._check_heartbeat(now)

    def _check_heartbeat(self, now: int) -> None:
        assert self._heartbeat is not None
        # While nothing is read, the silence of the broker means nothing.
        self._received += self._is_reading_paused
        action = self._heartbeat.due(now, self._received, self.outbox.total)
        if action is HeartbeatAction.SEND:
            self.outbox.raw(HEARTBEAT_FRAME)
        elif action is HeartbeatAction.DEAD:
            self.finish(BrokerRefused("the broker has sent nothing for two heartbeat intervals"))
        self.changes += 1

    def _fail(self, error: BrokerRefused) -> None:
        """Close the connection with `error`, because the input of the broker is not valid."""
        if self.is_open:
            self.outbox.method(0, methods.ConnectionClose(reply_code=error.code, reply_text=str(error)[:255]))
        self.finish(error)

    def _begin_closing(self) -> None:
        """Enter CLOSING: all but close and close-ok is ignored from here (0-9-1 §1.4.2.7)."""
        self._end_channels(BrokerRefused("the connection is closed"))
        self.is_open = False
        self.state = ClientState.CLOSING
        self._closing_deadline = self.turn.now() + limits_relay.CLIENT_CLOSING_MS
        self.changes += 1

    def finish(self, error: BrokerRefused | None) -> None:
        """End the connection with `error`: its channels and calls raise it, and the listener is told."""
        if self.is_finished:
            return
        was_open = self.state is not ClientState.HANDSHAKE
        self.is_open = False
        self.state = ClientState.FINISHED
        self.error = error
        ended = error or BrokerRefused("the connection is closed")
        self._end_channels(ended)
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited[1].fail(ended)
        self.wake()
        if was_open:
            self._listener.ended(error)

    def _end_channels(self, error: BrokerRefused) -> None:
        for channel in list(self._channels.values()):
            channel.end(error)
        self._channels.clear()


def _is_close_ok(reader: FrameReader) -> bool:
    """True for channel.close-ok, which also comes if both ends close a channel at the same time."""
    return reader.kind == METHOD and reader.payload() == methods.ChannelCloseOk().encode()
