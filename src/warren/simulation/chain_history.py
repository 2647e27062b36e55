"""What may happen to the messages of a chain of queues that pass dead letters on.

At most once, a dead letter is published to the next queue and removed from its own without waiting for one
before the other. A crash meanwhile may lose it, or leave it in both. Nothing else may, as long as its target
takes it: a message that was confirmed is in one of the queues, unless it was being moved when the broker
ended. It may have been if something has happened in the chain since the broker was at rest, or time has
passed, and it was delivered or had waited for its time to live. Once its target was full or had no route, a
message that may have died may be lost.

At least once, neither loses a message; a crash may leave it twice in its target.
"""

from msgspec import Struct

from warren.simulation.message_copy import Copy


class ChainHistory(Struct, eq=False, kw_only=True):
    """The chain that begins in one queue: whether a message may be moving."""

    # True if its dead letters are published at least once.
    keeps_dead_letters: bool = False
    # True if its queues are of several kinds, so that a transient message may survive in one of them.
    has_kinds: bool = False
    # True if something has happened in the chain since the broker was at rest.
    is_disturbed: bool = True
    # True if its target may have refused dead letters since all of them have certainly arrived.
    was_broken: bool = False
    _rest_at: int = 0
    _latest: int = 0

    def disturbed(self) -> None:
        """A message was sent, rejected or returned."""
        self.is_disturbed = True

    def broken(self) -> None:
        """The target may refuse dead letters from now on."""
        self.is_disturbed = self.was_broken = True

    def at_rest(self, now: int) -> None:
        """Nothing is under way, and everything is on the disk."""
        self.is_disturbed = False
        self._rest_at = now

    def crashed(self, copy: Copy, now: int) -> None:
        """The broker has ended, which may have interrupted the move of `copy`."""
        if not self._may_have_died(copy, now) or not (self.is_disturbed or now != self._rest_at):
            self.spoiled(copy, now)
        elif self.keeps_dead_letters:
            copy.may_repeat = True
        else:
            _lose(copy)

    def spoiled(self, copy: Copy, now: int) -> None:
        """`copy` may be lost if its dead letter may have been refused."""
        if self.was_broken and not self.keeps_dead_letters and self._may_have_died(copy, now):
            _lose(copy)

    def _may_have_died(self, copy: Copy, now: int) -> bool:
        self._latest = max(self._latest, now)
        # Once it may have left the first queue, it may move in those behind, also if the clock is set back.
        has_expired = copy.ttl_ms is not None and self._latest >= copy.sent_at + copy.ttl_ms
        return copy.is_delivered or has_expired


def _lose(copy: Copy) -> None:
    copy.is_uncertain = copy.may_repeat = True
    copy.is_promised = False
