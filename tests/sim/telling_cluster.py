"""Nodes of a cluster that tell each other their states, on a network that is cut between any of them."""

from collections.abc import Iterable

from tests.sim.simulated_cluster import ClusterNode, SimulatedCluster

from warren.access.client_counts import ClientCountKind
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink
from warren.cluster.node_states import NodeStates
from warren.cluster.partition_handling import PartitionMode, PartitionSettings


class TellingNode(ClusterNode):
    """A node with alarms and clients, which it shuts out when it is to."""

    cluster: "TellingCluster"

    def new_states(self) -> NodeStates:
        self.reason = ""
        self.is_open = True
        # When it shut out its clients, in this run.
        self.paused_at: list[int] = []
        return super().new_states()

    def total(self, kind: ClientCountKind) -> int:
        """A count of the user u on all nodes, as this one knows it."""
        return self.counts.total(kind, "u")

    # Port `PartitionActions`.

    def pause(self, reason: str) -> None:
        assert reason
        assert self.is_open
        self.is_open = False
        self.paused_at.append(self.now())

    def resume(self) -> None:
        assert not self.is_open
        self.is_open = True

    def set_reason(self, reason: str) -> None:
        assert reason != self.reason
        self.reason = reason


class TellingCluster(SimulatedCluster):
    """Nodes whose network is cut between any two, in one direction or in both."""

    node_type = TellingNode

    def __init__(self, seed: int, partition_settings: PartitionSettings | None = None) -> None:
        super().__init__(seed)
        self.partition_settings = partition_settings or PartitionSettings(mode=PartitionMode.PAUSE_MINORITY)
        # From which node to which nothing passes.
        self.cuts: set[tuple[ClusterNode, ClusterNode]] = set()

    @property
    def telling(self) -> list[TellingNode]:
        """All nodes."""
        return [node for node in self.nodes if isinstance(node, TellingNode)]

    def cut(self, cuts: Iterable[tuple[ClusterNode, ClusterNode]]) -> None:
        """Let nothing pass from the first to the second node of each pair any more, and tell nobody."""
        self.cuts.update(cuts)
        owners = {socket: node for node, socket in self.sockets}
        for socket, node in owners.items():
            if socket.peer in owners and (owners[socket.peer], node) in self.cuts:
                socket.is_silenced = True

    def heal(self) -> None:
        """Let new connections be made between all nodes."""
        self.cuts.clear()

    def connect(self, node: ClusterNode, link: NodeLink, purpose: LinkPurpose) -> None:
        target = next((one for one in self.nodes if one.port == link.peer.port), None)
        if target is not None and {(node, target), (target, node)} & self.cuts:
            link.dial_failed(purpose, "no route to host")
        else:
            super().connect(node, link, purpose)

    def probe(self, node: ClusterNode, link: NodeLink) -> None:
        target = next((one for one in self.nodes if one.port == link.peer.port), None)
        if target is not None and {(node, target), (target, node)} & self.cuts:
            link.probed(is_refused=False)
        else:
            super().probe(node, link)
