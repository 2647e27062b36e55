"""A link between two nodes: its connections, its sessions, silence, restarts."""

import pytest
from tests.unit.cluster.link_nodes import MemorySocket, Network, TestNode, connect

from warren.cluster.hello import LinkPurpose
from warren.cluster.link_handshake import RefusalCode
from warren.cluster.node_link import NodeLink, PayloadError, PeerNode
from warren.limits_cluster import (
    CLUSTER_CONNECTION_SILENT_MS,
    CLUSTER_PING_MS,
    CLUSTER_REDIAL_MIN_MS,
    CLUSTER_SESSION_MS,
    CLUSTER_SILENT_MS,
    CLUSTER_WINDOW_SIZE,
)

CONTROL, DATA, BULK = LinkPurpose.CONTROL, LinkPurpose.DATA, LinkPurpose.BULK


@pytest.fixture
def network() -> Network:
    return Network()


def test_payloads_are_exchanged_on_each_connection(network: Network) -> None:
    one, two, to_two, to_one = network.pair()
    assert to_two.is_dialer
    assert not to_one.is_dialer
    for purpose in (CONTROL, DATA, BULK):
        to_two.send(purpose, 7, b"to two")
        network.run(50)
        to_one.send(purpose, 8, b"to one")
    network.run(CLUSTER_PING_MS)
    assert two.told == ["heard", *((purpose, 7, b"to two") for purpose in (CONTROL, DATA, BULK))]
    assert one.told == ["heard", *((purpose, 8, b"to one") for purpose in (CONTROL, DATA, BULK))]
    assert to_two.kept_size == to_one.kept_size == 0
    assert to_two.hello is not None
    assert to_two.hello.name == "two"


def test_control_and_data_are_always_connected_and_bulk_on_demand_of_either(network: Network) -> None:
    _, two, to_two, to_one = network.pair()
    assert to_two.counters.connections == 2
    # The node that does not dial asks the other to do it.
    to_one.send(BULK, 1, b"")
    network.run(50)
    assert to_two.counters.connections == 3
    assert two.told == ["heard"]


def test_a_bulk_connection_is_asked_for_again_when_the_control_connection_is_there(network: Network) -> None:
    network.is_down = True
    one, _, _, to_one = network.pair()
    to_one.send(BULK, 1, b"")
    network.is_down = False
    network.run(1_000)
    assert (BULK, 1, b"") in one.told


def test_pings_tell_the_digest_of_each_node(network: Network) -> None:
    one, two, _, _ = network.pair()
    network.run(10 * CLUSTER_PING_MS)
    assert one.digests == [b"two"] * 10
    assert two.digests == [b"one"] * 10


def test_a_silent_peer_is_reported_and_reported_when_it_is_heard_again(network: Network) -> None:
    one, two, _, _ = network.pair()
    network.is_down = True
    network.silence()
    network.run(CLUSTER_SILENT_MS - CLUSTER_PING_MS)
    assert "silent" not in one.told
    network.run(2 * CLUSTER_PING_MS)
    assert one.told == two.told == ["heard", "silent"]
    network.is_down = False
    network.run(CLUSTER_CONNECTION_SILENT_MS + 1_000)
    assert one.told == two.told == ["heard", "silent", "heard"]


def test_a_connection_on_which_nothing_is_heard_is_replaced_and_the_session_continues(
    network: Network,
) -> None:
    _, two, to_two, _ = network.pair()
    network.silence()
    to_two.send(DATA, 1, b"kept")
    network.run(CLUSTER_CONNECTION_SILENT_MS + 500)
    assert two.told[-1] == (DATA, 1, b"kept")
    assert to_two.resumed_count == 2
    assert to_two.lost_count == 0


def test_a_short_cut_loses_nothing(network: Network) -> None:
    one, two, to_two, to_one = network.pair()
    for number in range(20):
        to_two.send(DATA, number, b"")
        to_one.send(DATA, number, b"")
        network.cut()
        network.run(1_500)
    assert [told for told in two.told if told != "heard"] == [(DATA, number, b"") for number in range(20)]
    assert [told for told in one.told if told != "heard"] == [(DATA, number, b"") for number in range(20)]
    assert to_two.lost_count == 0


def test_a_session_is_lost_when_there_is_no_connection_for_too_long(network: Network) -> None:
    one, two, to_two, to_one = network.pair()
    network.is_down = True
    network.cut()
    to_two.send(DATA, 1, b"lost")
    network.run(CLUSTER_SESSION_MS - 100)
    assert to_two.is_writable(DATA)
    assert ("lost", DATA) not in one.told
    network.run(200)
    lost = [("lost", CONTROL), ("lost", DATA)]
    assert [told for told in one.told if isinstance(told, tuple)] == lost
    assert [told for told in two.told if isinstance(told, tuple)] == lost
    assert not to_two.is_writable(DATA)
    assert not to_two.is_writable(BULK)
    # What is sent now has no better chance.
    to_two.send(DATA, 1, b"lost")
    network.run(50)
    assert one.told[-1] == ("lost", DATA)
    network.is_down = False
    network.run(1_100)
    assert to_two.is_writable(DATA)
    to_two.send(DATA, 2, b"new")
    network.run(50)
    assert two.told[-2:] == ["heard", (DATA, 2, b"new")]
    assert to_one.lost_count == 2


def test_a_session_begins_before_its_first_payload_and_again_only_after_it_was_lost(network: Network) -> None:
    one, two, to_two, _ = network.pair()
    to_two.send(DATA, 1, b"first")
    network.run(50)
    assert [purpose for purpose, _ in two.sessions] == [CONTROL, DATA]
    assert two.told.index((DATA, 1, b"first")) >= dict(two.sessions)[DATA]
    network.cut()
    network.run(2_000)
    assert to_two.resumed_count > 0
    assert (len(one.sessions), len(two.sessions)) == (2, 2)
    to_two.end_session(DATA, "a reason")
    network.run(2_000)
    assert [purpose for purpose, _ in one.sessions] == [CONTROL, DATA, DATA]
    assert [purpose for purpose, _ in two.sessions] == [CONTROL, DATA, DATA]
    assert two.told.index(("lost", DATA)) < two.sessions[-1][1]


def test_a_restart_of_the_peer_ends_all_sessions_and_connections(network: Network) -> None:
    one, _, to_two, _ = network.pair()
    to_two.send(DATA, 1, b"")
    network.run(50)
    # The former process is gone, and nobody has closed its sockets.
    network.silence()
    two = network.add(2, "two", incarnation=2)
    connect(two, one)
    to_two.send(DATA, 2, b"for the former one")
    network.run(CLUSTER_CONNECTION_SILENT_MS + 1_000)
    assert [told for told in one.told if isinstance(told, tuple)] == [("lost", CONTROL), ("lost", DATA)]
    assert two.told == ["heard"]
    to_two.send(DATA, 3, b"")
    network.run(50)
    assert two.told == ["heard", (DATA, 3, b"")]


def test_an_older_start_of_the_peer_is_refused(network: Network) -> None:
    _, two, _, _ = network.pair()
    network.add(1, "one", incarnation=9)
    newer = connect(network.nodes[-1], two)
    network.run(100)
    assert newer.counters.connections == 2
    network.add(1, "one", incarnation=8)
    connect(network.nodes[-1], two)
    network.run(100)
    assert two.links.unowned.refusals == {RefusalCode.INCARNATION: 4}
    assert network.nodes[-1].links.unowned.refusals_received == {RefusalCode.INCARNATION: 4}


def test_a_node_that_listens_at_the_address_of_another_is_refused_by_the_dialer(network: Network) -> None:
    one = network.add(1, "one")
    two = network.add(2, "two")
    connect(two, one)
    link = one.links.connect(PeerNode(node_id=2, name="three"), network.now)
    network.run(50)
    assert RefusalCode.NODE in one.links.unowned.refusals
    assert link.counters.connections == 0


def test_a_peer_whose_host_says_that_nobody_listens_is_gone_at_once_for_both_ends(network: Network) -> None:
    one, two, to_two, to_one = network.pair()
    network.is_down = network.is_refusing = True
    network.cut()
    assert not to_two.is_gone
    # The node that does not dial finds it out as well.
    network.run(4 * CLUSTER_REDIAL_MIN_MS)
    for node, link in ((one, to_two), (two, to_one)):
        assert node.told[1:] == ["silent", ("lost", CONTROL), ("lost", DATA)]
        assert link.is_gone
        assert link.is_silent
        assert not link.is_writable(DATA)
    network.is_down = False
    network.run(2_000)
    assert one.told[4:] == two.told[4:] == ["heard"]
    assert not to_two.is_gone
    assert not to_one.is_gone
    assert to_two.is_writable(DATA)


@pytest.mark.parametrize("is_refusing", [False, True])
def test_a_host_that_says_once_that_nobody_listens_costs_no_session(
    network: Network, is_refusing: bool
) -> None:
    _, two, to_two, to_one = network.pair()
    network.is_down, network.is_refusing = True, is_refusing
    network.cut()
    to_two.send(DATA, 1, b"kept")
    network.run(CLUSTER_REDIAL_MIN_MS)
    network.is_refusing = False
    network.run(CLUSTER_SILENT_MS - 4 * CLUSTER_REDIAL_MIN_MS)
    network.is_down = False
    network.run(CLUSTER_SILENT_MS)
    assert two.told[-1] == (DATA, 1, b"kept")
    assert to_two.lost_count == to_one.lost_count == 0


def test_when_the_control_connection_is_there_the_others_follow_at_once(network: Network) -> None:
    _, two, to_two, _ = network.pair()
    network.cut()
    for _ in range(8):
        # The next attempt is due in a second.
        to_two.dial_failed(DATA, "no route to host")
    to_two.send(DATA, 1, b"")
    network.run(4 * CLUSTER_REDIAL_MIN_MS)
    assert two.told[-1] == (DATA, 1, b"")


def test_a_peer_that_was_never_connected_is_not_asked_whether_it_listens(network: Network) -> None:
    network.is_down = network.is_refusing = True
    _, two, _, to_one = network.pair()
    network.run(5_000)
    assert not to_one.is_gone
    assert two.told == []


def test_attempts_to_connect_come_at_most_once_a_second(network: Network) -> None:
    network.is_down = True
    network.pair()
    network.run(30_000)
    before = network.refused
    network.run(10_000)
    assert 18 <= network.refused - before <= 22


def test_a_link_that_is_not_writable_says_when_it_is(network: Network) -> None:
    one, two, to_two, _ = network.pair()
    while to_two.is_writable(DATA):
        to_two.send(DATA, 1, bytes(100_000))
    assert to_two.kept_size >= CLUSTER_WINDOW_SIZE
    assert to_two.is_writable(CONTROL)
    network.run(50)
    assert one.told == ["heard", ("writable", DATA)]
    assert to_two.is_writable(DATA)
    assert len(two.told) > 40


def test_a_payload_that_the_listener_cannot_use_ends_the_session_and_not_the_node(network: Network) -> None:
    one, two, to_two, to_one = network.pair()

    def refuse(link: NodeLink, body: bytes) -> None:
        raise PayloadError("a publish to queue 0")

    two.on_received = refuse
    to_two.send(DATA, 1, b"bad")
    network.run(300)
    assert ("lost", DATA) in one.told
    assert ("lost", DATA) in two.told
    assert ("lost", CONTROL) not in one.told
    assert to_one.counters.refusals == {RefusalCode.MALFORMED: 1}
    assert to_two.counters.refusals_received == {RefusalCode.MALFORMED: 1}
    two.on_received = lambda link, body: None
    to_two.send(DATA, 1, b"good")
    network.run(300)
    assert two.told[-1] == (DATA, 1, b"good")


def test_a_digest_that_the_listener_cannot_use_ends_the_session_and_not_the_node(network: Network) -> None:
    one, two, _, to_one = network.pair()

    def refuse(digest: bytes) -> None:
        raise PayloadError("an alarm of nothing")

    two.on_pinged = refuse
    network.run(CLUSTER_PING_MS)
    assert two.told == ["heard", ("lost", CONTROL)]
    assert to_one.counters.refusals == {RefusalCode.MALFORMED: 1}
    two.on_pinged = two.digests.append
    count = len(two.digests)
    network.run(5 * CLUSTER_PING_MS)
    assert len(two.digests) > count
    assert one.told == two.told == ["heard", ("lost", CONTROL)]


def test_a_listener_may_forget_a_link_in_any_call(network: Network) -> None:
    one, two, to_two, _ = network.pair()
    two.on_received = lambda link, body: two.links.forget(1)
    to_two.send(DATA, 1, b"a")
    to_two.send(DATA, 1, b"b")
    network.run(50)
    assert two.told == ["heard", (DATA, 1, b"a"), ("lost", CONTROL), ("lost", DATA)]
    assert two.links.deadline() is None
    one.on_lost = lambda link: one.links.forget(2)
    network.run(6_000)
    assert one.links.deadline() is None
    to_two.send(DATA, 1, b"to nobody")
    assert to_two.kept_size == 0


def test_a_clock_that_is_set_forward_makes_nobody_silent(network: Network) -> None:
    one, two, _, _ = network.pair()
    network.run(1_000)
    network.now += 3_600_000
    network.run(1_000)
    assert one.told == two.told == ["heard"]


def test_what_was_sent_and_received_is_counted(network: Network) -> None:
    _, _, to_two, to_one = network.pair()
    to_two.send(DATA, 1, b"a")
    network.run(CLUSTER_PING_MS)
    # The frames of the handshakes are not counted at the link that they lead to.
    assert to_two.counters.frames_sent > 3
    assert to_one.counters.frames_received > 3
    assert to_two.counters.bytes_sent > 40
    assert to_one.counters.bytes_received > 40


def dialed_at(two: TestNode, one: TestNode) -> tuple[MemorySocket, MemorySocket]:
    """Perform the first attempt of `one` to connect to `two`, and no other."""
    network = one.network
    near, far = MemorySocket(lambda: network.now), MemorySocket(lambda: network.now)
    near.peer, far.peer = far, near
    near.connection = one.links.dialed(*one.dials.popleft(), near, network.now)
    far.connection = two.links.accept(far, network.now)
    while any([near.flush(), far.flush()]):
        pass
    return near, far


def test_the_first_connection_of_another_start_closes_those_of_the_former(network: Network) -> None:
    _, two, _, _ = network.pair()
    former = network.sockets[1::2]
    one = network.add(1, "one", incarnation=2)
    connect(one, two)
    _, far = dialed_at(two, one)
    connections = [socket.connection for socket in former]
    assert [None if one is None else one.reason for one in connections] == ["the peer has restarted"] * 2
    assert far.connection is not None
    assert far.connection.is_proven
    assert two.told == ["heard", ("lost", CONTROL), ("lost", DATA)]


def test_a_connection_that_one_end_has_lost_is_closed_when_another_one_replaces_it(network: Network) -> None:
    one, two, to_two, _ = network.pair()
    near, far = network.sockets[:2]
    # Only the dialer learns of the cut.
    near.peer = None
    near.close()
    to_two.send(CONTROL, 1, b"kept")
    network.now += 100
    one.links.tick(network.now)
    dialed_at(two, one)
    assert far.connection is not None
    assert far.connection.reason == "it was replaced by another one"
    assert two.told == ["heard", (CONTROL, 1, b"kept")]
