"""One client: channels by number, channel 0, and how it ends.

    HANDSHAKE ── open-ok ──▶ OPEN ── close from either side ──▶ CLOSING ── close-ok, or too late ──▶ FINISHED

While CLOSING, everything but close and close-ok is passed over (0-9-1 §1.4.2.7). Exceptions that end the
connection are caught in `receive`, and nowhere else.
"""

from collections.abc import Callable
from enum import Enum

from warren import limits
from warren.errors import (
    AmqpError,
    ChannelNumberError,
    ConnectionForced,
    FrameError,
    InternalError,
)
from warren.session import telling
from warren.session.channel import Channel, abandon
from warren.session.closing import close_text, misplaced, too_early
from warren.session.domain import Domain, Login
from warren.session.entrance import Entrance
from warren.session.handshake import Handshake
from warren.session.heartbeat import HEARTBEAT_FRAME, Heartbeat, Pulse, check_heartbeat
from warren.session.opening import open_channel
from warren.session.outbox import Buffer, Outbox
from warren.session.peer import Peer
from warren.session.renewal import renew
from warren.session.server import Server
from warren.session.subscriber import Subscriber
from warren.session.throttle import Throttle
from warren.session.wake import Wake
from warren.vhost.errand import run
from warren.vhost.vhost import VirtualHost
from warren.wire import methods
from warren.wire.erlang import frame_octets
from warren.wire.frames import BODY, HEARTBEAT, METHOD, FrameReader
from warren.wire.method import index_of
from warren.wire.methods import decode_method

_WORK_MAX = limits.WORK_PER_TURN_MAX
_DECLARATION_WORK = limits.DECLARATION_WORK
_HEARTBEAT = HEARTBEAT
_METHOD = METHOD
_BODY = BODY
_CHANNEL_OPEN = methods.ChannelOpen.index
_CHANNEL_OPEN_OK = methods.ChannelOpenOk().encode()
_CLOSE_OK = methods.ConnectionCloseOk().encode()
# Time is told in steps of about this, so looking more often shows nothing new (ms).
_TIMEOUT_CHECK_MS_MIN = 100
# After a broken frame, frames cannot be told apart any more: only this one is looked for.
_CLOSE_OK_FRAME = b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x33\xce"


class State(Enum):
    """RabbitMQ's names, which its texts and its management API use."""

    HANDSHAKE = "starting"
    OPEN = "running"
    CLOSING = "closing"
    FINISHED = "closed"


class Connection:
    """The protocol of one client, below the waterline."""

    __slots__ = (
        "_channel", "_channels", "_closing_deadline", "_entrance", "_heartbeat", "_is_deaf", "_is_leaving",
        "_is_leaving_soon", "_is_lost", "_is_open", "_now", "_reader",
        "_silence_excused", "_timeout_check", "_timeout_interval", "_vhost", "_waiting", "_wake",
        "_will_resume", "_work_max", "changes", "connected_at", "domain", "has_more", "history", "is_moved",
        "login", "octets_counted", "octets_received", "outbox", "owner", "peer", "read_count", "server",
        "state", "throttle", "write_count",
    )  # fmt: skip

    def __init__(self, server: Server, peer: Peer, wake: Wake, now: int) -> None:
        self.server = server
        self.peer = peer
        self._wake = wake
        self.outbox = Outbox(wake)
        self.throttle = Throttle(self.outbox, server.held)
        self.state = State.HANDSHAKE
        self.connected_at = now
        # Advances when `is_finished`, `is_open`, `is_reading_paused` or `deadline` may have changed.
        self.changes = 0
        # True when a read brought more than one turn's work: `go_on` takes the next turn's, nothing is read.
        self.has_more = False
        self._work_max = _WORK_MAX
        self._waiting: list[bytes] = []
        # Where it is and who it is, once it is open.
        self.domain: Domain | None = None
        self.login: Login | None = None
        # What its exclusive queues belong to.
        self.owner = server.next_owner()
        self._now = now
        self._vhost: VirtualHost = None  # type: ignore[assignment]
        self._is_open = False
        self._is_deaf = False
        # True while its exclusive queues are deleted.
        self._is_leaving = False
        # It asked to close, or its socket is gone, while something was held that goes on first.
        self._is_leaving_soon = False
        self._is_lost = False
        # A turn was asked for in which what is held goes on.
        self._will_resume = False
        self._silence_excused = 0
        # Of the socket: octets and how often some came, how often some went; `outbox` counts what goes.
        self.octets_counted = (0, 0)
        self.octets_received = self.read_count = self.write_count = 0
        # True when the server knows that its numbers have changed; who samples them keeps them here.
        self.is_moved = False
        self.history: object = None
        handshake = Handshake(server.gate, peer, server.offer, now)
        self._entrance: Entrance | None = Entrance(handshake, self.outbox, server.later, self._come_in)
        self._heartbeat: Heartbeat | None = None
        self._closing_deadline: int | None = None
        # When to look for deliveries that are held too long, and how often.
        self._timeout_check: int | None = None
        self._timeout_interval = 0
        self._reader = FrameReader()
        self._channels: dict[int, Channel] = {}
        # The channel of the last frame.
        self._channel: Channel | None = None

    @property
    def is_open(self) -> bool:
        """True once the handshake is complete."""
        return self._is_open

    @property
    def is_finished(self) -> bool:
        """True when all that is left is to write what `take_output` gives and close the socket."""
        return self.state is State.FINISHED

    @property
    def is_reading_paused(self) -> bool:
        """True while nothing more may be read from this client."""
        return self.throttle.is_reading_paused or self._is_thinking()

    @property
    def channels(self) -> dict[int, Channel]:
        """Its channels by number."""
        return self._channels

    def receive(self, data: bytes, now: int, work: int = _WORK_MAX) -> None:
        """Obey the octets of one read, `work` frames of them or the like; raises nothing. See `has_more`."""
        self.octets_received += len(data)
        self.read_count += 1
        if not self.is_moved:
            self._move()
        self._work_max = work
        if self.has_more or self._is_thinking():
            self._waiting.append(data)
        else:
            self._take(data, now)

    def go_on(self, now: int, work: int = _WORK_MAX) -> None:
        """Obey another turn's work of what was read already: call it while `has_more`."""
        self._work_max = work
        self.has_more = False
        self._take(b"", now)
        while self._waiting and not self.has_more:
            self._take(self._waiting.pop(0), now)

    def _take(self, data: bytes, now: int) -> None:
        """Obey `data`, or go on with what was fed before when it is empty."""
        self._now = now
        was_open = self._is_open
        try:
            if self._is_open:
                self._vhost.now = now
                self._vhost.work = 0
                if data:
                    self._reader.feed(data)
                self._obey()
            else:
                self._receive_early(data)
        except AmqpError as error:
            self._fail(error)
            self._pass_over()
        except Exception as error:
            self.server.report(f"unexpected {type(error).__name__} in connection {self.peer.name}")
            self._fail(InternalError(method_index=0))
            self._pass_over()
        if not (was_open and self._is_open) or self.throttle.held_size:
            self.changes += 1

    def take_output(self) -> list[Buffer]:
        """What is to be written now, in order."""
        self.write_count += 1
        if not self.is_moved:
            self._move()
        return self.outbox.take()

    def pause_output(self) -> None:
        """The socket takes nothing more: give the consumers nothing more."""
        self.outbox.is_paused = True

    def resume_output(self, now: int) -> None:
        """The socket takes more again."""
        self.outbox.is_paused = False
        self.output_written(now)

    def output_written(self, now: int) -> None:
        """There is room in the outbox: let the consumers that it held back go on."""
        if not self.outbox.is_holding_back():
            return
        self._now = now
        if self._is_open:
            self._vhost.now = now
        for subscriber in self.outbox.take_held_back():
            held: Subscriber = subscriber  # type: ignore[assignment]
            held.resume()

    def deadline(self) -> int | None:
        """When `expire` wants to be called (ms); None when it need not be."""
        if self._entrance is not None:
            return self._entrance.deadline()
        if self._closing_deadline is not None:
            return self._closing_deadline
        beat = self._heartbeat.deadline() if self._heartbeat is not None else None
        ends = self.login.expires_at if self.login is not None and self._is_open else None
        return min((due for due in (beat, self._timeout_check, ends) if due is not None), default=None)

    def expire(self, now: int) -> None:
        """A deadline has passed: heartbeats, hung handshakes and closes, deliveries held too long."""
        self._now = now
        if self._entrance is not None:
            due = self._entrance.deadline()
            if due is not None and now >= due:
                telling.hung(self, self._entrance.handshake)
                self._finish()
        elif self._closing_deadline is None:
            self._expire_open(now)
        elif now >= self._closing_deadline:
            self._finish()

    def close(self, error: AmqpError) -> None:
        """The broker ends the connection: shutdown, an operator, a limit, or a secret that was refused."""
        error.method_index = 0
        self._fail(error)

    def check_timeouts(self, timeout_ms: int | None) -> None:
        """Look for deliveries that are held for longer than `timeout_ms`; None is for ever."""
        if timeout_ms is None:
            return
        interval = max(min(timeout_ms // 4, limits.CONSUMER_TIMEOUT_CHECK_MS), _TIMEOUT_CHECK_MS_MIN)
        if self._timeout_check is None or interval < self._timeout_interval:
            self._timeout_interval = interval
            self._timeout_check = self._now + interval
            self.changes += 1

    def block(self, reason: str) -> None:
        """Hold up what is published, for `reason`; an empty one lets it go on."""
        self.throttle.block(reason)
        self.changes += 1
        if not reason and self.throttle.held_size:
            self._resume_later()
        elif self._is_lost:
            self._end()

    def attend(self, channel: Channel, action: Callable[[], None]) -> None:
        """Run what `channel` does without a frame, with the same ends for it and for its exceptions."""
        self.guard(action)
        if channel.is_closed and self._channels.get(channel.number) is channel:
            self._forget(channel)
        if channel.is_interrupted:
            self._resume_later()
        if not self.throttle.held_size:
            if self._is_lost:
                self._end()
            elif self._is_leaving_soon:
                self._agree_to_close()
        # Whoever stopped reading from this client has to look again, though there may be nothing to write.
        self.changes += 1
        self._wake.output_ready()

    def lost(self, now: int) -> None:
        """The socket is gone; what it had brought is obeyed all the same, turn by turn."""
        if self.has_more:
            self.go_on(now)
        self._now = now
        if self.has_more:
            self.server.later(self.lost)
        elif self._is_open and (self.throttle.is_waiting or self._will_resume):
            # What it published waits for the disk, and would not have if the disk were faster.
            self._is_lost = True
        else:
            self._end()

    def condition(self, now: int) -> str:
        """Its state, as RabbitMQ's management API names it."""
        return self.throttle.condition(now) if self._is_open else self.state.value

    def _move(self) -> None:
        """Have the server know that its numbers change, once for as long as nobody looks at them."""
        if self._is_open:
            self.is_moved = True
            self.server.moved[self] = None

    def _resume_later(self) -> None:
        if not self._will_resume:
            self._will_resume = True
            self.server.later(self._resume)

    def _resume(self, now: int) -> None:
        """What was held goes on, as far as it may."""
        self._will_resume = False
        self._now = now
        if self._is_open:
            self._vhost.now = now
            self._vhost.work = 0
            for channel in list(self._channels.values()):
                self.attend(channel, channel.resume)

    def _end(self) -> None:
        """Nobody hears of it any more."""
        self._is_lost = False
        telling.vanished(self, self._entrance)
        self._release(b"")
        self._finish()

    def _receive_early(self, data: bytes) -> None:
        """Octets before the connection is open, or after it began to close."""
        entrance = self._entrance
        if entrance is not None and self.state is State.HANDSHAKE and not self._is_deaf:
            if not entrance.greeting:
                telling.accepted(self)
            behind = entrance.greet(data)
            if behind is None:
                telling.strange(self, entrance.greeting)
                self._finish()
                self._is_deaf = True
                return
            data = behind
        if self._is_deaf:
            if _CLOSE_OK_FRAME in data:
                self._finish()
            return
        if data:
            self._reader.feed(data)
        self._obey()

    def _is_thinking(self) -> bool:
        """The handshake waits for an answer of ours."""
        return self._entrance is not None and self._entrance.is_waiting

    def _come_in(self, now: int) -> None:
        """What the handshake waits for is there: on with it, and with what came meanwhile."""
        entrance = self._entrance
        if entrance is None or not entrance.is_waiting:
            return
        self._now = now
        self.guard(lambda: entrance.go_on(now))
        if not entrance.is_waiting:
            self.go_on(now)
        self.changes += 1
        self._wake.output_ready()

    def _obey(self) -> None:
        """Obey the whole frames that were fed, as many as a turn may take."""
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
                and self._is_open
            ):
                channel.handle(reader)
                if channel.is_closed:
                    self._forget(channel)
            else:
                work -= self._obey_other(reader)
                if self._is_thinking():
                    return
            if work <= 0 or (self._is_open and work <= self._vhost.work):
                self.has_more = reader.has_more()
                return

    def _pass_over(self) -> None:
        """What lies behind the frame that ended the connection, in the same read."""
        if self._is_deaf:
            return
        try:
            self._obey()
        except AmqpError as error:
            self._fail(error)

    def _obey_other(self, reader: FrameReader) -> int:
        """A frame that is not for the channel of the frame before; answers what it counts for beside that."""
        if not self._is_open:
            self._obey_unopened(reader)
        elif reader.kind == _HEARTBEAT:
            check_heartbeat(reader)
        elif reader.channel == 0:
            self._obey_channel_0(reader)
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

    def _obey_unopened(self, reader: FrameReader) -> None:
        """A frame of the handshake, or one that came too late."""
        if self.state is State.CLOSING:
            self._obey_closing(reader)
            return
        entrance = self._entrance
        if entrance is None or entrance.deadline() is None or self._is_deaf:
            return
        if reader.kind == _HEARTBEAT:
            check_heartbeat(reader)
            return
        entrance.obey(reader, self._now)
        if entrance.handshake.is_complete:
            self._open(entrance.handshake, entrance.tuned_at)

    def _open(self, handshake: Handshake, tuned_at: int) -> None:
        """The handshake is complete."""
        self.domain = self.server.domains[handshake.vhost]
        self.login = Login.from_handshake(handshake)
        self.outbox.frame_size_max = handshake.frame_size_max
        self._heartbeat = Heartbeat(handshake.heartbeat_s, tuned_at)
        self._entrance = None
        self._is_open = True
        self.state = State.OPEN
        tells = "connection.blocked" in handshake.capabilities
        self.throttle.open(self.domain.credit, self._resume, tells=tells)
        self.throttle.block(self.server.blocked_reason)
        self.check_timeouts(self.server.settings.consumer_timeout_ms)
        self._vhost = self.domain.vhost
        self._vhost.now = self._now
        self.server.opened(self)

    def _open_channel(self, reader: FrameReader) -> Channel:
        """The first frame for a channel number: it must be channel.open."""
        if reader.kind != _METHOD:
            raise too_early(reader.kind, reader.payload())
        index = index_of(reader.payload())
        if index != _CHANNEL_OPEN:
            raise ChannelNumberError("expected 'channel.open'", method_index=index)
        decode_method(reader.payload())
        channel = open_channel(self, reader.channel)
        self._channels[reader.channel] = channel
        self._channel = channel
        self.server.channel_opened(self)
        self.outbox.payload(reader.channel, _CHANNEL_OPEN_OK)
        return channel

    def _forget(self, channel: Channel) -> None:
        channel.subscriber.tell_closed()
        self._channels.pop(channel.number, None)
        self._channel = None
        self.server.channels_closed(self, 1)

    def _obey_channel_0(self, reader: FrameReader) -> None:
        """A method of class connection on an open connection."""
        if reader.kind != _METHOD:
            raise misplaced(reader.kind, reader.payload())
        if reader.size < 4:
            raise FrameError(f"{frame_octets(1, reader.payload())}: unknown_frame", method_index=0)
        method = decode_method(reader.payload())
        if isinstance(method, methods.ConnectionClose):
            if self.throttle.held_size:
                # It comes behind what is held: who says good-bye has not taken back what was said before.
                self._is_leaving_soon = True
            else:
                self._agree_to_close()
        elif isinstance(method, methods.ConnectionUpdateSecret):
            run(renew(self, method.new_secret))
        else:
            raise ChannelNumberError(
                "unexpected method in connection state running", method_index=method.index
            )

    def _agree_to_close(self) -> None:
        """The client closes the socket; until then it may say so again, as RabbitMQ lets it."""
        self._is_leaving_soon = False
        self.state = State.CLOSING
        self._closing_deadline = self._now + limits.CLOSING_MS
        telling.left(self)
        self._release(_CLOSE_OK)

    def _obey_closing(self, reader: FrameReader) -> None:
        if reader.kind != _METHOD or reader.channel:
            return
        index = index_of(reader.payload())
        if index == methods.ConnectionCloseOk.index:
            self._finish()
        elif index == methods.ConnectionClose.index and not self._is_leaving:
            self.outbox.payload(0, _CLOSE_OK)

    def _expire_open(self, now: int) -> None:
        self._vhost.now = now
        login = self.login
        if login is not None and login.expires_at is not None and now >= login.expires_at:
            self.close(ConnectionForced(f"the token of user '{login.user}' has expired"))
            return
        heartbeat = self._heartbeat
        if heartbeat is not None:
            if self.throttle.is_reading_paused:
                # Its silence is ours.
                self._silence_excused += 1
            pulse = heartbeat.due(now, self.octets_received + self._silence_excused, self.outbox.total)
            if pulse is Pulse.SEND:
                self.outbox.raw(HEARTBEAT_FRAME)
            elif pulse is Pulse.DEAD:
                telling.silent(self)
                self._release(b"")
                self._finish()
                return
        if self._timeout_check is not None and now >= self._timeout_check:
            self._timeout_check = now + self._timeout_interval
            for channel in list(self._channels.values()):
                self.guard(lambda channel=channel: self._time_out(channel, now))  # type: ignore[misc]

    def _time_out(self, channel: Channel, now: int) -> None:
        """Cancel the consumers of `channel` that hold a delivery too long, and no other."""
        for consumer in channel.subscriber.time_out(now, self.server.settings.consumer_timeout_ms):
            telling.held_too_long(self, channel.number, consumer.tag)

    def guard(self, action: Callable[[], None]) -> None:
        """Run what came from no frame, with the same end for its exceptions."""
        try:
            action()
        except AmqpError as error:
            self._fail(error)
        except Exception as error:
            self.server.report(f"unexpected {type(error).__name__} in connection {self.peer.name}")
            self._fail(InternalError(method_index=0))

    def _fail(self, error: AmqpError) -> None:
        """End the connection because of `error` (0-9-1 §1.4.2.5)."""
        self.changes += 1
        if self.state in (State.CLOSING, State.FINISHED):
            self._is_deaf = True
            return
        if self._entrance is None:
            telling.failed(self, error, self._reader.channel)
        else:
            telling.refused(self, self._entrance.handshake, error)
            if not self._entrance.refuse(error, self._now):
                self._is_deaf = True
                return
            self._entrance = None
        self._release(b"")
        index = error.method_index or 0
        close = methods.ConnectionClose(error.code, close_text(error), index >> 16, index & 0xFFFF)
        self.outbox.method(0, close)
        self.state = State.CLOSING
        self._is_deaf = isinstance(error, FrameError)
        wait = limits.BROKEN_CLOSING_MS if self._is_deaf else limits.CLOSING_MS
        self._closing_deadline = self._now + wait

    def _release(self, answer: bytes) -> None:
        """Leave nothing of this connection in the virtual host; `answer` is sent when that is done."""
        if not self._is_open:
            return
        self._is_open = False
        self.throttle.close()
        self.server.channels_closed(self, len(self._channels))
        abandon(self._channels.values())
        self._channels.clear()
        self._channel = None
        self.server.closed(self)
        if self.owner.has_declared:
            run(self._leave(answer))
        elif answer:
            self.outbox.payload(0, answer)

    async def _leave(self, answer: bytes) -> None:
        assert self.domain is not None
        self._is_leaving = True
        await self.domain.declaring.remove_exclusive(self.owner)
        self._is_leaving = False
        if answer:
            self.outbox.payload(0, answer)

    def _finish(self) -> None:
        self.changes += 1
        self._entrance = None
        self._heartbeat = None
        self._timeout_check = None
        self._closing_deadline = None
        self.state = State.FINISHED
