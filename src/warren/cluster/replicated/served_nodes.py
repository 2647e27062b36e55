"""The other nodes whose clients use a replicated queue that this node leads, or is to lead."""

from collections.abc import Callable

from warren.cluster.replicated.disconnected_deliveries import DisconnectedDeliveries
from warren.cluster.replicated.served_queue import ServedQueue
from warren.limits_cluster import DISCONNECTED_MS_MAX
from warren.queues.queue import Delivery
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.quorum_queue import QuorumQueue


class ServedNodes:
    """The nodes that are served, those that wait for this node to lead, and what is held by the absent."""

    def __init__(self, after: Callable[[int, Callable[[], None]], None]) -> None:
        """`after` calls an action after a time in milliseconds."""
        self._after = after
        self._leader: QuorumQueue | None = None
        self._served: dict[ServedQueue, None] = {}
        self._waiting: dict[ServedQueue, None] = {}
        self._disconnected: DisconnectedDeliveries | None = None

    def began(self, leader: QuorumQueue) -> None:
        """This node leads: those begin that have waited for it."""
        self._leader = leader
        self._disconnected = DisconnectedDeliveries(leader)
        waiting, self._waiting = self._waiting, {}
        for served in waiting:
            served.leads()

    def stopped(self) -> None:
        """This node leads no more: all that were served wait."""
        self._leader = self._disconnected = None
        served, self._served = self._served, {}
        for each in served:
            each.stopped()
            self._waiting[each] = None

    def end(self) -> None:
        """The queue was deleted, or its virtual host ends here."""
        for served in list(self._served):
            served.end()
        self._served.clear()
        self._waiting.clear()
        self._leader = self._disconnected = None

    def serve(self, served: ServedQueue) -> QuorumQueue | None:
        """Serve another node from now on; None if this node does not lead: `leads` is called when it does."""
        if self._leader is None or self._disconnected is None:
            self._waiting[served] = None
            return None
        self._served[served] = None
        self._disconnected.begin(served.enqueuer)
        return self._leader

    def end_serving(self, served: ServedQueue, held: dict[int, Delivery]) -> None:
        """The session has ended, and what the node had is `held`, until it claims it again."""
        self._waiting.pop(served, None)
        if self._served.pop(served, False) is not False and self._disconnected is not None and held:
            disconnected, enqueuer = self._disconnected, served.enqueuer
            disconnected.keep(enqueuer, held)
            self._after(DISCONNECTED_MS_MAX, lambda: self._give_up(disconnected, enqueuer))

    def claim(self, enqueuer: Enqueuer, place: int) -> Delivery | None:
        """Take what the node of `enqueuer` says it holds at `place`; None if it does not any more."""
        leader, disconnected = self._leader, self._disconnected
        if leader is None or disconnected is None:
            return None
        return disconnected.claim(enqueuer, place) or leader.claim(place)

    def claimed(self, enqueuer: Enqueuer) -> None:
        """The node of `enqueuer` has said everything that it holds."""
        if self._disconnected is not None and self._leader is not None:
            self._disconnected.claimed(enqueuer)
            self._leader.claims.told(enqueuer.node)

    def node_ended(self, node: int) -> None:
        """The run of `node` has ended: its consumers have failed, and it claims nothing."""
        if self._disconnected is not None and self._leader is not None:
            self._disconnected.end_node(node)
            self._leader.claims.told(node)

    def _give_up(self, disconnected: DisconnectedDeliveries, enqueuer: Enqueuer) -> None:
        """Return what a node holds that was away for too long."""
        is_back = any(served.enqueuer == enqueuer for served in self._served)
        if self._disconnected is disconnected and not is_back:
            disconnected.end_node(enqueuer.node)
