"""Digests: what is told with pings, and what is refused."""

import msgspec
import pytest

from warren.cluster.node_digest import (
    AdvertisedStreams,
    NodeDigest,
    NodeListener,
    bounded_listeners,
    decode_digest,
    encode_digest,
)
from warren.cluster.node_link import PayloadError
from warren.flow.alarms import Resource
from warren.limits_cluster import (
    CLUSTER_CLIENTS_MAX,
    CLUSTER_DIGEST_ADDRESS_SIZE_MAX,
    CLUSTER_DIGEST_LISTENERS_MAX,
    CLUSTER_DIGEST_PROTOCOL_SIZE_MAX,
    CLUSTER_DIGEST_RELEASE_SIZE_MAX,
    CLUSTER_DIGEST_SILENT_MAX,
    CLUSTER_DIGEST_SIZE_MAX,
    CLUSTER_HOST_SIZE_MAX,
)
from warren.limits_metadata import CLUSTER_MEMBERS_MAX, MEMBER_ID_MAX, MEMBER_PORT_MAX

AMQP = NodeListener("amqp", "0.0.0.0", 5672)
DIGEST = NodeDigest(
    alarms=(Resource.DISK, Resource.MEMORY), index=7, is_draining=True, is_paused=True, release="4.1",
    connections=3, channels=5, silent=(2, 9), listeners=(AMQP,),
    streams=AdvertisedStreams("streams.example", 5552, "tls.example", 5551),
)  # fmt: skip
RAW = [
    1, ["disk", "memory"], 7, True, True, "4.1", 3, 5, [2, 9], [["amqp", "0.0.0.0", 5672]],
    ["streams.example", 5552, "tls.example", 5551],
]  # fmt: skip


def test_a_digest_is_an_array_of_the_states_of_its_node() -> None:
    assert msgspec.msgpack.decode(encode_digest(DIGEST)) == RAW
    assert decode_digest(msgspec.msgpack.encode(RAW)) == DIGEST


def test_the_largest_digest_is_smaller_than_a_ping_permits() -> None:
    listener = NodeListener(
        "p" * CLUSTER_DIGEST_PROTOCOL_SIZE_MAX, "a" * CLUSTER_DIGEST_ADDRESS_SIZE_MAX, MEMBER_PORT_MAX
    )
    host = "h" * CLUSTER_HOST_SIZE_MAX
    largest = NodeDigest(
        alarms=tuple(Resource), index=(1 << 64) - 1, release="r" * CLUSTER_DIGEST_RELEASE_SIZE_MAX,
        connections=CLUSTER_CLIENTS_MAX, channels=CLUSTER_CLIENTS_MAX,
        silent=(MEMBER_ID_MAX,) * CLUSTER_DIGEST_SILENT_MAX,
        listeners=(listener,) * CLUSTER_DIGEST_LISTENERS_MAX,
        streams=AdvertisedStreams(host, MEMBER_PORT_MAX, host, MEMBER_PORT_MAX),
    )  # fmt: skip
    assert len(encode_digest(largest)) <= CLUSTER_DIGEST_SIZE_MAX
    assert decode_digest(encode_digest(largest)) == largest
    assert CLUSTER_DIGEST_SILENT_MAX >= CLUSTER_MEMBERS_MAX


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, 2),
        (1, ["paper"]),
        (1, ["disk", "disk", "disk"]),
        (2, -1),
        (2, "7"),
        (3, 1),
        (5, "r" * (CLUSTER_DIGEST_RELEASE_SIZE_MAX + 1)),
        (5, "a\nline"),
        (6, -1),
        (7, CLUSTER_CLIENTS_MAX + 1),
        (8, [0]),
        (8, [MEMBER_ID_MAX + 1]),
        (8, [1] * (CLUSTER_DIGEST_SILENT_MAX + 1)),
        (9, [["amqp", "0.0.0.0", MEMBER_PORT_MAX + 1]]),
        (9, [["amqp", "0.0.0.0"]]),
        (9, [["amqp", "0.0.0.0", 1, 2]]),
        (9, [["amqp", "é", 1]]),
        (9, [["a", "b", 1]] * (CLUSTER_DIGEST_LISTENERS_MAX + 1)),
        (10, ["h" * (CLUSTER_HOST_SIZE_MAX + 1), 1, "", 0]),
        (10, ["h", MEMBER_PORT_MAX + 1, "", 0]),
        (10, ["h\n", 1, "", 0]),
        (10, ["h", 1, "", 0, 0]),
    ],
)
def test_a_digest_with_anything_else_is_refused(place: int, value: object) -> None:
    with pytest.raises(PayloadError, match="unknown digest"):
        decode_digest(msgspec.msgpack.encode([*RAW[:place], value, *RAW[place + 1 :]]))


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x91", msgspec.msgpack.encode([*RAW, 1])])
def test_what_is_no_digest_is_refused(data: bytes) -> None:
    with pytest.raises(PayloadError, match="unknown digest"):
        decode_digest(data)


def test_a_digest_that_is_too_large_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(PayloadError, match="which may have"):
        decode_digest(bytes(CLUSTER_DIGEST_SIZE_MAX + 1))


def test_listeners_that_others_would_refuse_are_left_out() -> None:
    odd = [NodeListener("amqp", "fé::1", 1), NodeListener("x" * 99, "h", 1), NodeListener("amqp", "a\tb", 1)]
    assert bounded_listeners([*odd, AMQP]) == (AMQP,)
    assert len(bounded_listeners([AMQP] * 99)) == CLUSTER_DIGEST_LISTENERS_MAX
