"""Nodes with links between them, without sockets: what one end writes the other reads at once."""

from collections import deque
from collections.abc import Callable, Sequence

from warren.cluster.hello import LinkPurpose, LocalNode
from warren.cluster.link_connection import LinkConnection, LinkSocket
from warren.cluster.node_link import LinkListener, NodeLink, NodeLinkDependencies, PeerNode
from warren.cluster.node_links import NodeLinks

CLUSTER = b"c" * 16
COOKIE = b"the cookie"


class MemorySocket(LinkSocket):
    """One end of a connection in memory."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.connection: LinkConnection | None = None
        self.peer: MemorySocket | None = None
        self.is_ready = True
        self.is_open = True
        # True if what this end writes is dropped.
        self.is_silenced = False

    def output_ready(self) -> None:
        self.is_ready = True

    def flush(self) -> bool:
        """Write what there is; False if there was nothing to do."""
        if not self.is_ready or not self.is_open or self.connection is None:
            return False
        self.is_ready = False
        while self.connection.has_output:
            output = b"".join(self.connection.take_output())
            peer = self.peer
            if peer is not None and peer.connection is not None and peer.is_open and not self.is_silenced:
                peer.connection.receive(output, self.now())
        if self.connection.is_finished:
            self.close()
        return True

    def close(self) -> None:
        """Close both ends."""
        for end in (self, self.peer):
            if end is not None and end.is_open:
                end.is_open = False
                if end.connection is not None:
                    end.connection.lost()


class TestNode(LinkListener):
    """A node, and what its links have told."""

    __test__ = False

    def __init__(self, network: "Network", node: LocalNode, cookie: bytes = COOKIE) -> None:
        self.network = network
        self.node = node
        self.told: list[object] = []
        # The sessions that have begun, each with the number of what was told before.
        self.sessions: list[tuple[LinkPurpose, int]] = []
        self.digests: list[bytes] = []
        self.dials: deque[tuple[NodeLink, LinkPurpose]] = deque()
        self.probes: list[NodeLink] = []
        # The numbers of removed members.
        self.removed: set[int] = set()
        self.on_received: Callable[[NodeLink, bytes], None] = lambda link, body: None
        self.on_lost: Callable[[NodeLink], None] = lambda link: None
        self.on_writable: Callable[[NodeLink], None] = lambda link: None
        self.on_pinged: Callable[[bytes], None] = self.digests.append
        dependencies = NodeLinkDependencies(
            listener=self, random_bytes=network.random_bytes, dial=lambda *dial: self.dials.append(dial),
            probe=self.probes.append, digest=lambda: node.name.encode(), is_removed=self.removed.__contains__,
        )  # fmt: skip
        self.links = NodeLinks(node, cookie, dependencies, network.now)

    def received(self, link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        self.told.append((purpose, kind, body))
        self.on_received(link, body)

    def session_began(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.sessions.append((purpose, len(self.told)))

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.told.append(("lost", purpose))
        self.on_lost(link)

    def silent(self, link: NodeLink) -> None:
        self.told.append("silent")

    def heard(self, link: NodeLink) -> None:
        self.told.append("heard")

    def writable(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.told.append(("writable", purpose))
        self.on_writable(link)

    def pinged(self, link: NodeLink, digest: bytes) -> None:
        self.on_pinged(digest)


class Network:
    """Nodes, connections between them, and the time."""

    def __init__(self) -> None:
        self.now = 50_000
        self.nodes: list[TestNode] = []
        self.sockets: list[MemorySocket] = []
        self.is_down = False
        # True while the hosts say, when it is down, that nobody listens.
        self.is_refusing = False
        # Attempts to connect that have failed.
        self.refused = 0
        self._random = 0

    def random_bytes(self, size: int) -> bytes:
        self._random += 1
        return self._random.to_bytes(size, "big") if size > 1 else b"\0"

    def add(self, node_id: int, name: str, *, incarnation: int = 1, cookie: bytes = COOKIE) -> TestNode:
        """Start a node of the cluster, in place of one with this number."""
        node = LocalNode(
            cluster_id=CLUSTER, node_id=node_id, name=name, incarnation=incarnation, feature_level=1
        )
        return self.add_node(node, cookie=cookie)

    def add_node(self, node: LocalNode, *, cookie: bytes = COOKIE) -> TestNode:
        """Start `node`."""
        self.nodes = [one for one in self.nodes if one.node.node_id != node.node_id or not node.node_id]
        self.nodes.append(TestNode(self, node, cookie))
        return self.nodes[-1]

    def pair(self, **of_two: bytes) -> tuple[TestNode, TestNode, NodeLink, NodeLink]:
        """Two members, and their links, which are connected."""
        one, two = self.add(1, "one"), self.add(2, "two", **of_two)
        links = connect(one, two), connect(two, one)
        self.run()
        return one, two, *links

    def run(self, ms: int = 0) -> None:
        """Let `ms` pass, with whatever happens in them."""
        end = self.now + ms
        while True:
            for node in self.nodes:
                node.links.tick(self.now)
            self._settle()
            if self.now >= end:
                return
            self.now = min(end, self.now + 50)

    def cut(self) -> None:
        """Close all connections."""
        for socket in list(self.sockets):
            socket.close()

    def silence(self) -> None:
        """Drop what is written to all connections that exist."""
        for socket in self.sockets:
            socket.is_silenced = True

    def open(self) -> Sequence[MemorySocket]:
        """Return the ends of open connections."""
        return [socket for socket in self.sockets if socket.is_open]

    def _settle(self) -> None:
        while any([*(self._dial(node) for node in self.nodes), *(one.flush() for one in list(self.sockets))]):
            pass
        for node in self.nodes:
            while node.probes:
                node.probes.pop().probed(is_refused=self.is_down and self.is_refusing)
        self.sockets = [socket for socket in self.sockets if socket.is_open]

    def _dial(self, node: TestNode) -> bool:
        if not node.dials:
            return False
        link, purpose = node.dials.popleft()
        peer = link.peer
        targets = [
            one
            for one in self.nodes
            if one.node.name == peer.host or (peer.node_id and one.node.node_id == peer.node_id)
        ]
        if self.is_down or not targets:
            self.refused += 1
            link.dial_failed(purpose, "nobody listens there", is_refused=self.is_refusing)
            return True
        near, far = MemorySocket(lambda: self.now), MemorySocket(lambda: self.now)
        near.peer, far.peer = far, near
        near.connection = node.links.dialed(link, purpose, near, self.now)
        far.connection = targets[0].links.accept(far, self.now)
        self.sockets += [near, far]
        return True


def connect(node: TestNode, peer: TestNode) -> NodeLink:
    """Connect `node` to a member."""
    return node.links.connect(PeerNode(node_id=peer.node.node_id, name=peer.node.name), node.network.now)
