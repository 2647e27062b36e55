"""The state machine of one connection of the stream protocol.

    GREETING ── open ──▶ OPEN ── close from either side ──▶ CLOSING ── its answer, or timeout ──▶ FINISHED

Frames are processed in order. Publish and Credit never wait; other commands may, and delay the frames after
them. A client that publishes is not read while the disk is overloaded, an alarm is set, or too many messages
are unconfirmed.
"""

from collections.abc import Coroutine
from enum import Enum

from warren import limits
from warren.model.samples import Samples
from warren.session.events.event_publisher import STREAM
from warren.session.heartbeat import Heartbeat, HeartbeatAction
from warren.session.login import Login
from warren.session.outbox import Buffer, Outbox
from warren.session.output_listener import OutputListener
from warren.session.peer import Peer
from warren.session.streams.command_handler import StreamCommandHandler
from warren.session.streams.handshake import StreamHandshake, StreamHandshakePhase
from warren.session.streams.stream_server import StreamServer
from warren.vhost.coroutine_driver import Pending, step
from warren.vhost.requester import Owner
from warren.wire.streams import commands
from warren.wire.streams.codes import FrameTooLarge, MalformedFrame, ResponseCode
from warren.wire.streams.commands import StreamCommand, decode
from warren.wire.streams.frames import StreamFrameReader
from warren.wire.streams.publish import decode_publish

_WORK_MAX = limits.WORK_PER_TURN_MAX
_PUBLISH = b"\x00\x02"
_HEARTBEAT = commands.Heartbeat().encode()


class StreamConnectionState(Enum):
    """The states of a connection."""

    GREETING = "starting"
    OPEN = "running"
    CLOSING = "closing"
    FINISHED = "closed"


class StreamConnection:
    """One connection of the stream protocol, without I/O."""

    __slots__ = (
        "_closing_deadline", "_deadline", "_heartbeat", "_is_alarmed", "_is_waiting_for_disk", "_now",
        "_output_listener", "_pending_command", "_reader", "_silence_excused", "_stream_server", "_tuned_at",
        "_waiting_since", "_work", "bytes_counted", "bytes_received", "changes", "command_handler",
        "connected_at", "handshake", "has_more", "history", "outbox", "peer", "read_count", "state",
        "write_count",
    )  # fmt: skip

    def __init__(
        self, stream_server: StreamServer, peer: Peer, output_listener: OutputListener, now: int
    ) -> None:
        self.peer = peer
        self.outbox = Outbox(output_listener)
        self.state = StreamConnectionState.GREETING
        self.connected_at = now
        # Advances when the state that the socket depends on may have changed, as in session.connection.
        self.changes = 0
        self.has_more = False
        self.bytes_received = self.read_count = self.write_count = 0
        # The bytes already included in the counters of the virtual host; and samples of the counters.
        self.bytes_counted = (0, 0)
        self.history: Samples | None = None
        # The handler of commands, once it is open.
        self.command_handler: StreamCommandHandler | None = None
        self._stream_server = stream_server
        self._output_listener = output_listener
        self._now = now
        self._work = 0
        self._reader = StreamFrameReader(limits.STREAM_FRAME_SIZE_HANDSHAKE)
        self.handshake = StreamHandshake(stream_server.server.admission_control, peer, stream_server.settings)
        self._deadline = now + stream_server.settings.timeout_ms
        self._closing_deadline: int | None = None
        # A command that is still executing, and its start (ms).
        self._pending_command: Coroutine[Pending, None, None] | None = None
        self._waiting_since = 0
        # When the client's Tune was received (ms): heartbeats count from then.
        self._tuned_at = now
        self._heartbeat: Heartbeat | None = None
        self._silence_excused = 0
        self._is_alarmed = bool(stream_server.server.blocked_reason)
        self._is_waiting_for_disk = False

    @property
    def is_open(self) -> bool:
        """True once the handshake is complete."""
        return self.state is StreamConnectionState.OPEN

    @property
    def is_finished(self) -> bool:
        """True when only the result of `take_output` must be written before the socket is closed."""
        return self.state is StreamConnectionState.FINISHED

    @property
    def is_reading_paused(self) -> bool:
        """True while the socket of this client must not be read."""
        return self._pending_command is not None or self._is_held

    @property
    def _is_held(self) -> bool:
        """True if publishing must wait."""
        command_handler = self.command_handler
        if (
            command_handler is None
            or self.state is not StreamConnectionState.OPEN
            or not len(command_handler.publishers)
        ):
            return False
        if self._is_alarmed or command_handler.publishers.is_full:
            return True
        credit = command_handler.services.credit
        if not credit.is_spent:
            return False
        if not self._is_waiting_for_disk:
            self._is_waiting_for_disk = True
            credit.wait(self._resume_with_credit)
        return True

    def receive(self, data: bytes, now: int, work: int = _WORK_MAX) -> None:
        """Process the bytes of one read; raises nothing. See `has_more`."""
        self.bytes_received += len(data)
        self.read_count += 1
        self._now = now
        if self.state is StreamConnectionState.FINISHED:
            return
        self._reader.feed(data)
        if not self.has_more and self._pending_command is None:
            self._process_frames(work)

    def process_more(self, now: int, work: int = _WORK_MAX) -> None:
        """Process another turn's work of received data. Call it while `has_more` is true."""
        self._now = now
        self.has_more = False
        if self._pending_command is None:
            self._process_frames(work)

    def take_output(self) -> list[Buffer]:
        """Return the pending output in order, and empty the outbox."""
        self.write_count += 1
        return self.outbox.take()

    def pause_output(self) -> None:
        """Stop deliveries, because the socket accepts no more output."""
        self.outbox.is_paused = True

    def resume_output(self, now: int) -> None:
        """Continue deliveries, because the socket accepts output again."""
        self.outbox.is_paused = False
        self.output_written(now)

    def output_written(self, now: int) -> None:
        """Resume the subscriptions that were held back by a full outbox."""
        self._now = now
        if self.outbox.is_holding_back():
            for held in self.outbox.take_held_back():
                held.resume()  # type: ignore[attr-defined]

    def deadline(self) -> int | None:
        """The time (ms) at which to call `expire`; None if there is no deadline."""
        if self.state is StreamConnectionState.GREETING:
            return None if self._pending_command is not None else self._deadline
        if self._closing_deadline is not None:
            return self._closing_deadline
        beat = self._heartbeat.deadline() if self._heartbeat is not None else None
        ends = answer = None
        if self.command_handler is not None:
            ends, answer = self.command_handler.expires_at, self.command_handler.subscriptions.answer_due
        return min((due for due in (beat, ends, answer) if due is not None), default=None)

    def expire(self, now: int) -> None:
        """Handle a deadline: heartbeat, handshake, close, token expiry or an unanswered request."""
        self._now = now
        if self.state is StreamConnectionState.GREETING or self._closing_deadline is not None:
            due = self.deadline()
            if due is not None and now >= due:
                self._finish()
            return
        command_handler = self.command_handler
        if (
            command_handler is not None
            and command_handler.expires_at is not None
            and now >= command_handler.expires_at
        ):
            self.close(ResponseCode.AUTHENTICATION_FAILURE, "the token has expired")
            return
        if command_handler is not None and self._is_unanswered(command_handler, now):
            self._stream_server.server.report(
                f"dropping stream connection {self.peer.name}: it was told that a consumer is active, "
                f"or is to stop, and did not answer within {limits.STREAM_ANSWER_MS // 1000} s"
            )
            self._finish()
            return
        self._check_heartbeat(now)

    def lost(self, now: int) -> None:
        """Release the connection, because the socket was closed."""
        self._now = now
        self._finish()

    def close(self, code: ResponseCode, reason: str) -> None:
        """Send Close, and wait for its answer."""
        if self.state is not StreamConnectionState.OPEN:
            self._finish()
            return
        self.outbox.raw(commands.Close(code, reason).encode(1))
        self._leave()
        self.state = StreamConnectionState.CLOSING
        self._closing_deadline = self._now + limits.CLOSING_MS
        # Frames that were held are now skipped, up to the client's own Close.
        self._resume_later()
        self.changes += 1

    @property
    def login(self) -> Login | None:
        """The user and what was negotiated; None before the connection was open."""
        handshake = self.handshake
        if self.command_handler is None or handshake.account is None:
            return None
        return Login(
            account=handshake.account,
            mechanism=handshake.mechanism,
            heartbeat_s=handshake.heartbeat_s,
            client_properties=dict(handshake.client_properties),
        )

    @property
    def owner(self) -> Owner:
        """Its identity among all connections, once it is open."""
        assert self.command_handler is not None
        return self.command_handler.owner

    @property
    def vhost_name(self) -> str:
        """The virtual host; empty before the connection was open."""
        return self.handshake.vhost

    @property
    def frame_size_max(self) -> int:
        """The negotiated frame_max in bytes."""
        return self.handshake.frame_size_max

    @property
    def user(self) -> str:
        """The name of its user, once it is open."""
        return self.command_handler.user if self.command_handler is not None else ""

    @property
    def vhost(self) -> str:
        """The name of its virtual host."""
        return self.handshake.vhost

    def state_name(self) -> str:
        """The state of the connection as RabbitMQ's management API names it."""
        if self.is_open and self.command_handler is not None and len(self.command_handler.publishers):
            if self._is_alarmed:
                return "blocked"
            if self._is_waiting_for_disk:
                return "flow"
        return self.state.value

    def disconnect(self, reason: str) -> None:
        """Close the socket for `reason`: an operator, a limit or a shutdown.

        As in RabbitMQ, no Close is sent: clients reconnect after a lost connection, but take a Close, which
        some of them do not expect from a broker, for an error of their own.
        """
        self._finish()
        self._output_listener.output_ready()

    def block(self, reason: str) -> None:
        """Stop reading from it if it publishes, for `reason`; an empty reason ends that."""
        self._is_alarmed = bool(reason)
        self.changes += 1
        self._output_listener.output_ready()
        if not reason:
            self._resume_later()

    # --- private -------------------------------------------------------------------------------

    def _process_frames(self, work: int) -> None:
        """Process complete frames, at most one turn's work."""
        self._work = work
        try:
            while (
                self.state is not StreamConnectionState.FINISHED
                and self._pending_command is None
                and not self._is_held
            ):
                if self._work <= 0:
                    self.has_more = self._reader.has_more
                    break
                frame = self._reader.next()
                if frame is None:
                    break
                self._work -= 1
                self._handle_frame(frame)
        except FrameTooLarge:
            self._refuse(ResponseCode.FRAME_TOO_LARGE, "frame too large")
        except MalformedFrame:
            self._refuse(ResponseCode.UNKNOWN_FRAME, "unknown frame")
        except Exception as error:
            self._stream_server.server.report(
                f"unexpected {type(error).__name__} in stream connection {self.peer.name}"
            )
            self._refuse(ResponseCode.INTERNAL_ERROR, "internal error")
        self.changes += 1

    def _handle_frame(self, frame: bytes) -> None:
        command_handler = self.command_handler
        if self.state is StreamConnectionState.OPEN and command_handler is not None:
            command_handler.services.vhost.now = self._now
            if frame.startswith(_PUBLISH):
                publication = decode_publish(frame)
                self._work -= len(publication.entries)
                command_handler.publishers.publish(publication)
                return
        command, correlation = decode(frame)
        if self.state is StreamConnectionState.CLOSING:
            self._handle_closing(command)
        elif isinstance(command, commands.Close) and self.state is StreamConnectionState.OPEN:
            self.outbox.raw(commands.encode_response(command.key, correlation, ResponseCode.OK))
            self._finish()
        elif command_handler is None or not command_handler.handle_at_once(command, correlation):
            self._waiting_since = self._now
            self._pending_command = self._run(command, correlation)
            self._step()

    def _handle_closing(self, command: StreamCommand) -> None:
        """After Close was sent, only the client's closing is processed."""
        if isinstance(command, commands.Close):
            self._finish()

    async def _run(self, command: StreamCommand, correlation: int) -> None:
        """Execute `command`, and answer it."""
        if self.command_handler is not None:
            await self.command_handler.handle(command, correlation)
            return
        if isinstance(command, commands.Tune | commands.TuneResponse):
            self._tuned_at = self._waiting_since
        answer = await self.handshake.handle(command, correlation)
        if answer:
            self.outbox.raw(answer)
        if self.handshake.phase is StreamHandshakePhase.REFUSED:
            self._stream_server.counts.failures[self.handshake.refusal] += 1
            self._finish()
        elif self.handshake.phase is StreamHandshakePhase.DONE:
            self._open()

    def _step(self) -> None:
        """Continue the command; its exceptions end the connection, as if raised in its first step."""
        command, self._pending_command = self._pending_command, None
        assert command is not None
        pending = step(command)
        if pending is not None:
            self._pending_command = command
            pending.add_done_callback(lambda _: self._stream_server.server.later(self._step_later))
        elif self.state is StreamConnectionState.GREETING:
            # The time that the broker took does not count against the client.
            self._deadline += self._now - self._waiting_since

    def _step_later(self, now: int) -> None:
        self._now = now
        if self._pending_command is None:
            return
        try:
            self._step()
        except MalformedFrame:
            self._refuse(ResponseCode.UNKNOWN_FRAME, "unknown frame")
        except Exception as error:
            self._stream_server.server.report(
                f"unexpected {type(error).__name__} in stream connection {self.peer.name}"
            )
            self._refuse(ResponseCode.INTERNAL_ERROR, "internal error")
        if self._pending_command is None and self.state is not StreamConnectionState.FINISHED:
            self.process_more(now)
        self.changes += 1
        self._output_listener.output_ready()

    def _open(self) -> None:
        """Enter OPEN after the handshake."""
        handshake = self.handshake
        services = self._stream_server.server.vhost_services.get(handshake.vhost)
        assert handshake.account is not None
        if services is None:
            self._finish()
            return
        self.command_handler = StreamCommandHandler(
            self._stream_server,
            services,
            handshake,
            self.outbox,
            resume=self._resume_later,
            has_asked=self._note_questions_later,
        )
        # As in RabbitMQ, the negotiated size is not enforced: clients send a larger message as one frame.
        self._reader.size_max = max(handshake.frame_size_max, limits.STREAM_FRAME_ACCEPTED_MAX)
        self._heartbeat = Heartbeat(handshake.heartbeat_s, self._tuned_at)
        self.state = StreamConnectionState.OPEN
        self._stream_server.server.stream_client_opened(self)
        self._stream_server.server.event_publisher.opened(self, STREAM)

    def _refuse(self, code: ResponseCode, reason: str) -> None:
        """End the connection after a malformed frame; Close is sent if it is open."""
        self._pending_command = None
        self._stream_server.counts.failures[code] += 1
        if self.state is StreamConnectionState.OPEN:
            self.close(code, reason)
            self._closing_deadline = self._now + limits.BROKEN_CLOSING_MS
        else:
            self._finish()

    def _check_heartbeat(self, now: int) -> None:
        heartbeat = self._heartbeat
        if heartbeat is None:
            return
        if self.is_reading_paused:
            # The client may have sent something that was not read.
            self._silence_excused += 1
        pulse = heartbeat.due(now, self.bytes_received + self._silence_excused, self.outbox.total)
        if pulse is HeartbeatAction.SEND:
            self.outbox.raw(_HEARTBEAT)
        elif pulse is HeartbeatAction.DEAD:
            self._stream_server.server.report(f"missed heartbeats from stream connection {self.peer.name}")
            self._finish()

    def _is_unanswered(self, command_handler: StreamCommandHandler, now: int) -> bool:
        """True if the client has not answered a request in time."""
        due = command_handler.subscriptions.answer_due
        if due is None or now < due:
            return False
        if self.is_reading_paused or self.has_more:
            # The client may have sent something that was not read.
            command_handler.subscriptions.note_questions(now, is_excused=True)
            return False
        return True

    def _note_questions_later(self) -> None:
        self._stream_server.server.later(self._note_questions)

    def _note_questions(self, now: int) -> None:
        """Start the timeouts of requests to the client, which another client's actions may have caused."""
        if self.command_handler is not None and self.state is StreamConnectionState.OPEN:
            self.command_handler.subscriptions.note_questions(now)
            self.changes += 1
            self._output_listener.output_ready()

    def _resume_with_credit(self, now: int) -> None:
        """Resume after disk credit was granted."""
        self._is_waiting_for_disk = False
        self._resume(now)

    def _resume_later(self) -> None:
        self._stream_server.server.later(self._resume)

    def _resume(self, now: int) -> None:
        """Continue with held data.

        This is done even if nothing was held: reading was paused as well, and resumes when the transport is
        woken, which happens in every state.
        """
        self._now = now
        if (
            self.state is not StreamConnectionState.FINISHED
            and self._pending_command is None
            and not self.has_more
        ):
            self.process_more(now)
        self.changes += 1
        self._output_listener.output_ready()

    def _leave(self) -> None:
        """Release the resources of the connection."""
        if self.state is StreamConnectionState.OPEN:
            command_handler = self.command_handler
            assert command_handler is not None
            command_handler.close()
            self._stream_server.server.stream_client_closed(self)
            self._stream_server.server.event_publisher.closed(self)

    def _finish(self) -> None:
        self._leave()
        self._pending_command = None
        self._heartbeat = None
        self._closing_deadline = None
        self.state = StreamConnectionState.FINISHED
        self.changes += 1
