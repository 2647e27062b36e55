"""One AMQP connection: its frames, its channels, channel 0, and its end.

Its states are those of `base_connection`: OPEN begins with open-ok, and CLOSING ends with close-ok. In
CLOSING every method except close and close-ok is ignored (0-9-1 §1.4.2.7). Exceptions that end the connection
are caught in `receive` and `guard`, and nowhere else.
"""

from collections import deque
from collections.abc import Callable

from warren import limits
from warren.errors import AmqpError, ChannelNumberError, ConnectionForced, FrameError, InternalError
from warren.framing.heartbeat import HEARTBEAT_FRAME, check_heartbeat
from warren.framing.output_listener import OutputListener
from warren.model.coroutine_driver import NextTurn, drive
from warren.session.base_connection import BaseConnection, ConnectionState
from warren.session.channel import Channel
from warren.session.channel_factory import open_channel
from warren.session.channel_release import release_channels
from warren.session.closing_handshake import CLOSE_OK, ClosingHandshake
from warren.session.consumer_timeout import ConsumerTimeoutCheck
from warren.session.events.event_publisher import AMQP, DIRECT
from warren.session.handshake import Handshake
from warren.session.handshake_driver import HandshakeDriver
from warren.session.login import Login
from warren.session.peer import Peer
from warren.session.protocol_errors import too_early, unexpected_frame_error
from warren.session.secret_update import update_secret
from warren.session.server import Server
from warren.session.throttle import Throttle
from warren.vhost.vhost import VirtualHost
from warren.wire import methods
from warren.wire.erlang import frame_bytes
from warren.wire.frames import HEARTBEAT, METHOD, FrameReader
from warren.wire.method import index_of
from warren.wire.methods import decode_method

_WORK_MAX = limits.WORK_PER_TURN_MAX
_DECLARATION_WORK = limits.DECLARATION_WORK
_HEARTBEAT = HEARTBEAT
_METHOD = METHOD
_CHANNEL_OPEN = methods.ChannelOpen.index
_CHANNEL_OPEN_OK = methods.ChannelOpenOk().encode()


class Connection(BaseConnection):
    """One AMQP connection, without I/O."""

    __slots__ = (
        "_channel", "_channels", "_closing", "_consumer_timeouts", "_handshake_driver", "_is_lost", "_reader",
        "_vhost", "_waiting", "_will_close", "_work_max", "throttle",
    )  # fmt: skip

    def __init__(self, server: Server, peer: Peer, output_listener: OutputListener) -> None:
        super().__init__(server, peer, output_listener)
        self.throttle = Throttle(self.outbox, server.held)
        self._work_max = _WORK_MAX
        self._waiting: list[bytes] = []
        self._vhost: VirtualHost = None  # type: ignore[assignment]
        # connection.close was received, or the socket was closed, while frames are held: these come first.
        self._will_close = False
        self._is_lost = False
        handshake = Handshake(server.admission_control, peer, server.offer, self.connected_at)
        self._handshake_driver: HandshakeDriver | None = HandshakeDriver(
            handshake, self, server, self.pending_command
        )
        self._consumer_timeouts = ConsumerTimeoutCheck()
        self._closing = ClosingHandshake(self.outbox, self.deadlines)
        self._reader = FrameReader()
        self._channels: dict[int, Channel] = {}
        # The channel of the last frame.
        self._channel: Channel | None = None

    @property
    def protocol(self) -> str:
        """The protocol, as events name it."""
        return DIRECT if self.peer.local_name else AMQP

    @property
    def is_reading_paused(self) -> bool:
        """True while the socket of this client must not be read."""
        return self.throttle.is_reading_paused or self.pending_command.is_waiting

    @property
    def channels(self) -> dict[int, Channel]:
        """The open channels by number."""
        return self._channels

    def receive(self, data: bytes, work: int = _WORK_MAX) -> None:
        """Process the bytes of one read, at most about `work` frames; raises nothing. See `has_more`."""
        self.count_read(len(data))
        self._work_max = work
        if self.has_more or self.pending_command.is_waiting:
            self._waiting.append(data)
        else:
            self._take(data)

    def process_more(self, work: int = _WORK_MAX) -> None:
        """Process another turn's work of received data. Call it while `has_more` is true."""
        self._work_max = work
        self.has_more = False
        self._take(b"")
        while self._waiting and not self.has_more:
            self._take(self._waiting.pop(0))

    def _take(self, data: bytes) -> None:
        """Process `data`; if it is empty, continue with data that was fed before."""
        was_open = self.is_open
        try:
            if self.is_open:
                self._vhost.work = 0
                if data:
                    self._reader.feed(data)
                self._process_frames()
            else:
                self._receive_early(data)
        except Exception as error:
            self.fail_with(error)
            self._skip_rest()
        if not (was_open and self.is_open) or self.throttle.held_size:
            self.changes += 1

    def disconnect(self, reason: str) -> None:
        """Send connection.close for `reason`: an operator, a limit or a shutdown."""
        self.close(ConnectionForced(reason))

    def close(self, error: AmqpError) -> None:
        """Close the connection with `error`: shutdown, an operator, a limit, or a refused secret."""
        error.method_index = 0
        self._fail(error)

    def renew(self, login: Login) -> None:
        """Replace the login by `login`, and send connection.update-secret-ok."""
        super().renew(login)
        self.outbox.method(0, methods.ConnectionUpdateSecretOk())

    def check_timeouts(self, timeout_ms: int | None) -> None:
        """Start checking for deliveries unacknowledged for longer than `timeout_ms`; None checks nothing."""
        if timeout_ms is not None and self._consumer_timeouts.start(timeout_ms, self.turn.now()):
            self.changes += 1

    def block(self, reason: str) -> None:
        """Block publishing for `reason`; an empty reason unblocks it."""
        if not self.is_open:
            # Its channels are being released.
            return
        self.throttle.block(reason)
        self.changes += 1
        if not reason and self.throttle.held_size:
            self.resume_later()
        elif self._is_lost:
            self._end()

    def run_in_channel(self, channel: Channel, action: Callable[[], None]) -> None:
        """Run `action` of `channel` outside of a frame; its exceptions close the channel or connection."""
        self.guard(action)
        if channel.is_closed and self._channels.get(channel.number) is channel:
            self._forget(channel)
        if channel.is_interrupted:
            self.resume_later()
        if not self.throttle.held_size:
            if self._is_lost:
                self._end()
            elif self._will_close:
                self._agree_to_close()
        self.wake()

    def lost(self) -> None:
        """Handle the closed socket; data that was already received is still processed, turn by turn."""
        if self.has_more:
            self.process_more()
        if self.has_more:
            self.server.later(lambda _: self.lost())
        elif self.is_open and (self.throttle.is_waiting or self._will_resume):
            # Its publishes wait for credit; with a faster disk they would have been processed already.
            self._is_lost = True
        else:
            self._end()

    def state_name(self, now: int) -> str:
        """The state of the connection as RabbitMQ's management API names it; `now` in ms."""
        return self.throttle.state_name(now) if self.is_open else self.state.value

    def process_held(self) -> None:
        """Process the held frames of all channels."""
        if self.is_open:
            self._vhost.work = 0
            for channel in list(self._channels.values()):
                self.run_in_channel(channel, channel.resume)

    def _end(self) -> None:
        """End the connection without sending anything."""
        self._is_lost = False
        if self._handshake_driver is not None:
            self._handshake_driver.disconnected()
        elif self.is_open:
            self.server.connection_log.client_disconnected(self)
        self._release(b"")
        self.finish()

    def _receive_early(self, data: bytes) -> None:
        """Process data received before the connection is open, or after it began to close."""
        handshake_driver = self._handshake_driver
        if (
            handshake_driver is not None
            and self.state is ConnectionState.HANDSHAKE
            and not self._closing.ignores_input
        ):
            behind = handshake_driver.receive_header(data)
            if behind is None:
                self.finish()
                self._closing.ignores_input = True
                return
            data = behind
        if self._closing.ignores_input:
            if self._closing.is_answered_by(data):
                self.finish()
            return
        if data:
            self._reader.feed(data)
        self._process_frames()

    def proceed(self) -> None:
        assert self._handshake_driver is not None
        self._handshake_driver.process_more(self.turn.now())
        self._open_if_complete(self._handshake_driver)

    def _process_frames(self) -> None:
        """Process complete frames, at most one turn's work."""
        reader = self._reader
        work = self._work_max
        while reader.advance():
            work -= 1
            number = reader.channel
            channel = self._channel
            if (
                channel is not None
                and channel.number == number
                and reader.kind != _HEARTBEAT
                and self.is_open
            ):
                channel.handle(reader)
                if channel.is_closed:
                    self._forget(channel)
            else:
                work -= self._handle_other_frame(reader)
                if self.pending_command.is_waiting:
                    return
            if work <= 0 or (self.is_open and work <= self._vhost.work):
                self.has_more = reader.has_more()
                return

    def _skip_rest(self) -> None:
        """Process the rest of the read after the frame that ended the connection."""
        if self._closing.ignores_input:
            return
        try:
            self._process_frames()
        except AmqpError as error:
            self._fail(error)

    def _handle_other_frame(self, reader: FrameReader) -> int:
        """Process a frame for another channel than the last; return its work beyond one frame."""
        if not self.is_open:
            self._handle_unopened(reader)
        elif reader.kind == _HEARTBEAT:
            check_heartbeat(reader)
        elif reader.channel == 0:
            self._handle_channel_0(reader)
        else:
            channel = self._channels.get(reader.channel)
            if channel is None:
                channel = self._open_channel(reader)
            else:
                self._channel = channel
                channel.handle(reader)
                if channel.is_closed:
                    self._forget(channel)
                return 0
        return _DECLARATION_WORK

    def _handle_unopened(self, reader: FrameReader) -> None:
        """Process a frame of the handshake, or one received while closing."""
        if self.state is ConnectionState.CLOSING:
            if self._closing.handle(reader):
                self.finish()
            return
        handshake_driver = self._handshake_driver
        if handshake_driver is None or handshake_driver.deadline() is None or self._closing.ignores_input:
            return
        if reader.kind == _HEARTBEAT:
            check_heartbeat(reader)
            return
        handshake_driver.handle(reader, self.turn.now())
        self._open_if_complete(handshake_driver)

    def _open_if_complete(self, handshake_driver: HandshakeDriver) -> None:
        if handshake_driver.handshake.is_complete:
            self._open(handshake_driver.handshake, handshake_driver.tuned_at)

    def _open(self, handshake: Handshake, tuned_at: int) -> None:
        """Enter OPEN after the handshake."""
        services = self.server.vhost_services[handshake.vhost]
        self.outbox.frame_size_max = handshake.frame_size_max
        self._handshake_driver = None
        self.enter_open(handshake.login(), services, tuned_at)
        sends_blocked = "connection.blocked" in handshake.capabilities
        self.throttle.open(services.credit, self.resume, sends_blocked=sends_blocked)
        self.throttle.block(self.server.blocked_reason)
        self.check_timeouts(self.server.settings.consumer_timeout_ms)
        self._vhost = services.vhost
        self.server.opened(self)

    def _open_channel(self, reader: FrameReader) -> Channel:
        """Open a channel; ConnectionException unless the frame is channel.open."""
        if reader.kind != _METHOD:
            raise too_early(reader.kind, reader.payload())
        index = index_of(reader.payload())
        if index != _CHANNEL_OPEN:
            raise ChannelNumberError("expected 'channel.open'", method_index=index)
        decode_method(reader.payload())
        channel = open_channel(self.server, self, reader.channel)
        self._channels[reader.channel] = channel
        self._channel = channel
        self.server.channel_opened(self)
        self.outbox.payload(reader.channel, _CHANNEL_OPEN_OK)
        return channel

    def _forget(self, channel: Channel) -> None:
        channel.subscriber.publish_channel_closed()
        self._channels.pop(channel.number, None)
        self._channel = None
        self.server.channels_closed(self, 1)

    def _handle_channel_0(self, reader: FrameReader) -> None:
        """Process a frame on channel 0 of an open connection."""
        if reader.kind != _METHOD:
            raise unexpected_frame_error(reader.kind, reader.payload())
        if reader.size < 4:
            raise FrameError(f"{frame_bytes(1, reader.payload())}: unknown_frame", method_index=0)
        method = decode_method(reader.payload())
        if isinstance(method, methods.ConnectionClose):
            if self.throttle.held_size:
                # The client sent connection.close after the held frames, which are therefore processed first.
                self._will_close = True
            else:
                self._agree_to_close()
        elif isinstance(method, methods.ConnectionUpdateSecret):
            drive(update_secret(self, method.new_secret, self.server.admission_control))
        else:
            raise ChannelNumberError(
                "unexpected method in connection state running", method_index=method.index
            )

    def _agree_to_close(self) -> None:
        """Send connection.close-ok, and wait for the client to close the socket; it may repeat the close."""
        self._will_close = False
        self.state = ConnectionState.CLOSING
        self._closing.agree(self.turn.now())
        self.server.connection_log.closing(self)
        self._release(CLOSE_OK)

    def handshake_deadline(self) -> int | None:
        return None if self._handshake_driver is None else self._handshake_driver.deadline()

    def handshake_timed_out(self) -> None:
        if self._handshake_driver is not None:
            self._handshake_driver.timed_out()

    def protocol_deadline(self) -> int | None:
        return self._consumer_timeouts.due

    def expire_open(self, now: int) -> None:
        if self.is_token_expired(now):
            self.disconnect(f"the token of user '{self.user}' has expired")
        elif self.is_heartbeat_missed(now, HEARTBEAT_FRAME):
            self.server.connection_log.heartbeats_missed(self)
            self._release(b"")
            self.finish()
        elif self._consumer_timeouts.is_due(now):
            for channel in list(self._channels.values()):
                self.guard(lambda channel=channel: self._time_out(channel, now))  # type: ignore[misc]

    def _time_out(self, channel: Channel, now: int) -> None:
        """Let the consumers of `channel` time out that hold a delivery too long."""
        timeout_ms = self.server.settings.consumer_timeout_ms
        for consumer in channel.time_out(now, timeout_ms):
            self.server.connection_log.consumer_timed_out(self, channel.number, consumer.tag, timeout_ms)

    def fail_with(self, error: Exception) -> None:
        if isinstance(error, AmqpError):
            self._fail(error)
        else:
            self.report_unexpected(error)
            self._fail(InternalError(method_index=0))

    def _fail(self, error: AmqpError) -> None:
        """Close the connection with `error` (0-9-1 §1.4.2.5)."""
        self.changes += 1
        if self.state in (ConnectionState.CLOSING, ConnectionState.FINISHED):
            self._closing.ignores_input = True
            return
        if self._handshake_driver is None:
            self.server.connection_log.connection_failed(self, error, self._reader.channel)
        else:
            if not self._handshake_driver.refuse(error, self.turn.now()):
                self._closing.ignores_input = True
                return
            self._handshake_driver = None
        # An operator or a shutdown does not wait for other nodes: without a majority that takes seconds.
        waits = self.is_open and not isinstance(error, ConnectionForced)
        if not waits:
            self._release(b"")
        close = self._closing.begin(error, self.turn.now())
        self.state = ConnectionState.CLOSING
        if waits:
            self._release(close)
        else:
            self.outbox.payload(0, close)

    def _release(self, answer: bytes) -> None:
        """Release what the connection has in the virtual host, then send the method `answer`, if any."""
        if not self.is_open:
            return
        self.is_open = False
        self.throttle.close()
        self._channel = None
        ending = deque(self._channels.values())
        self._channels = {}
        self.server.channels_closed(self, len(ending))
        drive(self._release_channels(ending, answer))

    async def _release_channels(self, ending: deque[Channel], answer: bytes) -> None:
        """Release the channels `ending`, over several turns if they are many, then the exclusive queues."""
        assert self.services is not None
        self._closing.is_close_ok_pending = answer == CLOSE_OK
        try:
            for _ in release_channels(ending):
                await NextTurn(self.server.later)
        finally:
            self.server.closed(self)
        if self.owner.has_declared:
            await self.services.queue_remover.remove_exclusive(self.owner)
        self._closing.is_close_ok_pending = False
        if answer:
            self.outbox.payload(0, answer)

    def finish(self) -> None:
        self._handshake_driver = None
        super().finish()
