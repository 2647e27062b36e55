"""All links of a node: who is connected, who joins, who is refused."""

import pytest
from tests.unit.cluster.link_nodes import CLUSTER, MemorySocket, Network, TestNode, connect

from warren.cluster.hello import NO_CLUSTER, NO_NODE, LinkPurpose, LocalNode
from warren.cluster.link_handshake import LinkRefusal, RefusalCode
from warren.cluster.node_link import NodeLink, PeerNode
from warren.limits_cluster import CLUSTER_JOINERS_MAX

JOIN = LinkPurpose.JOIN


@pytest.fixture
def network() -> Network:
    return Network()


def blank(network: Network, name: str, incarnation: int = 1) -> TestNode:
    """Start a node that is in no cluster."""
    return network.add_node(
        LocalNode(cluster_id=NO_CLUSTER, node_id=NO_NODE, name=name, incarnation=incarnation, feature_level=1)
    )


def test_a_node_with_another_cookie_is_refused_by_all(network: Network) -> None:
    one, two, to_two, to_one = network.pair(cookie=b"another")
    network.run(500)
    assert one.told == two.told == []
    assert to_two.counters.connections == to_one.counters.connections == 0
    assert set(two.links.unowned.refusals) == {RefusalCode.COOKIE}
    assert set(one.links.unowned.refusals_received) == {RefusalCode.COOKIE}


def test_a_node_that_is_no_member_is_refused(network: Network) -> None:
    one, two = network.add(1, "one"), network.add(2, "two")
    link = connect(one, two)
    network.run(100)
    assert RefusalCode.NODE in two.links.unowned.refusals
    assert link.counters.connections == 0


def test_a_node_that_should_be_dialed_may_not_dial(network: Network) -> None:
    one, two = network.add(1, "one"), network.add(2, "two")
    connect(one, two)
    network.nodes.remove(one)
    socket = MemorySocket(lambda: network.now)
    wrong = network.add(2, "two")
    link = wrong.links.connect(PeerNode(node_id=3, name="one"), network.now)
    near = wrong.links.dialed(link, LinkPurpose.DATA, socket, network.now)
    far = one.links.accept(MemorySocket(lambda: network.now), network.now)
    for _ in range(3):
        far.receive(b"".join(near.take_output()), network.now)
        near.receive(b"".join(far.take_output()), network.now)
    assert one.links.unowned.refusals == {RefusalCode.NODE: 1}
    assert near.is_finished
    assert far.is_finished


def inquiry(network: Network, node: TestNode, other: TestNode) -> tuple[NodeLink, str]:
    """The link of `node` to `other` after `node` has asked whether it is a member, and the answer."""
    link = node.links.connect(PeerNode(node_id=other.node.node_id, name=other.node.name), network.now)
    near = node.links.dialed(link, LinkPurpose.INQUIRY, MemorySocket(lambda: network.now), network.now)
    far = other.links.accept(MemorySocket(lambda: network.now), network.now)
    for _ in range(3):
        far.receive(b"".join(near.take_output()), network.now)
        near.receive(b"".join(far.take_output()), network.now)
    assert near.is_finished
    assert far.is_finished
    return link, near.reason


@pytest.mark.parametrize(("id", "other"), [(3, 1), (1, 3)])
def test_a_node_that_was_removed_is_told_so_whoever_dials(network: Network, id: int, other: int) -> None:
    removed, member = network.add(id, "removed"), network.add(other, "member")
    member.removed.add(id)
    link, reason = inquiry(network, removed, member)
    assert reason == f"the peer refuses: removed: node {id} 'removed' was removed from the cluster"
    assert link.is_removed_by_peer


def test_a_node_that_dials_a_member_which_has_removed_it_is_told_so(network: Network) -> None:
    removed, member = network.add(1, "removed"), network.add(2, "member")
    member.removed.add(1)
    link = connect(removed, member)
    network.run(100)
    assert link.is_removed_by_peer
    assert link.counters.connections == 0


def test_a_member_is_told_that_it_is_one(network: Network) -> None:
    one, two = network.add(1, "one"), network.add(2, "two")
    two.links.connect(PeerNode(node_id=1, name="one"), network.now)
    link, reason = inquiry(network, one, two)
    assert reason == "the peer refuses: member: 'one' is a member"
    assert not link.is_removed_by_peer
    # While the link to a removed member stays, it hears of that by the log.
    two.removed.add(1)
    link, reason = inquiry(network, one, two)
    assert not link.is_removed_by_peer


def test_a_removal_is_believed_only_with_a_proof(network: Network) -> None:
    one, two = network.add(1, "one"), network.add(2, "two")
    link = one.links.connect(PeerNode(node_id=2, name="two"), network.now)
    for proof in (b"", bytes(32)):
        near = one.links.dialed(link, LinkPurpose.CONTROL, MemorySocket(lambda: network.now), network.now)
        far = two.links.accept(MemorySocket(lambda: network.now), network.now)
        far.receive(b"".join(near.take_output()), network.now)
        near.receive(b"".join(far.take_output()), network.now)
        refusal = LinkRefusal(RefusalCode.REMOVED, "").encode(is_proven=True, proof=proof)
        near.receive(refusal, network.now)
        assert near.is_finished
        assert not link.is_removed_by_peer


def test_connecting_twice_is_one_link_at_the_newest_address(network: Network) -> None:
    one = network.add(1, "one")
    link = one.links.connect(PeerNode(node_id=2, name="two", host="a", port=1), network.now)
    again = one.links.connect(PeerNode(node_id=2, name="two", host="b", port=2), network.now)
    assert again is link
    assert link.peer.host == "b"


def test_another_node_with_the_number_of_a_former_one_has_another_link(network: Network) -> None:
    one, _, to_two, _ = network.pair()
    other = one.links.connect(PeerNode(node_id=2, name="other"), network.now)
    assert other is not to_two
    assert to_two.is_closed
    assert one.told[-2:] == [("lost", LinkPurpose.CONTROL), ("lost", LinkPurpose.DATA)]


def test_a_forgotten_node_is_not_connected_any_more(network: Network) -> None:
    one, two, _, _ = network.pair()
    two.links.forget(1)
    two.links.forget(1)
    network.run(500)
    assert network.open() == []
    assert RefusalCode.NODE in two.links.unowned.refusals
    assert ("lost", LinkPurpose.DATA) in two.told
    one.links.close()
    assert one.links.deadline() is None


def test_a_node_without_a_cluster_asks_to_join(network: Network) -> None:
    one, new = network.add(1, "one"), blank(network, "new")
    link = new.links.join("one", 1, network.now)
    link.send(JOIN, 1, b"may I")
    network.run(50)
    assert one.told == ["heard", (JOIN, 1, b"may I")]
    assert link.hello is not None
    assert (link.hello.node_id, link.hello.cluster_id) == (1, CLUSTER)


def test_a_joiner_is_answered_on_its_link(network: Network) -> None:
    one, new = network.add(1, "one"), blank(network, "new")
    one.on_received = lambda link, body: link.send(JOIN, 2, b"yes, " + link.peer.name.encode())
    new.links.join("one", 1, network.now).send(JOIN, 1, b"may I")
    network.run(50)
    assert new.told == ["heard", (JOIN, 2, b"yes, new")]


def test_a_joiner_that_has_become_a_member_is_connected_as_one(network: Network) -> None:
    one, new = network.add(1, "one"), blank(network, "new")
    new.links.join("one", 1, network.now)
    network.run(50)
    new.links.stop_joining()
    new.node = LocalNode(cluster_id=CLUSTER, node_id=4, name="new", incarnation=1, feature_level=1)
    new.links.become(new.node)
    connect(one, new)
    link = connect(new, one)
    network.run(100)
    assert link.counters.connections == 2
    # The link to the joiner is forgotten when its session is over.
    network.run(6_000)
    assert len(network.open()) == 4


def test_two_nodes_without_a_cluster_may_ask_each_other(network: Network) -> None:
    first, second = blank(network, "first"), blank(network, "second")
    first.links.join("second", 1, network.now).send(JOIN, 1, b"are you in one")
    network.run(50)
    assert second.told == ["heard", (JOIN, 1, b"are you in one")]


def test_asking_another_node_ends_the_link_to_the_former(network: Network) -> None:
    network.add(1, "one")
    new = blank(network, "new")
    first = new.links.join("one", 1, network.now)
    second = new.links.join("one", 1, network.now)
    assert first.is_closed
    assert not second.is_closed


def test_a_joiner_that_has_restarted_replaces_the_former_one(network: Network) -> None:
    one, new = network.add(1, "one"), blank(network, "new")
    new.links.join("one", 1, network.now)
    network.run(50)
    network.nodes.remove(new)
    again = blank(network, "new", incarnation=2)
    again.links.join("one", 1, network.now).send(JOIN, 1, b"may I")
    network.run(50)
    assert one.told == ["heard", ("lost", JOIN), (JOIN, 1, b"may I")]


def test_no_more_nodes_join_at_once_than_a_bound(network: Network) -> None:
    one = network.add(1, "one")
    for number in range(CLUSTER_JOINERS_MAX + 1):
        blank(network, f"new {number}").links.join("one", 1, network.now)
    network.run()
    assert one.links.unowned.refusals == {RefusalCode.BUSY: 1}


def test_a_member_is_connected_to_several_others(network: Network) -> None:
    nodes = [network.add(number, f"node {number}") for number in (1, 2, 3)]
    for node in nodes:
        for peer in nodes:
            if peer is not node:
                connect(node, peer)
    network.run(50)
    assert [node.told for node in nodes] == [["heard", "heard"]] * 3


def test_a_member_may_be_refused_because_of_its_connection(network: Network) -> None:
    one, two = network.add(1, "one"), network.add(2, "two")
    connect(two, one)
    link = connect(one, two)
    asked: list[str] = []

    def check(peer: PeerNode) -> None:
        asked.append(peer.name)
        raise LinkRefusal(RefusalCode.CERTIFICATE, "not for its host")

    near = one.links.dialed(link, LinkPurpose.DATA, MemorySocket(lambda: network.now), network.now)
    far = two.links.accept(MemorySocket(lambda: network.now), network.now, check)
    for _ in range(2):
        far.receive(b"".join(near.take_output()), network.now)
        near.receive(b"".join(far.take_output()), network.now)
    assert asked == ["one"]
    assert near.reason == "the peer refuses: certificate: not for its host"
