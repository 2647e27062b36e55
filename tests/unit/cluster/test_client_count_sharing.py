"""Counts of clients under limits, over a link between two nodes that is cut, silent and silent for long."""

import msgspec
import pytest
from tests.unit.cluster.link_nodes import CLUSTER, Network, TestNode, connect

from warren.access.client_counts import ClientCountKind, ClientCounts
from warren.cluster import client_count_sharing
from warren.cluster.client_count_sharing import ClientCountPayload, ClientCountSharing
from warren.cluster.hello import LinkPurpose, LocalNode
from warren.cluster.node_link import NodeLink, PayloadError
from warren.limits_cluster import CLUSTER_COUNTS_PER_PAYLOAD, CLUSTER_SESSION_MS
from warren.metadata.commands import PutUser, PutVhost, RemoveUser, RemoveVhost, SetUserLimits, SetVhostLimits
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals

USER, CHANNELS, VHOST = ClientCountKind
CONTROL = LinkPurpose.CONTROL
COUNTS = ClientCountPayload.COUNTS


class SharingNode(TestNode):
    """A node that knows the users u and free, and the virtual host v; only free has no limits."""

    __test__ = False

    def __init__(self, network: Network, node_id: int) -> None:
        name = f"n{node_id}"
        node = LocalNode(cluster_id=CLUSTER, node_id=node_id, name=name, incarnation=1, feature_level=1)
        super().__init__(network, node)
        network.nodes.append(self)
        metadata = Metadata()
        self.proposals = LocalProposals(metadata, lambda: 0)
        for user in ("u", "free"):
            self.proposals.apply(PutUser(name=user, password_hash=b"", hashing_algorithm=""))
        self.proposals.apply(PutVhost(name="v"))
        self.proposals.apply(SetUserLimits(name="u", limits={"max-connections": 9, "max-channels": 9}))
        self.proposals.apply(SetVhostLimits(vhost="v", limits={"max-connections": 9}))
        self.counts = ClientCounts()
        self.sharing = ClientCountSharing(self.counts, metadata)

    def received(self, link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        super().received(link, purpose, kind, body)
        self.sharing.received(link, kind, body)

    def session_began(self, link: NodeLink, purpose: LinkPurpose) -> None:
        if purpose is CONTROL:
            self.sharing.session_began(link)

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        if purpose is CONTROL:
            self.sharing.session_lost(link)

    def silent(self, link: NodeLink) -> None:
        self.sharing.silent(link.peer.node_id)

    def heard(self, link: NodeLink) -> None:
        self.sharing.heard(link.peer.node_id)

    def totals(self, name: str = "u") -> tuple[int, int, int]:
        counts = self.counts
        return counts.total(USER, name), counts.total(CHANNELS, name), counts.total(VHOST, "v")


class Sharing:
    """Two such nodes, connected."""

    def __init__(self) -> None:
        self.network = Network()
        self.one, self.two = SharingNode(self.network, 1), SharingNode(self.network, 2)
        self.to_two, self.to_one = connect(self.one, self.two), connect(self.two, self.one)
        self.network.run()

    def run(self, ms: int = 0) -> None:
        """Let the nodes tell each other what they have to tell, and `ms` pass."""
        for node in (self.one, self.two):
            node.sharing.tick()
        self.network.run(ms)


@pytest.fixture
def sharing() -> Sharing:
    return Sharing()


def test_the_nodes_add_up_what_they_have_where_there_are_limits(sharing: Sharing) -> None:
    one, two = sharing.one, sharing.two
    one.counts.add(USER, "u", 2)
    one.counts.add(CHANNELS, "u", 5)
    one.counts.add(VHOST, "v", 2)
    two.counts.add(USER, "u", 1)
    sharing.run()
    assert one.totals() == (3, 5, 2)
    assert two.totals() == (3, 5, 2)
    one.counts.add(CHANNELS, "u", -5)
    sharing.run()
    assert two.totals() == (3, 0, 2)


def test_names_without_a_limit_are_not_told_until_they_have_one(sharing: Sharing) -> None:
    one, two = sharing.one, sharing.two
    one.counts.add(USER, "free", 1)
    one.counts.add(USER, "unknown", 1)
    sharing.run()
    assert two.told == []
    for node in (one, two):
        node.proposals.apply(SetUserLimits(name="free", limits={"max-connections": 1}))
    sharing.run()
    assert two.totals("free") == (1, 0, 0)


def test_a_session_begins_with_all_counts_in_pieces(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_count_sharing, "CLUSTER_COUNTS_PER_PAYLOAD", 2)
    one, two = sharing.one, sharing.two
    for kind, name in ((USER, "free"), (USER, "u"), (CHANNELS, "u"), (VHOST, "v")):
        one.counts.add(kind, name, 4)
    sharing.to_two.end_session(CONTROL, "for a test")
    sharing.network.run(300)
    assert two.totals() == (0, 0, 0)
    sharing.run()
    assert two.totals() == (4, 0, 0)
    sharing.run()
    assert two.totals() == (4, 4, 4)
    count = len(two.told)
    sharing.run()
    assert len(two.told) == count


def test_a_silent_node_is_not_counted_and_counted_again_when_it_is_heard(sharing: Sharing) -> None:
    one, two = sharing.one, sharing.two
    one.counts.add(USER, "u", 2)
    sharing.run()
    sharing.network.is_down = True
    sharing.network.silence()
    sharing.run(1_500)
    assert two.totals() == (0, 0, 0)
    one.counts.add(USER, "u", 1)
    sharing.network.is_down = False
    sharing.run(1_500)
    assert two.totals() == (3, 0, 0)
    assert sharing.to_two.resumed_count > 0


def test_what_was_told_is_forgotten_with_the_session(sharing: Sharing) -> None:
    one, two = sharing.one, sharing.two
    one.counts.add(USER, "u", 2)
    sharing.run()
    sharing.to_one.end_session(CONTROL, "for a test")
    assert two.counts.elsewhere == {}
    sharing.run(300)
    sharing.run()
    assert two.totals() == (2, 0, 0)
    sharing.network.is_down = True
    sharing.network.cut()
    sharing.run(CLUSTER_SESSION_MS + 1_000)
    one.counts.add(USER, "u", -2)
    assert two.counts.elsewhere == {}
    sharing.network.is_down = False
    sharing.run(3_000)
    sharing.run()
    assert two.totals() == (0, 0, 0)
    assert list(two.counts.elsewhere) == [1]


def test_counts_of_what_is_removed_are_forgotten(sharing: Sharing) -> None:
    one, two = sharing.one, sharing.two
    one.counts.add(USER, "u", 2)
    one.counts.add(VHOST, "v", 2)
    sharing.run()
    two.proposals.apply(RemoveUser(name="u"))
    assert two.totals() == (0, 0, 2)
    two.proposals.apply(RemoveVhost(name="v"))
    assert two.totals() == (0, 0, 0)


def test_what_is_beyond_the_bound_is_not_kept(sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_count_sharing, "CLUSTER_COUNTS_KEPT_MAX", 1)
    one, two = sharing.one, sharing.two
    one.counts.add(USER, "u", 2)
    sharing.run()
    one.counts.add(CHANNELS, "u", 2)
    one.counts.add(USER, "u", 1)
    sharing.run()
    assert two.totals() == (3, 0, 0)


@pytest.mark.parametrize(
    "payload",
    [
        [2, []],
        [1],
        [1, [[9, b"u", 1]]],
        [1, [[1, "u", 1]]],
        [1, [[1, b"u" * 256, 1]]],
        [1, [[1, b"u", -1]]],
        [1, [[1, b"u", 1 << 31]]],
        [1, [[1, b"u", 1, 1]]],
        [1, [[1, b"u", 1]] * (CLUSTER_COUNTS_PER_PAYLOAD + 1)],
    ],
)
def test_other_counts_are_refused(sharing: Sharing, payload: object) -> None:
    with pytest.raises(PayloadError, match="unknown counts"):
        sharing.two.sharing.received(sharing.to_one, COUNTS, msgspec.msgpack.encode(payload))


def test_other_payloads_and_those_outside_of_a_session_are_refused(sharing: Sharing) -> None:
    with pytest.raises(PayloadError, match="unknown kind 9"):
        sharing.two.sharing.received(sharing.to_one, 9, b"")
    sharing.two.sharing.session_lost(sharing.to_one)
    with pytest.raises(PayloadError, match="outside of a session"):
        sharing.two.sharing.received(sharing.to_one, COUNTS, msgspec.msgpack.encode([1, []]))


def test_a_name_that_is_not_utf8_is_told_as_it_is(sharing: Sharing) -> None:
    name = b"\xff".decode("utf-8", "surrogateescape")
    for node in (sharing.one, sharing.two):
        node.proposals.apply(PutUser(name=name, password_hash=b"", hashing_algorithm=""))
        node.proposals.apply(SetUserLimits(name=name, limits={"max-connections": 1}))
    sharing.one.counts.add(USER, name, 1)
    sharing.run()
    assert sharing.two.counts.total(USER, name) == 1
