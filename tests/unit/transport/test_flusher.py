"""Gathering output."""

from hypothesis import given
from hypothesis import strategies as st

from warren.transport.flusher import gather

sizes = st.lists(st.sampled_from([0, 1, 7, 100, 16_383, 16_384, 40_000]), max_size=100)


@given(sizes)
def test_gathering_keeps_every_octet_in_order(lengths: list[int]) -> None:
    chunks = [bytes([at % 256]) * length for at, length in enumerate(lengths)]
    assert b"".join(gather(chunks)) == b"".join(chunks)


def test_large_chunks_are_not_copied() -> None:
    large = bytes(20_000)
    gathered = gather([b"a", b"b", large, b"c", large])
    assert gathered == [b"ab", large, b"c", large]
    assert gathered[1] is large


def test_many_small_chunks_become_one() -> None:
    assert len(gather([b"abc"] * 1000)) == 1
