"""Frames between nodes: cut from a stream in any pieces, and refused before anything is allocated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.cluster.link_frames import (
    LAST_PART,
    LINK_FRAME_OVERHEAD,
    PART_HEAD_SIZE,
    LinkFrame,
    LinkFrameError,
    LinkFrameKind,
    LinkFrameReader,
    encode_frame,
    encode_pieces,
)
from warren.limits_cluster import CLUSTER_FRAME_SIZE_MAX, CLUSTER_UNPROVEN_SIZE_MAX

PING = encode_frame(LinkFrameKind.PING, b"digest")


def proven_reader() -> LinkFrameReader:
    reader = LinkFrameReader()
    reader.proved()
    return reader


def received(kind: LinkFrameKind, body: bytes) -> LinkFrame:
    """The frame as it is cut: the head of a part is apart from its data."""
    size = PART_HEAD_SIZE if kind is LinkFrameKind.PART and len(body) >= PART_HEAD_SIZE else 0
    return LinkFrame(kind, body[size:], 0, body[:size])


def test_a_frame_has_the_documented_layout() -> None:
    assert PING.hex() == "0000000604009428efb4" + b"digest".hex()


@given(
    st.lists(st.tuples(st.sampled_from(LinkFrameKind), st.binary(max_size=40)), max_size=6),
    st.integers(min_value=1, max_value=60),
)
def test_frames_are_the_same_however_the_stream_is_cut(
    sent: list[tuple[LinkFrameKind, bytes]], step: int
) -> None:
    stream = b"".join(encode_frame(kind, body) for kind, body in sent)
    reader = proven_reader()
    pieces = [stream[start : start + step] for start in range(0, len(stream), step)]
    found = [frame for piece in pieces for frame in reader.cut(piece)]
    assert found == [received(kind, body) for kind, body in sent]


def test_what_was_cut_does_not_change_with_the_buffer_of_the_next_read() -> None:
    stream = encode_frame(LinkFrameKind.PART, bytes(9), b"data") + PING
    buffer = bytearray(stream)
    reader = proven_reader()
    found = list(reader.cut(memoryview(buffer)[:-1]))
    last = bytes(buffer[-1:])
    buffer[:] = bytes(len(buffer))
    assert found == [LinkFrame(LinkFrameKind.PART, b"data", 0, bytes(9))]
    assert [frame.body for frame in reader.cut(last)] == [b"digest"]


@pytest.mark.parametrize("size", [0, 4_096, 4_097, 100_000])
def test_a_frame_in_pieces_is_the_same_frame_and_much_data_is_not_copied(size: int) -> None:
    data = bytes(size)
    pieces = encode_pieces(LinkFrameKind.PART, b"head", data, LAST_PART)
    assert b"".join(pieces) == encode_frame(LinkFrameKind.PART, b"head", data, flags=LAST_PART)
    assert (pieces[-1] is data) == (size > 4_096)


def test_the_flag_of_the_last_part_is_kept() -> None:
    frame = encode_frame(LinkFrameKind.PART, b"he", b"ad", flags=LAST_PART)
    assert list(proven_reader().cut(frame)) == [LinkFrame(LinkFrameKind.PART, b"head", LAST_PART)]


def test_what_a_part_begins_with_is_apart_from_its_data() -> None:
    frame = encode_frame(LinkFrameKind.PART, b"a number", b"k", b"data", flags=LAST_PART)
    assert list(proven_reader().cut(frame)) == [
        LinkFrame(LinkFrameKind.PART, b"data", LAST_PART, b"a numberk")
    ]


@pytest.mark.parametrize("bit", range(8 * len(PING)))
def test_no_changed_bit_goes_unnoticed(bit: int) -> None:
    changed = bytearray(PING)
    changed[bit // 8] ^= 1 << bit % 8
    reader = proven_reader()
    try:
        found = list(reader.cut(bytes(changed)))
    except LinkFrameError:
        return
    # The size grew: the frame is not complete.
    assert found == []
    assert bit < 32


def test_frames_before_one_that_is_not_valid_are_read() -> None:
    frames = proven_reader().cut(PING + PING[:-1] + b"?")
    assert next(frames).body == b"digest"
    with pytest.raises(LinkFrameError, match="wrong checksum"):
        next(frames)


def test_a_frame_of_an_unknown_kind_is_refused_by_name() -> None:
    unknown = encode_frame(99, b"")  # type: ignore[arg-type]
    with pytest.raises(LinkFrameError, match="the unknown kind 99"):
        list(proven_reader().cut(unknown))


@pytest.mark.parametrize(
    ("kind", "flags"), [(LinkFrameKind.PING, LAST_PART), (LinkFrameKind.PART, 2), (LinkFrameKind.PART, 3)]
)
def test_an_undefined_flag_is_refused(kind: LinkFrameKind, flags: int) -> None:
    with pytest.raises(LinkFrameError, match=f"{kind.name} has the flags"):
        list(proven_reader().cut(encode_frame(kind, b"", flags=flags)))


def test_a_frame_that_is_too_large_is_refused_at_its_head() -> None:
    largest = encode_frame(LinkFrameKind.PART, bytes(CLUSTER_FRAME_SIZE_MAX))
    assert len(next(proven_reader().cut(largest)).body) == CLUSTER_FRAME_SIZE_MAX - PART_HEAD_SIZE
    head = (CLUSTER_FRAME_SIZE_MAX + 1).to_bytes(4, "big") + largest[4:LINK_FRAME_OVERHEAD]
    with pytest.raises(LinkFrameError, match="larger than"):
        list(proven_reader().cut(head))


def test_little_may_be_sent_before_the_proof_and_much_after_it() -> None:
    reader = LinkFrameReader()
    half = encode_frame(LinkFrameKind.HELLO, bytes(CLUSTER_UNPROVEN_SIZE_MAX // 2 - LINK_FRAME_OVERHEAD))
    assert len(list(reader.cut(half + half))) == 2
    with pytest.raises(LinkFrameError, match="before the proof"):
        list(reader.cut(PING[:LINK_FRAME_OVERHEAD]))
    reader = LinkFrameReader()
    frames = reader.cut(half + half + PING)
    assert [next(frames), next(frames)]
    # The frame behind the proof may be in the same read.
    reader.proved()
    assert next(frames).body == b"digest"
