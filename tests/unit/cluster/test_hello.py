"""HELLO: what it says survives, and everything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.cluster.hello import (
    LINK_VERSION_MAX,
    LINK_VERSION_MIN,
    NONCE_SIZE,
    LinkPurpose,
    LocalNode,
    decode_hello,
)
from warren.cluster.link_frames import LinkFrameError
from warren.limits_cluster import CLUSTER_NODE_NAME_SIZE_MAX

NODE = LocalNode(cluster_id=bytes(range(16)), node_id=7, name="warren@é", incarnation=2**40, feature_level=3)
HELLO = NODE.hello(LinkPurpose.DATA, b"n" * NONCE_SIZE)
RAW = HELLO.encode()


def test_a_hello_has_the_documented_layout() -> None:
    assert RAW.hex() == (
        b"WRNL".hex() + "0001" "0001" "0003" + bytes(range(16)).hex() + "0007" "0000010000000000" "02"
        + (b"n" * 32).hex() + "0009" + "warren@é".encode().hex()
    )  # fmt: skip
    assert decode_hello(RAW) == HELLO
    assert (HELLO.version_min, HELLO.version_max) == (LINK_VERSION_MIN, LINK_VERSION_MAX)


@given(
    st.builds(
        LocalNode,
        cluster_id=st.binary(min_size=16, max_size=16),
        node_id=st.integers(0, 2**16 - 1),
        name=st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=100),
        incarnation=st.integers(0, 2**64 - 1),
        feature_level=st.integers(0, 2**16 - 1),
    ),
    st.sampled_from(LinkPurpose),
)
def test_a_hello_survives_encoding(node: LocalNode, purpose: LinkPurpose) -> None:
    hello = node.hello(purpose, b"\xff" * NONCE_SIZE)
    assert decode_hello(hello.encode()) == hello


@given(st.binary(max_size=200))
def test_anything_is_a_hello_or_refused(data: bytes) -> None:
    try:
        assert decode_hello(data).encode() == data
    except LinkFrameError:
        return


@pytest.mark.parametrize("size", [0, 1, 72, len(RAW) - 1])
def test_a_hello_that_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(LinkFrameError, match=r"too short|wrong size"):
        decode_hello(RAW[:size])


@pytest.mark.parametrize(
    ("place", "octets", "reason"),
    [
        (0, b"AMQP", "as one of Warren"),
        (4, b"\0\0", "the versions 0 to 1"),
        (4, b"\0\2", "the versions 2 to 1"),
        (36, b"\0", "the unknown purpose 0"),
        (36, b"\6", "the unknown purpose 6"),
        (69, b"\0\0", "name of a wrong size"),
        (69, b"\0\x0a", "name of a wrong size"),
        (71, b"\xff", "not UTF-8"),
        (71, b"\n", "not printable"),
    ],
)
def test_a_field_that_is_not_valid_is_refused(place: int, octets: bytes, reason: str) -> None:
    with pytest.raises(LinkFrameError, match=reason):
        decode_hello(RAW[:place] + octets + RAW[place + len(octets) :])


def test_nothing_may_follow_the_name_and_the_name_is_bounded() -> None:
    with pytest.raises(LinkFrameError, match="wrong size"):
        decode_hello(RAW + b"?")
    size = CLUSTER_NODE_NAME_SIZE_MAX + 1
    with pytest.raises(LinkFrameError, match="wrong size"):
        decode_hello(RAW[:69] + size.to_bytes(2, "big") + b"n" * size)
