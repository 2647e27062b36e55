"""What the connections of both protocols share: their states, output, counters, timers and turns.

    HANDSHAKE ── open ──▶ OPEN ── close from either side ──▶ CLOSING ── its answer, or timeout ──▶ FINISHED

The transport calls it. A protocol adds its frames, its handshake and its close, and implements the methods
that raise NotImplementedError.
"""

from collections.abc import Callable
from enum import Enum

from warren.framing.driven_connection import LINK_CAPABILITY, DrivenConnection
from warren.framing.heartbeat import HeartbeatAction
from warren.framing.outbox import Buffer, Outbox
from warren.framing.output_listener import OutputListener
from warren.model.samples import Samples
from warren.session.channel import Channel
from warren.session.connection_deadlines import ConnectionDeadlines
from warren.session.login import Login
from warren.session.peer import Peer
from warren.session.pending_command import PendingCommand
from warren.session.server import Server
from warren.session.vhost_services import VhostServices


class ConnectionState(Enum):
    """The states of a connection; the values are RabbitMQ's names in its texts and its management API."""

    HANDSHAKE = "starting"
    OPEN = "running"
    CLOSING = "closing"
    FINISHED = "closed"


class BaseConnection(DrivenConnection):
    """One connection of a client, without I/O."""

    __slots__ = (
        "_output_listener", "_will_resume", "bytes_counted", "bytes_received", "connected_at", "deadlines",
        "history", "is_dirty", "login", "outbox", "owner", "peer", "pending_command", "read_count", "server",
        "services", "state", "turn", "write_count",
    )  # fmt: skip

    def __init__(self, server: Server, peer: Peer, output_listener: OutputListener) -> None:
        super().__init__()
        self.server = server
        self.turn = server.turn
        self.peer = peer
        self._output_listener = output_listener
        self.outbox = Outbox(output_listener)
        self.connected_at = self.turn.now()
        self.state = ConnectionState.HANDSHAKE
        # A command that waits, and holds up the frames behind it.
        self.pending_command = PendingCommand(server.later, self._resume_command)
        # True while a turn is scheduled that processes held frames.
        self._will_resume = False
        # The virtual host and the user, once the connection is open.
        self.services: VhostServices | None = None
        self.login: Login | None = None
        # The owner of its exclusive queues, unique among the connections of both protocols.
        self.owner = server.next_owner()
        # Counters of the socket: bytes and reads received, and writes; `outbox` counts the bytes sent.
        self.bytes_counted = (0, 0)
        self.bytes_received = self.read_count = self.write_count = 0
        # True while the connection is in `Server.moved`; `history` is set by the sampler.
        self.is_dirty = False
        self.history: Samples | None = None
        self.deadlines = ConnectionDeadlines()

    @property
    def is_finished(self) -> bool:
        """True when only the result of `take_output` must be written before the socket is closed."""
        return self.state is ConnectionState.FINISHED

    @property
    def description(self) -> str:
        """The connection in the log."""
        return f"connection {self.peer.name}"

    @property
    def is_link(self) -> bool:
        """True if the client is a shovel or federation link of a Warren, once the connection is open."""
        return self.login is not None and LINK_CAPABILITY in self.login.capabilities

    @property
    def user(self) -> str:
        """The name of the user; empty before the connection was open."""
        return "" if self.login is None else self.login.user

    @property
    def identity(self) -> str:
        """Who the user is, also among users of other issuers; empty before the connection was open."""
        return "" if self.login is None else self.login.identity

    @property
    def vhost_name(self) -> str:
        """The name of the virtual host; empty before the connection was open."""
        return "" if self.services is None else self.services.vhost.name

    @property
    def channels(self) -> dict[int, Channel]:
        """The open channels by number; a protocol without channels has none."""
        return {}

    @property
    def frame_size_max(self) -> int:
        """The negotiated frame_max in bytes."""
        return self.outbox.frame_size_max

    # --- output ---------------------------------------------------------------------------------

    def take_output(self) -> list[Buffer]:
        """Return the pending output in order, and empty the outbox."""
        self.write_count += 1
        if not self.is_dirty:
            self._mark_dirty()
        return self.outbox.take()

    def pause_output(self) -> None:
        """Stop deliveries, because the socket accepts no more output."""
        self.outbox.is_paused = True

    def resume_output(self) -> None:
        """Continue deliveries, because the socket accepts output again."""
        self.outbox.is_paused = False
        self.output_written()

    def output_written(self) -> None:
        """Resume the consumers that were held back by a full outbox."""
        if self.outbox.is_holding_back():
            for held in self.outbox.take_held_back():
                held.resume()  # type: ignore[attr-defined]

    # --- time -----------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """The time (ms) at which to call `expire`; None if there is no deadline."""
        if self.is_open:
            return self.deadlines.next(self._token_expiry(), self.protocol_deadline())
        if self.state is ConnectionState.HANDSHAKE:
            return self.handshake_deadline()
        return self.deadlines.closing

    def expire(self) -> None:
        """Handle a deadline: handshake, close, token expiry, heartbeat, or one of the protocol."""
        now, due = self.turn.now(), self.deadline()
        if due is None or now < due:
            return
        if self.is_open:
            self.expire_open(now)
            return
        if self.state is ConnectionState.HANDSHAKE:
            self.handshake_timed_out()
        self.finish()

    def _token_expiry(self) -> int | None:
        """When the token expires with which the client logged in (ms); None without one."""
        return None if self.login is None else self.login.expires_at

    def is_token_expired(self, now: int) -> bool:
        """True if the token with which the client logged in is no longer valid."""
        expires_at = self._token_expiry()
        return expires_at is not None and now >= expires_at

    def is_heartbeat_missed(self, now: int, frame: bytes) -> bool:
        """Send the heartbeat `frame` if it is due; True if the client has missed its own."""
        action = self.deadlines.heartbeat_due(
            now, self.bytes_received, self.outbox.total, is_reading_paused=self.is_reading_paused
        )
        if action is HeartbeatAction.SEND:
            self.outbox.raw(frame)
        return action is HeartbeatAction.DEAD

    # --- states ---------------------------------------------------------------------------------

    def guard(self, action: Callable[[], None]) -> None:
        """Run `action`; its exceptions end the connection."""
        try:
            action()
        except Exception as error:
            self.fail_with(error)

    def enter_open(self, login: Login, services: VhostServices, tuned_at: int) -> None:
        """Enter OPEN after the handshake; heartbeats count from `tuned_at` (ms)."""
        self.login = login
        self.services = services
        self.deadlines.start_heartbeat(login.heartbeat_s, tuned_at)
        self.is_open = True
        self.state = ConnectionState.OPEN

    def finish(self) -> None:
        """Enter FINISHED: nothing more is processed."""
        self.changes += 1
        self.pending_command.close()
        self.deadlines.clear()
        self.state = ConnectionState.FINISHED

    def resume_later(self) -> None:
        """Process held frames in a turn of its own."""
        if not self._will_resume:
            self._will_resume = True
            self.server.later(self.resume)

    def resume(self, _: int) -> None:
        """Process held frames."""
        self._will_resume = False
        self.process_held()

    def _resume_command(self, _: int) -> None:
        """Continue a command that has waited, then the frames behind it."""
        if not self.pending_command.is_waiting:
            return
        self.guard(self.proceed)
        if not self.pending_command.is_waiting and self.state is not ConnectionState.FINISHED:
            self.process_more()
        self.wake()

    def wake(self) -> None:
        """Have the socket follow the state of the connection, also if there is no output."""
        self.changes += 1
        self._output_listener.output_ready()

    def count_read(self, size: int) -> None:
        """Count a read of `size` bytes."""
        self.bytes_received += size
        self.read_count += 1
        if not self.is_dirty:
            self._mark_dirty()

    def _mark_dirty(self) -> None:
        """Add the connection to `Server.moved`, once between two calls of `Server.take_dirty`."""
        if self.is_open:
            self.is_dirty = True
            self.server.moved[self] = None

    def report_unexpected(self, error: Exception) -> None:
        """Report `error`, an exception that no protocol error caused; call it while it is handled."""
        self.server.report(f"unexpected {type(error).__name__} in {self.description}")

    # --- what a protocol adds -------------------------------------------------------------------

    @property
    def protocol(self) -> str:
        """The protocol, as events name it."""
        raise NotImplementedError

    def state_name(self, now: int) -> str:
        """The state of the connection as RabbitMQ's management API names it; `now` in ms."""
        raise NotImplementedError

    def block(self, reason: str) -> None:
        """Block publishing for `reason`; an empty reason unblocks it."""
        raise NotImplementedError

    def disconnect(self, reason: str) -> None:
        """Close the connection for `reason`: an operator, a limit or a shutdown."""
        raise NotImplementedError

    def renew(self, login: Login) -> None:
        """Replace the login by `login`, because the client has renewed its token."""
        self.login = login
        self.changes += 1

    def proceed(self) -> None:
        """Continue the command that has waited."""
        raise NotImplementedError

    def handshake_deadline(self) -> int | None:
        """When the client is dropped unless its handshake is complete; None while the broker is busy."""
        raise NotImplementedError

    def handshake_timed_out(self) -> None:
        """Note that the deadline of the handshake has passed."""

    def protocol_deadline(self) -> int | None:
        """The next deadline of an open connection that only this protocol has; None without one."""
        raise NotImplementedError

    def expire_open(self, now: int) -> None:
        """Handle a deadline of an open connection."""
        raise NotImplementedError

    def process_held(self) -> None:
        """Process the frames that were held while publishing was blocked."""
        raise NotImplementedError

    def fail_with(self, error: Exception) -> None:
        """End the connection after `error`, which was raised by its frames or an action of it."""
        raise NotImplementedError
