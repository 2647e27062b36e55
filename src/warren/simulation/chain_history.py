"""What may happen to the messages of a chain of classic queues that pass dead letters on at most once.

A dead letter is published to the next queue and removed from its own without waiting for one before the
other. A crash meanwhile may lose it, or leave it in both. Nothing else may: a message that was confirmed is
in one of the queues, unless it was being moved when the broker ended. It may have been if something has
happened in the chain since the broker was at rest, or time has passed, and it was delivered or had waited
for its TTL.
"""

from msgspec import Struct


class ChainHistory(Struct, eq=False):
    """The chain that begins in one queue: whether a message may be moving."""

    # The time that a message may wait in the first queue.
    ttl: int
    # True if something has happened in the chain since the broker was at rest.
    is_disturbed: bool = True
    _rest_at: int = 0
    _latest: int = 0

    def disturbed(self) -> None:
        """A message was sent, rejected or returned."""
        self.is_disturbed = True

    def at_rest(self, now: int) -> None:
        """Nothing is under way, and everything is on the disk."""
        self.is_disturbed = False
        self._rest_at = now

    def may_be_moving(self, sent_at: int, now: int, *, was_delivered: bool) -> bool:
        """True if a crash at `now` may have interrupted the move of a message sent at `sent_at`."""
        self._latest = max(self._latest, now)
        if not self.is_disturbed and now == self._rest_at:
            return False
        # Once it may have left the first queue, it may move in those behind, also if the clock is set back.
        return was_delivered or self._latest >= sent_at + self.ttl
