"""What waits for the link to a home: how much of it, and the credit of those that publish too much."""

from warren.cluster.queue_traffic import QueueTraffic
from warren.flow.credit import PublishCredit
from warren.limits_cluster import REMOTE_HELD_SIZE_MAX
from warren.model.coroutine_driver import Later
from warren.queues.queue import ACCEPTED, BEHIND, QueueHost


class HeldPublishes:
    """The publishes and direct replies that were written since the link takes no more."""

    __slots__ = ("_queues", "credit", "reply_size")

    def __init__(self, later: Later) -> None:
        self._queues: dict[QueueTraffic, None] = {}
        # The size of the direct replies in bytes.
        self.reply_size = 0
        # What publishers wait for.
        self.credit = PublishCredit(later)

    def hold(self, traffic: QueueTraffic, size: int, host: QueueHost) -> int:
        """Count a publish that cannot be sent: ACCEPTED, with BEHIND when its queue has too many."""
        self._queues[traffic] = None
        traffic.held_size += size
        if traffic.held_size < REMOTE_HELD_SIZE_MAX:
            return ACCEPTED
        if not self.credit.is_spent:
            self.credit.spend()
        host.behind = self.credit
        return ACCEPTED | BEHIND

    def release(self) -> None:
        """Nothing waits any more."""
        for traffic in self._queues:
            traffic.held_size = 0
        self._queues.clear()
        self.reply_size = 0
        if self.credit.is_spent:
            self.credit.renew()
