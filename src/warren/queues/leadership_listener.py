"""Who is told which queues of a virtual host this node leads."""

from typing import Protocol

from warren.queues.taking_queue import TakingQueue


class LeadershipListener(Protocol):
    """What takes messages out of queues that this node leads, as the metadata say."""

    def leadership_began(self, queue: TakingQueue) -> None:
        """This node leads `queue`, which has delivered nothing yet, and knows what was agreed on before."""

    def leadership_ended(self, queue: TakingQueue) -> None:
        """`queue` leads no more: what was taken out of it can be settled without effect."""
