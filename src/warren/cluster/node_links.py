"""All links of this node, and the connections that have not proved yet to which link they belong."""

from collections.abc import Callable

from warren.cluster.elapsed_time import ElapsedTime
from warren.cluster.hello import NO_NODE, NONCE_SIZE, Hello, LinkPurpose, LocalNode
from warren.cluster.link_connection import LinkConnection, LinkSocket, NodeLinkCounters
from warren.cluster.link_handshake import LinkHandshake, LinkRefusal, RefusalCode, derive_key
from warren.cluster.node_link import NodeLink, NodeLinkDependencies, PeerNode
from warren.limits_cluster import CLUSTER_JOINERS_MAX


def _accept_member(_: PeerNode) -> None:
    """Accept each member, whatever its connection is."""


class NodeLinks:
    """The links of a node: to the members of its cluster, and to nodes that join."""

    def __init__(self, node: LocalNode, cookie: bytes, dependencies: NodeLinkDependencies, now: int) -> None:
        self.node = node
        # Of connections that belong to no link.
        self.unowned = NodeLinkCounters()
        self._key = derive_key(cookie)
        self._dependencies = dependencies
        self._time = ElapsedTime(now)
        self._members: dict[int, NodeLink] = {}
        # Nodes that ask to join, by name, and the link by which this node asks.
        self._joiners: dict[str, NodeLink] = {}
        self._joining: NodeLink | None = None

    def become(self, node: LocalNode) -> None:
        """Introduce this node as `node` from now on: it has joined a cluster, or left it."""
        self.node = node

    def connect(self, peer: PeerNode, now: int) -> NodeLink:
        """Return the link to a member, which is made if there is none, or none with this peer."""
        assert peer.node_id not in (NO_NODE, self.node.node_id)
        link = self._members.get(peer.node_id)
        if link is not None and link.peer.name == peer.name:
            # It may listen elsewhere now.
            link.peer = peer
            return link
        if link is not None:
            self.forget(peer.node_id)
        self._time.follow(now)
        is_dialer = self.node.node_id < peer.node_id
        link = NodeLink(peer, self._dependencies, self._time, is_dialer=is_dialer)
        self._members[peer.node_id] = link
        link.tick()
        self._dependencies.schedule()
        return link

    def forget(self, node_id: int) -> None:
        """Close the link to a former member; its sessions are lost."""
        link = self._members.pop(node_id, None)
        if link is not None:
            link.close("the node is no member any more")

    def join(self, host: str, port: int, now: int) -> NodeLink:
        """Return a link to the node that listens there, to ask it for admission; another one is closed."""
        self.stop_joining()
        self._time.follow(now)
        peer = PeerNode(node_id=NO_NODE, name="", host=host, port=port)
        self._joining = NodeLink(peer, self._dependencies, self._time, is_dialer=True)
        self._joining.tick()
        self._dependencies.schedule()
        return self._joining

    def stop_joining(self) -> None:
        """Close the link by which this node asks for admission, if there is one."""
        link, self._joining = self._joining, None
        if link is not None:
            link.close("the node asks no more to join")

    def close(self) -> None:
        """Close all links."""
        self.stop_joining()
        for node_id in list(self._members):
            self.forget(node_id)
        joiners, self._joiners = self._joiners, {}
        for link in joiners.values():
            link.close("the node stops")

    def accept(
        self, socket: LinkSocket, now: int, check_member: Callable[[PeerNode], None] = _accept_member
    ) -> LinkConnection:
        """Return the connection of a socket that a peer has dialed.

        `check_member` raises LinkRefusal if the member that the peer has proved to be may not connect by it.
        """

        def check(hello: Hello) -> None:
            self._check(hello)
            if hello.purpose is not LinkPurpose.JOIN:
                check_member(self._members[hello.node_id].peer)

        self._time.follow(now)
        nonce = self._dependencies.random_bytes(NONCE_SIZE)
        handshake = LinkHandshake(self.node, self._key, nonce, check)
        return LinkConnection(handshake, self._find, socket, self._time, unowned=self.unowned)

    def dialed(self, link: NodeLink, purpose: LinkPurpose, socket: LinkSocket, now: int) -> LinkConnection:
        """Return the connection of a socket that this node has dialed for `link`."""
        self._time.follow(now)
        nonce = self._dependencies.random_bytes(NONCE_SIZE)
        handshake = LinkHandshake(self.node, self._key, nonce, link.check, dialed=purpose)
        return LinkConnection(
            handshake,
            lambda _: link,
            socket,
            self._time,
            unowned=self.unowned,
            failed=lambda reason: link.dial_failed(purpose, reason),
            removed=link.removed_by_peer,
        )

    @property
    def elapsed_ms(self) -> int:
        """The time of the links: what has elapsed since they were made, at the last look at the clock."""
        return self._time.now

    def clock_at(self, due: int) -> int:
        """Return what the clock of the node shows at `due`, a time of the links."""
        return self._time.clock_at(due)

    def tick(self, now: int) -> None:
        """Do what is due."""
        self._time.follow(now)
        for link in self._all():
            link.tick()
        for name, link in list(self._joiners.items()):
            if link.is_idle:
                del self._joiners[name]

    def deadline(self) -> int | None:
        """Return when `tick` is due, on the clock of the node; None without links."""
        links = self._all()
        return self._time.clock_at(min(link.deadline() for link in links)) if links else None

    # --- private -------------------------------------------------------------------------------------

    def _all(self) -> list[NodeLink]:
        joining = [] if self._joining is None else [self._joining]
        return [*self._members.values(), *self._joiners.values(), *joining]

    def _check(self, hello: Hello) -> None:
        """Raise LinkRefusal unless a peer that has proved itself is expected."""
        if hello.purpose is LinkPurpose.JOIN:
            link = self._joiners.get(hello.name)
            if link is not None:
                link.check(hello)
            elif len(self._joiners) >= CLUSTER_JOINERS_MAX:
                raise LinkRefusal(RefusalCode.BUSY, f"{CLUSTER_JOINERS_MAX} nodes are joining already")
            return
        link = self._members.get(hello.node_id)
        if link is None and self._dependencies.is_removed(hello.node_id):
            raise LinkRefusal(
                RefusalCode.REMOVED, f"node {hello.node_id} '{hello.name}' was removed from the cluster"
            )
        if link is not None and hello.purpose is LinkPurpose.INQUIRY:
            raise LinkRefusal(RefusalCode.MEMBER, f"'{hello.name}' is a member")
        if link is None or link.is_dialer:
            raise LinkRefusal(
                RefusalCode.NODE, f"no connection from node {hello.node_id} '{hello.name}' is expected"
            )
        link.check(hello)

    def _find(self, hello: Hello) -> NodeLink:
        if hello.purpose is not LinkPurpose.JOIN:
            return self._members[hello.node_id]
        if hello.name not in self._joiners:
            peer = PeerNode(node_id=NO_NODE, name=hello.name)
            link = NodeLink(peer, self._dependencies, self._time, is_dialer=False)
            self._joiners[hello.name] = link
        return self._joiners[hello.name]
