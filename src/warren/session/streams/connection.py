"""One connection of the stream protocol: its frames, its commands, and its end.

Its states are those of `base_connection`. Frames are processed in order. Publish and Credit never wait; other
commands may, and delay the frames after them. A client that publishes is not read while the disk is
overloaded, an alarm is set, or too many messages are unconfirmed.
"""

from warren import limits
from warren.framing.output_listener import OutputListener
from warren.session.base_connection import BaseConnection, ConnectionState
from warren.session.events.event_publisher import STREAM
from warren.session.peer import Peer
from warren.session.streams.command_handler import StreamCommandHandler
from warren.session.streams.handshake import StreamHandshake, StreamHandshakePhase
from warren.session.streams.stream_server import StreamServer
from warren.wire.streams import commands
from warren.wire.streams.codes import FrameTooLarge, MalformedFrame, ResponseCode
from warren.wire.streams.commands import StreamCommand, decode
from warren.wire.streams.frames import StreamFrameReader
from warren.wire.streams.publish import decode_publish

_WORK_MAX = limits.WORK_PER_TURN_MAX
_PUBLISH = b"\x00\x02"
_HEARTBEAT = commands.Heartbeat().encode()


class StreamConnection(BaseConnection):
    """One connection of the stream protocol, without I/O."""

    __slots__ = (
        "_handshake", "_is_alarmed", "_is_waiting_for_disk", "_reader", "_stream_server", "_tuned_at",
        "_work", "command_handler",
    )  # fmt: skip

    def __init__(self, stream_server: StreamServer, peer: Peer, output_listener: OutputListener) -> None:
        super().__init__(stream_server.server, peer, output_listener)
        # The handler of commands, once it is open.
        self.command_handler: StreamCommandHandler | None = None
        self._stream_server = stream_server
        self._work = 0
        self._reader = StreamFrameReader(stream_server.settings.frame_size_handshake)
        self._handshake = StreamHandshake(
            self.server.admission_control,
            peer,
            stream_server.settings,
            deadline=self.connected_at + stream_server.settings.timeout_ms,
        )
        # When the client's Tune was received (ms): heartbeats count from then.
        self._tuned_at = self.connected_at
        self._is_alarmed = bool(self.server.blocked_reason)
        self._is_waiting_for_disk = False
        self.server.connection_log.stream_accepted(self)

    @property
    def protocol(self) -> str:
        """The protocol, as events name it."""
        return STREAM

    @property
    def description(self) -> str:
        """The connection in the log."""
        return f"stream {super().description}"

    @property
    def is_reading_paused(self) -> bool:
        """True while the socket of this client must not be read."""
        return self.pending_command.is_waiting or self._is_held

    @property
    def _is_held(self) -> bool:
        """True if publishing must wait."""
        command_handler = self.command_handler
        if command_handler is None or not self.is_open or not len(command_handler.publishers):
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

    def receive(self, data: bytes, work: int = _WORK_MAX) -> None:
        """Process the bytes of one read; raises nothing. See `has_more`."""
        self.count_read(len(data))
        if self.state is ConnectionState.FINISHED:
            return
        self._reader.feed(data)
        if not self.has_more and not self.pending_command.is_waiting:
            self._process_frames(work)

    def process_more(self, work: int = _WORK_MAX) -> None:
        """Process another turn's work of received data. Call it while `has_more` is true."""
        self.has_more = False
        if not self.pending_command.is_waiting:
            self._process_frames(work)

    def lost(self) -> None:
        """Release the connection, because the socket was closed."""
        self.finish()

    def close(self, code: ResponseCode, reason: str, *, is_broken: bool = False) -> None:
        """Send Close, and wait for its answer; not for long if the client's input `is_broken`."""
        if not self.is_open:
            self.finish()
            return
        self.outbox.raw(commands.Close(code, reason).encode(1))
        self._leave()
        self.state = ConnectionState.CLOSING
        self.deadlines.begin_closing(self.turn.now(), is_broken=is_broken)
        # Frames that were held are now skipped, up to the client's own Close.
        self.resume_later()
        self.changes += 1

    def disconnect(self, reason: str) -> None:
        """Close the socket for `reason`: an operator, a limit or a shutdown.

        As in RabbitMQ, no Close is sent: clients reconnect after a lost connection, but take a Close, which
        some of them do not expect from a broker, for an error of their own.
        """
        self.finish()
        self.wake()

    def block(self, reason: str) -> None:
        """Stop reading from it if it publishes, for `reason`; an empty reason ends that."""
        self._is_alarmed = bool(reason)
        self.wake()
        if not reason:
            self.resume_later()

    def state_name(self, now: int) -> str:
        """The state of the connection as RabbitMQ's management API names it; `now` in ms."""
        if self.is_open and self.command_handler is not None and len(self.command_handler.publishers):
            if self._is_alarmed:
                return "blocked"
            if self._is_waiting_for_disk:
                return "flow"
        return self.state.value

    # --- private -------------------------------------------------------------------------------

    def _process_frames(self, work: int) -> None:
        """Process complete frames, at most one turn's work."""
        self._work = work
        try:
            while (
                self.state is not ConnectionState.FINISHED
                and not self.pending_command.is_waiting
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
        except Exception as error:
            self.fail_with(error)
        self.changes += 1

    def _handle_frame(self, frame: bytes) -> None:
        command_handler = self.command_handler
        if self.is_open and command_handler is not None and frame.startswith(_PUBLISH):
            publication = decode_publish(frame)
            self._work -= len(publication.entries)
            command_handler.publishers.publish(publication)
            return
        command, correlation = decode(frame)
        if self.state is ConnectionState.CLOSING:
            # After Close was sent, only the client's closing is processed.
            if isinstance(command, commands.Close):
                self.finish()
        elif isinstance(command, commands.Close) and self.is_open:
            self.outbox.raw(commands.encode_response(command.key, correlation, ResponseCode.OK))
            self.finish()
        elif command_handler is None or not command_handler.handle_at_once(command, correlation):
            self.pending_command.start(self._run(command, correlation), self.turn.now())
            self._extend_deadline()

    async def _run(self, command: StreamCommand, correlation: int) -> None:
        """Execute `command`, and answer it."""
        if self.command_handler is not None:
            await self.command_handler.handle(command, correlation)
            return
        if isinstance(command, commands.Tune | commands.TuneResponse):
            self._tuned_at = self.pending_command.started_at
        answer = await self._handshake.handle(command, correlation)
        if answer:
            self.outbox.raw(answer)
        if self._handshake.phase is StreamHandshakePhase.REFUSED:
            self._stream_server.counts.failures[self._handshake.refusal] += 1
            self.finish()
        elif self._handshake.phase is StreamHandshakePhase.DONE:
            self._open()

    def proceed(self) -> None:
        self.pending_command.proceed()
        self._extend_deadline()

    def _extend_deadline(self) -> None:
        """Do not count the time that the broker took against the client."""
        if self.state is ConnectionState.HANDSHAKE and not self.pending_command.is_waiting:
            self._handshake.deadline += self.turn.now() - self.pending_command.started_at

    def _open(self) -> None:
        """Enter OPEN after the handshake."""
        handshake = self._handshake
        services = self.server.vhost_services.get(handshake.vhost)
        if services is None:
            self.finish()
            return
        # As in RabbitMQ, the negotiated size is not enforced: clients send a larger message as one frame.
        self._reader.size_max = max(handshake.frame_size_max, limits.STREAM_FRAME_ACCEPTED_MAX)
        self.outbox.frame_size_max = handshake.frame_size_max
        self.enter_open(handshake.login(), services, self._tuned_at)
        self.command_handler = StreamCommandHandler(
            self._stream_server,
            self,
            handshake,
            resume=self.resume_later,
            has_asked=self._note_questions_later,
        )
        self.server.stream_opened(self)

    def fail_with(self, error: Exception) -> None:
        if isinstance(error, FrameTooLarge):
            self._refuse(ResponseCode.FRAME_TOO_LARGE, "frame too large")
        elif isinstance(error, MalformedFrame):
            self._refuse(ResponseCode.UNKNOWN_FRAME, "unknown frame")
        else:
            self.report_unexpected(error)
            self._refuse(ResponseCode.INTERNAL_ERROR, "internal error")

    def _refuse(self, code: ResponseCode, reason: str) -> None:
        """End the connection after a malformed frame; Close is sent if it is open."""
        self.pending_command.cancel()
        self._stream_server.counts.failures[code] += 1
        self.close(code, reason, is_broken=True)

    def handshake_deadline(self) -> int | None:
        return None if self.pending_command.is_waiting else self._handshake.deadline

    def protocol_deadline(self) -> int | None:
        """When the client must have answered a request."""
        return None if self.command_handler is None else self.command_handler.subscriptions.answer_due

    def expire_open(self, now: int) -> None:
        command_handler = self.command_handler
        assert command_handler is not None
        if self.is_token_expired(now):
            self.close(ResponseCode.AUTHENTICATION_FAILURE, "the token has expired")
        elif self._is_unanswered(command_handler, now):
            self.server.report(
                f"dropping {self.description}: no response to consumer_update within "
                f"{limits.STREAM_ANSWER_MS // 1000} s"
            )
            self.finish()
        elif self.is_heartbeat_missed(now, _HEARTBEAT):
            self.server.report(f"missed heartbeats from {self.description}")
            self.finish()

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
        self.server.later(self._note_questions)

    def _note_questions(self, now: int) -> None:
        """Start the timeouts of requests to the client, which another client's actions may have caused."""
        if self.command_handler is not None and self.is_open:
            self.command_handler.subscriptions.note_questions(now)
            self.wake()

    def _resume_with_credit(self, now: int) -> None:
        """Resume after disk credit was granted."""
        self._is_waiting_for_disk = False
        self.resume(now)

    def process_held(self) -> None:
        """Continue with held data.

        This is done even if nothing was held: reading was paused as well, and resumes when the transport is
        woken, which happens in every state.
        """
        if (
            self.state is not ConnectionState.FINISHED
            and not self.pending_command.is_waiting
            and not self.has_more
        ):
            self.process_more()
        self.wake()

    def _leave(self) -> None:
        """Release the resources of the connection."""
        if self.is_open:
            self.is_open = False
            assert self.command_handler is not None
            self.command_handler.close()
            self.server.stream_closed(self)

    def finish(self) -> None:
        self._leave()
        super().finish()
