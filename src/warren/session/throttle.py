"""Flow control of publishing connections, by alarms and disk credit (RabbitMQ's connection.blocked).

During an alarm, or while the disk is overloaded, the frames of a channel that publishes are held, except
acknowledgements; other channels continue, so that what could end the alarm is still read. Reading stops only
when too many frames are held: few without an alarm, since nothing that a client sends brings credit. Clients
are notified of alarms, but not of credit.
"""

from collections.abc import Callable
from functools import partial

from warren.flow.credit import PublishCredit
from warren.framing.outbox import Outbox
from warren.limits import (
    FLOW_SHOWN_MS,
    HELD_FOR_CREDIT_SIZE_MAX,
    HELD_FRAMES_SIZE_MAX,
    HELD_FRAMES_TOTAL_SIZE_MAX,
)
from warren.wire.methods import ConnectionBlocked, ConnectionUnblocked

# Paused connections resume below this total, lower than the limit, so that not every frame wakes all of them.
_TOTAL_RESUMED = HELD_FRAMES_TOTAL_SIZE_MAX // 8 * 7


class HeldTotal:
    """The total size of held frames, and the connections that are not read because of it."""

    __slots__ = ("_later", "_paused", "size")

    def __init__(self, later: Callable[[Callable[[int], None]], None]) -> None:
        # Runs an action with the time (ms) in a turn of its own.
        self._later = later
        self._paused: dict[Throttle, None] = {}
        self.size = 0

    def wait(self, throttle: "Throttle") -> None:
        """Resume `throttle` when the total is well below the limit."""
        self._paused[throttle] = None

    def release(self, size: int) -> None:
        """Subtract `size` bytes of frames that are no longer held."""
        self.size -= size
        if self._paused and self.size <= _TOTAL_RESUMED:
            paused, self._paused = self._paused, {}
            for throttle in paused:
                self._later(throttle.resume)

    def forget(self, throttle: "Throttle") -> None:
        """Remove `throttle`, which is closed."""
        self._paused.pop(throttle, None)


class Throttle:
    """The flow control of one connection."""

    __slots__ = (
        "_awaited", "_holds_for_credit", "_outbox", "_resume", "_sends_blocked", "_total", "_waited_at",
        "credit", "held_size", "is_blocked", "is_waiting", "reason",
    )  # fmt: skip

    def __init__(self, outbox: Outbox, total: HeldTotal) -> None:
        self._outbox = outbox
        self._total = total
        # The reason of the current alarm; empty without one.
        self.reason = ""
        # The credit of the virtual host, once known; and what to call when there is credit again.
        self.credit: PublishCredit = None  # type: ignore[assignment]
        self._resume: Callable[[int], None] = _nothing
        self.held_size = 0
        # True from a publish that was held for want of credit until no frame is held.
        self._holds_for_credit = False
        # True if the client has the capability connection.blocked.
        self._sends_blocked = False
        # True if a publish of this connection was held since the alarm began.
        self.is_blocked = False
        # Whether it waits for credit, for which, and when it last did (ms).
        self.is_waiting = False
        self._awaited: dict[PublishCredit, None] = {}
        self._waited_at = -FLOW_SHOWN_MS

    def open(self, credit: PublishCredit, resume: Callable[[int], None], *, sends_blocked: bool) -> None:
        """Start flow control of an open connection; the client is notified of alarms if `sends_blocked`."""
        self.credit = credit
        self._resume = resume
        self._sends_blocked = sends_blocked

    def close(self) -> None:
        """Stop flow control, because the connection is closed."""
        self._total.forget(self)
        self._resume = _nothing

    def hold_publisher(self, now: int) -> None:
        """Note that a publish is held; in an alarm, notify the client once."""
        if not self.reason:
            self.wait_for(self.credit, now)
        elif not self.is_blocked:
            self.is_blocked = True
            if self._sends_blocked:
                self._outbox.method(0, ConnectionBlocked(self.reason))

    def wait_for(self, credit: PublishCredit, now: int) -> None:
        """Note that a publish is held until there is `credit`."""
        self._waited_at = now
        self._holds_for_credit = True
        if credit not in self._awaited:
            self._awaited[credit] = None
            self.is_waiting = True
            credit.wait(partial(self._resume_with_credit, credit))

    def block(self, reason: str) -> None:
        """Set the reason of the alarm; an empty reason ends it."""
        self.reason = reason
        if not reason and self.is_blocked:
            self.is_blocked = False
            if self._sends_blocked:
                self._outbox.method(0, ConnectionUnblocked())

    def state_name(self, now: int) -> str:
        """The state of an open connection in RabbitMQ's words: running, blocking, blocked or flow."""
        if self.reason:
            return "blocked" if self.is_blocked else "blocking"
        if self.is_waiting or now - self._waited_at < FLOW_SHOWN_MS:
            return "flow"
        return "running"

    def held(self, size: int) -> None:
        """Add `size` bytes of frames that are held in memory."""
        self.held_size += size
        self._total.size += size

    def released(self, size: int) -> None:
        """Subtract `size` bytes of frames that are no longer held."""
        self.held_size -= size
        if not self.held_size:
            self._holds_for_credit = False
        self._total.release(size)

    @property
    def is_reading_paused(self) -> bool:
        """True if the client must not be read; registers for the resumption if the total is too large."""
        if self.held_size > 0 and self._total.size >= HELD_FRAMES_TOTAL_SIZE_MAX:
            self._total.wait(self)
            return True
        is_in_alarm = bool(self.reason) or not self._holds_for_credit
        return self.held_size >= (HELD_FRAMES_SIZE_MAX if is_in_alarm else HELD_FOR_CREDIT_SIZE_MAX)

    def resume(self, now: int) -> None:
        """Resume the connection: held frames, and reading."""
        self._resume(now)

    def _resume_with_credit(self, credit: PublishCredit, now: int) -> None:
        """Resume the connection after it has waited for `credit`."""
        del self._awaited[credit]
        self.is_waiting = bool(self._awaited)
        self._waited_at = now
        self._resume(now)


def _nothing(now: int) -> None:
    """Placeholder until the connection is open."""
