"""One connection: what it does with bytes that are no handshake, and how it ends."""

import pytest
from tests.unit.cluster.link_nodes import MemorySocket, Network, TestNode, connect

from warren.cluster.hello import LinkPurpose
from warren.cluster.link_connection import LinkConnection
from warren.cluster.link_frames import LinkFrameKind, encode_frame
from warren.cluster.link_handshake import LinkRefusal, RefusalCode
from warren.cluster.node_link import PeerNode
from warren.limits_cluster import (
    CLUSTER_DIGEST_SIZE_MAX,
    CLUSTER_HANDSHAKE_MS,
    CLUSTER_OUTPUT_SIZE,
    CLUSTER_PART_SIZE_MAX,
)


@pytest.fixture
def network() -> Network:
    return Network()


def accepted(node: TestNode) -> tuple[MemorySocket, LinkConnection]:
    """Return a connection that somebody has dialed."""
    socket = MemorySocket(lambda: node.network.now)
    socket.connection = node.links.accept(socket, node.network.now)
    socket.is_ready = False
    return socket, socket.connection


def proven(network: Network, purpose: LinkPurpose = LinkPurpose.CONTROL) -> LinkConnection:
    """Return a connection of the second node, after its handshake."""
    network.pair()
    found = [
        socket.connection
        for socket in network.sockets[1::2]
        if socket.connection is not None and socket.connection.purpose is purpose
    ]
    return found[0]


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", b"AMQP\x00\x00\x09\x01" * 2, bytes(range(256))]
)
def test_another_protocol_is_refused_without_a_reason(network: Network, data: bytes) -> None:
    node = network.add(1, "one")
    socket, connection = accepted(node)
    connection.receive(data, network.now)
    assert connection.is_finished
    assert connection.is_unproven
    assert socket.is_ready
    assert b"".join(connection.take_output()).endswith(bytes((RefusalCode.MALFORMED,)) + b"refused")
    assert node.links.unowned.refusals == {RefusalCode.MALFORMED: 1}
    connection.receive(data, network.now)
    assert connection.take_output() == []


def test_a_listener_says_nothing_before_it_was_spoken_to(network: Network) -> None:
    _, connection = accepted(network.add(1, "one"))
    assert not connection.has_output
    assert connection.take_output() == []


def test_a_handshake_has_a_time_limit(network: Network) -> None:
    node = network.add(1, "one")
    _, connection = accepted(node)
    due = connection.deadline()
    assert due == network.now + CLUSTER_HANDSHAKE_MS
    for _ in range(CLUSTER_HANDSHAKE_MS // 250 - 1):
        network.now += 250
        connection.expire(network.now)
    assert not connection.is_finished
    network.now += 250
    connection.expire(network.now)
    assert connection.reason == f"no handshake within {CLUSTER_HANDSHAKE_MS} ms"
    assert connection.deadline() is None
    assert node.links.unowned.refusals == {RefusalCode.TIMEOUT: 1}


def test_a_proven_connection_has_no_time_limit(network: Network) -> None:
    connection = proven(network)
    assert connection.is_proven
    assert connection.deadline() is None
    network.now += 2 * CLUSTER_HANDSHAKE_MS
    connection.expire(network.now)
    assert not connection.is_finished


def test_a_frame_that_is_not_valid_ends_the_connection_with_the_reason(network: Network) -> None:
    connection = proven(network)
    connection.receive(encode_frame(LinkFrameKind.PART, b""), network.now)
    assert connection.reason == "a PART has a wrong size"
    assert not connection.is_unproven
    refusal = b"".join(connection.take_output())
    assert refusal.endswith(b"a PART has a wrong size")


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (encode_frame(LinkFrameKind.HELLO, b""), "a HELLO after the handshake"),
        (encode_frame(LinkFrameKind.PROOF, b""), "a PROOF after the handshake"),
        (encode_frame(LinkFrameKind.WANT, b"\x03"), "a WANT of a connection that is not dialed"),
        (encode_frame(LinkFrameKind.PING, bytes(CLUSTER_DIGEST_SIZE_MAX + 1)), "a PING has 4097 bytes"),
        (encode_frame(LinkFrameKind.REFUSAL, b"\x0alater"), "the peer refuses: busy: later"),
    ],
)
def test_a_frame_at_the_wrong_time_ends_the_connection(network: Network, frame: bytes, reason: str) -> None:
    connection = proven(network)
    connection.receive(frame, network.now)
    assert connection.reason.startswith(reason)


def test_frames_behind_the_end_are_not_handled(network: Network) -> None:
    connection = proven(network)
    node = network.nodes[1]
    digests = len(node.digests)
    ping = encode_frame(LinkFrameKind.PING, b"one")
    connection.receive(ping + encode_frame(LinkFrameKind.REFUSAL, b"\x0a") + ping, network.now)
    assert len(node.digests) == digests + 1


def test_a_ping_replaces_one_that_still_waits(network: Network) -> None:
    connection = proven(network)
    connection.take_output()
    for digest in (b"a", b"b", b"c"):
        connection.send(LinkFrameKind.PING, digest)
    assert connection.take_output() == [encode_frame(LinkFrameKind.PING, b"c")]


def test_pings_are_sent_between_the_parts_of_a_payload(network: Network) -> None:
    connection = proven(network)
    link = network.nodes[1].links.connect(PeerNode(node_id=1, name="one"), network.now)
    connection.take_output()
    link.send(LinkPurpose.CONTROL, 1, bytes(4 * CLUSTER_PART_SIZE_MAX))
    first = b"".join(connection.take_output())
    assert CLUSTER_PART_SIZE_MAX < len(first) <= CLUSTER_OUTPUT_SIZE + 100
    connection.send(LinkFrameKind.PING, b"now")
    assert connection.take_output()[0] == encode_frame(LinkFrameKind.PING, b"now")
    assert connection.has_output


def test_a_lost_connection_is_reported_once(network: Network) -> None:
    connection = proven(network)
    connection.lost()
    assert connection.reason == "the peer has closed the connection"
    connection.refuse(LinkRefusal(RefusalCode.BUSY, "too late"))
    connection.close("too late")
    connection.lost()
    assert connection.reason == "the peer has closed the connection"
    assert connection.take_output() == []


def test_an_attempt_that_ends_before_the_proof_is_repeated_later(network: Network) -> None:
    one, two = network.add(1, "one"), network.add(2, "two")
    link = connect(one, two)
    _, purpose = one.dials.popleft()
    socket = MemorySocket(lambda: network.now)
    connection = one.links.dialed(link, purpose, socket, network.now)
    assert connection.has_output
    connection.lost()
    assert connection.is_unproven
    one.links.tick(network.now)
    assert (link, purpose) not in one.dials
    network.now += 100
    one.links.tick(network.now)
    assert (link, purpose) in one.dials


def test_an_error_of_this_node_ends_the_session_of_the_connection(network: Network) -> None:
    connection = proven(network)
    connection.fail()
    assert connection.reason == "internal error"
    assert ("lost", LinkPurpose.CONTROL) in network.nodes[1].told
    _, unproven = accepted(network.nodes[1])
    unproven.fail()
    assert network.nodes[1].links.unowned.refusals == {RefusalCode.INTERNAL: 1}


def test_only_a_connection_that_this_node_has_ended_is_refused(network: Network) -> None:
    node = network.add(1, "one")
    _, garbage = accepted(node)
    garbage.receive(b"garbage" * 9, network.now)
    _, closed = accepted(node)
    closed.lost()
    assert (garbage.is_suspect, closed.is_suspect) == (True, False)
    assert garbage.is_unproven
    assert closed.is_unproven
