"""What nodes hold of a quorum queue that this node leads, while there is no session with them.

They keep it until they claim it in another session. It comes back to the queue if they say that they do not
have it, if they are down, or if they have not come back for a time.
"""

from warren.queues.queue import CHANNEL_ENDED, Delivery
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.quorum_queue import QuorumQueue

_CHANNEL_ENDED = CHANNEL_ENDED


class DisconnectedDeliveries:
    """By node: the run that holds them, and the deliveries by their places."""

    __slots__ = ("_by_node", "_leader")

    def __init__(self, leader: QuorumQueue) -> None:
        self._leader = leader
        self._by_node: dict[int, tuple[Enqueuer, dict[int, Delivery]]] = {}

    def keep(self, enqueuer: Enqueuer, held: dict[int, Delivery]) -> None:
        """The session with the node of `enqueuer` has ended, which holds what is `held`."""
        known = self._by_node.get(enqueuer.node)
        if known is not None and known[0] == enqueuer:
            known[1].update(held)
            return
        self.end_node(enqueuer.node)
        if held:
            self._by_node[enqueuer.node] = enqueuer, held

    def has(self, enqueuer: Enqueuer) -> bool:
        """True if the node of `enqueuer` holds something."""
        known = self._by_node.get(enqueuer.node)
        return known is not None and known[0] == enqueuer and bool(known[1])

    def begin(self, enqueuer: Enqueuer) -> None:
        """A run of a node has begun a session: what an earlier run has held comes back."""
        known = self._by_node.get(enqueuer.node)
        if known is not None and known[0] != enqueuer:
            self.end_node(enqueuer.node)

    def claim(self, enqueuer: Enqueuer, place: int) -> Delivery | None:
        """Take what the node still holds at `place`; None if that is not here."""
        known = self._by_node.get(enqueuer.node)
        return None if known is None else known[1].pop(place, None)

    def claimed(self, enqueuer: Enqueuer) -> None:
        """Return what the node has not claimed: no client has seen it, or its settlement was lost."""
        _, left = self._by_node.pop(enqueuer.node, (enqueuer, {}))
        for delivery in left.values():
            delivery.consumer = None
            self._leader.give_back(delivery)

    def end_node(self, node: int) -> None:
        """Return what the node holds, which has ended: its consumers have failed."""
        _, left = self._by_node.pop(node, (None, {}))
        for delivery in left.values():
            self._leader.requeue(delivery, _CHANNEL_ENDED)
        if left:
            self._leader.pump()
