"""A cluster of whole brokers, what can happen to it, and what must be true of it at every step."""

from collections.abc import Callable

from tests.sim.broker_node import VHOST, BrokerNode
from tests.sim.link_network import SimulatedSocket
from tests.sim.telling_cluster import TellingCluster

from warren.cluster.partition_handling import PartitionSettings
from warren.queues.local import LocalQueue


class BrokerCluster(TellingCluster):
    """Whole brokers, and the network between them."""

    node_type = BrokerNode
    nodes: list[BrokerNode]

    def __init__(self, seed: int, partition_settings: PartitionSettings | None = None) -> None:
        super().__init__(seed, partition_settings)
        # True while octets pass in pieces, and connections are ahead of each other.
        self.is_rough = False
        # Called when a node has ended, or its stores have lost what was not synced.
        self.on_home_lost: Callable[..., None] = lambda _, *, is_power_lost: None
        # Called when a node gives up what it has.
        self.on_home_gone: Callable[[BrokerNode], None] = lambda _: None

    def form(self, count: int) -> None:
        """Start so many nodes, which become one cluster."""
        first = self.add("one@here")
        for number in range(2, count + 1):
            self.admit(self.add(f"node{number}@here"), first)
        assert self.run(self.is_settled), self.states()

    def add(self, name: str, port: int = 0) -> BrokerNode:
        """A new node, in no cluster."""
        node = BrokerNode(name, self, port or 1 + max((one.port for one in self.nodes), default=0))
        self.nodes.append(node)
        return node

    def admit(self, node: BrokerNode, member: BrokerNode) -> None:
        """Have a node join the cluster of a member."""
        node.answers.clear()
        node.join(member)
        assert self.run(lambda: bool(node.answers)), self.states()
        assert not node.answers[0].refusal, node.answers

    def accept(self, target: BrokerNode, socket: SimulatedSocket) -> None:
        target.accept(socket)

    def step(self) -> None:
        """Let some time pass, and check what must be true."""
        working = [node for node in self.nodes if node.is_up and not node.is_stopped]
        for node in working:
            if node.stopped_until:
                node.stopped_until = 0
                for owner, socket in self.sockets:
                    if owner is node:
                        socket.is_stopped = False
                node.accept_backlog()
        self.network.advance(20, is_calm=not self.is_rough)
        for node in working:
            if node.is_up:
                node.work()
        self.check()

    def suspend(self, node: BrokerNode, duration: int) -> None:
        """Stop the process of a node for some time."""
        node.stopped_until = self.network.time + duration
        for owner, socket in self.sockets:
            if owner is node:
                socket.is_stopped = True

    # --- what must be true ----------------------------------------------------------------------------

    def check(self) -> None:
        """Check what must be true at every step."""
        super().check()
        homes: dict[int, str] = {}
        for node in self.nodes:
            if node.is_up:
                assert not node.broker.reports, f"{node.name}: {node.broker.reports}"
                self._check_homes(node, homes)

    def _check_homes(self, node: BrokerNode, homes: dict[int, str]) -> None:
        """A queue is on its home and nowhere else; `homes` has those of the nodes before, by number.

        A quorum queue has a replica on each of its members, and on nodes that its group has not removed yet.
        """
        vhost, record = node.broker.server.vhost_services.get(VHOST), node.metadata.vhost(VHOST)
        if vhost is None or record is None or not node.metadata.members.by_id:
            return
        for name, queue in vhost.vhost.queues.items():
            declared = record.topology.queues[name]
            if declared.is_quorum:
                continue
            is_here = isinstance(queue.led_here(), LocalQueue)
            assert is_here == (declared.home == node.node_id), f"{node.name}: {name!r} is of {declared.home}"
            if is_here:
                other = homes.setdefault(declared.number, node.name)
                assert other == node.name, f"queue {name!r} is on {other} and on {node.name}"

    def is_settled(self) -> bool:
        """True if all nodes agree on their members, all of which are up, vote and serve clients."""
        first = self.nodes[0]
        ids = {node.node_id for node in self.nodes}
        if len(ids) != len(self.nodes):
            return False
        for node in self.nodes:
            if not (node.is_up and node.accepts_clients and node.broker.is_serving):
                return False
            members = node.metadata.members.by_id
            if {*members} != ids or {*node.journal.group.replica.configuration.voters} != ids:
                return False
            if node.metadata.index != first.metadata.index:
                return False
            if any(
                not members[other.node_id].is_up or members[other.node_id].incarnation != other.run
                for other in self.nodes
            ):
                return False
        return True

    def states(self) -> list[object]:
        """What each node thinks of its cluster."""
        return [
            (
                node.name, node.node_id, node.run, node.is_up, node.has_started, node.metadata.index,
                node.journal.group.leader, node.journal.group.replica.configuration,
                list(node.metadata.members.by_id.values()),
            )
            for node in self.nodes
        ]  # fmt: skip
