"""The other nodes whose clients use a replicated queue that this node leads, or is to lead."""

from warren.cluster.replicated.disconnected_deliveries import DisconnectedDeliveries
from warren.cluster.replicated.replicated_dependencies import ReplicatedDependencies
from warren.cluster.replicated.served_queue import ServedQueue
from warren.limits import EXPIRY_MS_MAX
from warren.queues.queue import Delivery
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.queues.vhost_queue import VhostQueue


class ServedNodes:
    """The nodes that are served, those that wait for this node to lead, and what is held by the absent."""

    def __init__(self, queue: VhostQueue, dependencies: ReplicatedDependencies) -> None:
        """`queue` is the one in front of the queue that leads."""
        self._queue = queue
        self._dependencies = dependencies
        self._leader: QuorumQueue | None = None
        self._served: dict[ServedQueue, None] = {}
        self._waiting: dict[ServedQueue, None] = {}
        self._disconnected: DisconnectedDeliveries | None = None
        # The absences so far, and by absent node the number of the one that has not ended.
        self._absence_count = 0
        self._absences: dict[Enqueuer, int] = {}

    def began(self, leader: QuorumQueue) -> None:
        """This node leads: those begin that have waited for it."""
        self._leader = leader
        self._disconnected = DisconnectedDeliveries(leader)
        self._absences.clear()
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
        self._absences.pop(served.enqueuer, None)
        self._disconnected.begin(served.enqueuer)
        return self._leader

    def end_serving(self, served: ServedQueue, held: dict[int, Delivery]) -> None:
        """The session has ended, and what the node had is `held`, until it claims it again."""
        self._waiting.pop(served, None)
        if self._served.pop(served, False) is not False and self._disconnected is not None:
            disconnected, enqueuer = self._disconnected, served.enqueuer
            disconnected.keep(enqueuer, held)
            if self._dependencies.has_ended(enqueuer):
                # Its node was down before its session ended.
                disconnected.end_node(enqueuer.node)
            elif disconnected.has(enqueuer):
                self._begin_absence(disconnected, enqueuer)

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

    def _begin_absence(self, disconnected: DisconnectedDeliveries, enqueuer: Enqueuer) -> None:
        """Return what the node of `enqueuer` holds if this absence lasts for too long."""
        self._absence_count += 1
        number = self._absences[enqueuer] = self._absence_count

        def give_up() -> None:
            if self._disconnected is disconnected and self._absences.get(enqueuer) == number:
                del self._absences[enqueuer]
                if disconnected.has(enqueuer):
                    disconnected.end_node(enqueuer.node)

        wanted = self._queue.settings.consumer_disconnected_ms
        limit = self._dependencies.disconnected_ms if wanted is None else min(wanted, EXPIRY_MS_MAX)
        self._dependencies.after(limit, give_up)
