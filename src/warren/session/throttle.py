"""Why a client is held up, and whether it was told (RabbitMQ's connection.blocked).

While an alarm is on, or the disk has enough to do, the frames of a channel that publishes are held, but for
acknowledgements, and all other channels go on: what would clear the alarm is still read. Only when too much
is held is nothing read at all. Of alarms clients are told, of the disk they are not.
"""

from collections.abc import Callable

from warren.flow.credit import PublishCredit
from warren.limits import FLOW_SHOWN_MS, HELD_FRAMES_SIZE_MAX, HELD_FRAMES_TOTAL_SIZE_MAX
from warren.session.outbox import Outbox
from warren.wire.methods import ConnectionBlocked, ConnectionUnblocked

# Less than this must be held before those are read who were not: else each frame that goes on wakes them all.
_TOTAL_RESUMED = HELD_FRAMES_TOTAL_SIZE_MAX // 8 * 7


class HeldTotal:
    """The frames that all connections of a broker hold, and the connections that are not read for that."""

    __slots__ = ("_later", "_paused", "size")

    def __init__(self, later: Callable[[Callable[[int], None]], None]) -> None:
        # Has an action called with the time (ms) in a turn of its own.
        self._later = later
        self._paused: dict[Throttle, None] = {}
        self.size = 0

    def wait(self, throttle: "Throttle") -> None:
        """Have `throttle` go on when much less is held, whoever held it."""
        self._paused[throttle] = None

    def release(self, size: int) -> None:
        """`size` octets of frames wait no longer."""
        self.size -= size
        if self._paused and self.size <= _TOTAL_RESUMED:
            paused, self._paused = self._paused, {}
            for throttle in paused:
                self._later(throttle.resume)

    def forget(self, throttle: "Throttle") -> None:
        """`throttle` is closed."""
        self._paused.pop(throttle, None)


class Throttle:
    """The state of one connection under alarms, and before a slow disk."""

    __slots__ = (
        "_outbox", "_resume", "_sends_blocked", "_total", "_waited_at", "credit", "held_size", "is_blocked",
        "is_waiting", "reason",
    )  # fmt: skip

    def __init__(self, outbox: Outbox, total: HeldTotal) -> None:
        self._outbox = outbox
        self._total = total
        # Why publishers are to be held up now; empty when they are not.
        self.reason = ""
        # Of the virtual host, once it is known; and what goes on when there is credit again.
        self.credit: PublishCredit = None  # type: ignore[assignment]
        self._resume: Callable[[int], None] = _nothing
        self.held_size = 0
        # The client announced connection.blocked.
        self._sends_blocked = False
        # A publish of this connection was held up since the alarm began.
        self.is_blocked = False
        # It stands in the line of those who wait for credit; and when it last did (ms).
        self.is_waiting = False
        self._waited_at = -FLOW_SHOWN_MS

    def open(self, credit: PublishCredit, resume: Callable[[int], None], *, sends_blocked: bool) -> None:
        """The connection is open: it waits for `credit`, and is told of alarms if it knows of them."""
        self.credit = credit
        self._resume = resume
        self._sends_blocked = sends_blocked

    def close(self) -> None:
        """The connection is closed: it waits for nothing."""
        self._total.forget(self)
        self._resume = _nothing

    def hold_publisher(self, now: int) -> None:
        """Something was published although it should wait: of an alarm, the client is told so, once."""
        if not self.reason:
            self._waited_at = now
            if not self.is_waiting:
                self.is_waiting = True
                self.credit.wait(self._resume_with_credit)
        elif not self.is_blocked:
            self.is_blocked = True
            if self._sends_blocked:
                self._outbox.method(0, ConnectionBlocked(self.reason))

    def block(self, reason: str) -> None:
        """Hold publishers up for `reason`; an empty one ends that."""
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
        """`size` more octets of frames wait in memory."""
        self.held_size += size
        self._total.size += size

    def released(self, size: int) -> None:
        """`size` octets of frames wait no longer."""
        self.held_size -= size
        self._total.release(size)

    @property
    def is_reading_paused(self) -> bool:
        """True if no more may be read from this client; it is told when it may, once it has asked."""
        if self.held_size > 0 and self._total.size >= HELD_FRAMES_TOTAL_SIZE_MAX:
            self._total.wait(self)
            return True
        return self.held_size >= HELD_FRAMES_SIZE_MAX

    def resume(self, now: int) -> None:
        """The connection looks again at what it holds, and at whether it may be read."""
        self._resume(now)

    def _resume_with_credit(self, now: int) -> None:
        """It stands in the line no more."""
        self.is_waiting = False
        self._waited_at = now
        self._resume(now)


def _nothing(now: int) -> None:
    """Before the connection is open."""
