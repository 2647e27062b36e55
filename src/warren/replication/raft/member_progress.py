"""What a leader knows of one member: how far its log matches, and what is on the way to it."""

from collections import deque
from enum import Enum


class ProgressState(Enum):
    """How entries are sent to a member."""

    # One message at a time, until the member says where its log matches.
    PROBE = "probe"
    # Many messages at a time, in the hope that all arrive.
    REPLICATE = "replicate"
    # None, because the member needs a snapshot first.
    SNAPSHOT = "snapshot"


# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_REPLICATE = ProgressState.REPLICATE
_SNAPSHOT = ProgressState.SNAPSHOT


class InFlight:
    """Messages with entries that were not answered yet, bounded in number and bytes."""

    __slots__ = ("_bytes", "_bytes_max", "_messages", "_messages_max")

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        """Start with none."""
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._bytes = 0
        # The last index of each message, and its bytes; indexes rise.
        self._messages: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def is_full(self) -> bool:
        """True if no message with entries may be sent; one that is too large by itself goes alone."""
        return len(self._messages) >= self._messages_max or self._bytes >= self._bytes_max

    def add(self, last: int, size: int) -> None:
        """Count a message whose last entry is `last`; the caller has looked at `is_full`."""
        assert not self.is_full, f"the message up to {last} exceeds what may be in flight"
        self._messages.append((last, size))
        self._bytes += size

    def release(self, index: int) -> None:
        """Forget messages whose entries are all at or below `index`."""
        while self._messages and self._messages[0][0] <= index:
            self._bytes -= self._messages.popleft()[1]

    def clear(self) -> None:
        """Forget all messages."""
        self._messages.clear()
        self._bytes = 0


class Progress:
    """The progress of one member. Invariant: match < next, and all entries up to match are durable there."""

    __slots__ = (
        "in_flight", "is_active", "is_learner", "is_paused_for_now", "match", "next", "pending_snapshot",
        "sent_commit", "state",
    )  # fmt: skip

    def __init__(self, following: int, in_flight: InFlight, *, is_learner: bool) -> None:
        """Probe a member whose log may match before index `following`."""
        self.match = 0
        self.next = following
        self.state = ProgressState.PROBE
        self.is_learner = is_learner
        # It has sent something since this was last looked at.
        self.is_active = False
        # The probe, or the message that filled what may be in flight, is not answered.
        self.is_paused_for_now = False
        # Index of the snapshot that is on the way, 0 if none is.
        self.pending_snapshot = 0
        # The highest commit index that messages on the way tell; an estimate.
        self.sent_commit = 0
        self.in_flight = in_flight

    @property
    def is_paused(self) -> bool:
        """True if nothing may be sent but heartbeats."""
        return self.is_paused_for_now or self.state is _SNAPSHOT

    def probe(self) -> None:
        """Send one message at a time, from behind what matches or from behind a snapshot that was sent."""
        following = self.match + 1
        if self.state is ProgressState.SNAPSHOT:
            following = max(following, self.pending_snapshot + 1)
        self._reset(ProgressState.PROBE)
        self.next = following
        self.sent_commit = min(self.sent_commit, following - 1)

    def replicate(self) -> None:
        """Send many messages at a time, from behind what matches."""
        self._reset(ProgressState.REPLICATE)
        self.next = self.match + 1

    def send_snapshot(self, index: int) -> None:
        """Send no entries until the member has the snapshot."""
        self._reset(ProgressState.SNAPSHOT)
        self.pending_snapshot = index
        self.next = index + 1
        self.sent_commit = index

    def has_sent(self, count: int, size: int) -> None:
        """Note that an append with this many entries was sent, which may be none."""
        if self.state is _REPLICATE:
            if count:
                self.next += count
                self.in_flight.add(self.next - 1, size)
            # A message that fills what may be in flight is a probe, as is an empty one behind it.
            self.is_paused_for_now = self.in_flight.is_full
        elif count:
            self.is_paused_for_now = True

    def matches(self, index: int) -> bool:
        """Note that everything up to `index` is durable at the member; return whether that is news."""
        if index <= self.match:
            return False
        self.match = index
        if self.next <= index:
            self.next = index + 1
        self.is_paused_for_now = False
        return True

    def refuses(self, index: int, hint: int) -> bool:
        """Note that an append behind `index` was refused; return False if that is old news.

        `hint` is an index at which the logs may match.
        """
        if self.state is ProgressState.REPLICATE:
            if index <= self.match:
                return False
            self.next = self.match + 1
        else:
            if self.next - 1 != index:
                return False
            self.next = max(min(index, hint + 1), self.match + 1)
            self.is_paused_for_now = False
        self.sent_commit = min(self.sent_commit, self.next - 1)
        return True

    def lacks_commit(self, commit: int) -> bool:
        """Return whether a message could tell the member of a higher commit index than those on the way."""
        return commit > self.sent_commit and self.sent_commit < self.next - 1

    def _reset(self, state: ProgressState) -> None:
        self.state = state
        self.is_paused_for_now = False
        self.pending_snapshot = 0
        self.in_flight.clear()
