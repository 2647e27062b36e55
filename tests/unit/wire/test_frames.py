"""A byte stream yields the same frames however it is cut."""

import struct
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.errors import FrameError
from warren.wire.frames import FrameReader

Frame = tuple[int, int, bytes]


def encoded(*frames: Frame) -> bytes:
    return b"".join(
        struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"
        for kind, channel, payload in frames
    )


def read(reader: FrameReader, *pieces: bytes) -> list[Frame]:
    found = []
    for piece in pieces:
        reader.feed(piece)
        while reader.advance():
            payload = reader.data[reader.start : reader.start + reader.size]
            assert payload == reader.payload()
            found.append((reader.kind, reader.channel, payload))
    return found


FRAMES: list[Frame] = [(1, 0, b"method"), (8, 0, b""), (2, 65_535, b"\xce" * 3), (3, 256, b"x" * 20)]


def test_every_split_in_two_gives_the_same_frames() -> None:
    data = encoded(*FRAMES)
    for at in range(len(data) + 1):
        assert read(FrameReader(), data[:at], data[at:]) == FRAMES


def test_single_bytes_give_the_same_frames() -> None:
    assert read(FrameReader(), *(bytes((octet,)) for octet in encoded(*FRAMES))) == FRAMES


@given(
    st.lists(st.tuples(st.integers(0, 255), st.integers(0, 65_535), st.binary(max_size=40)), max_size=6),
    st.lists(st.integers(0, 300), max_size=12),
)
def test_any_cuts_give_the_same_frames(frames: list[Frame], cuts: list[int]) -> None:
    data = encoded(*frames)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(places)]
    assert read(FrameReader(), *pieces) == frames


@given(
    st.lists(st.tuples(st.integers(0, 255), st.integers(0, 65_535), st.binary(max_size=40)), max_size=6),
    st.lists(st.integers(0, 300), max_size=12),
    st.integers(0, 6),
)
def test_what_was_not_visited_can_be_taken(frames: list[Frame], cuts: list[int], visited: int) -> None:
    data = encoded(*frames, (1, 2, b"never complete"))[:-3]
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    reader = FrameReader()
    found: list[Frame] = []
    unread = b""
    for start, end in pairwise(places):
        if unread or (len(found) == visited and not reader.has_more()):
            unread += reader.take_unread() + data[start:end]
            continue
        reader.feed(data[start:end])
        while len(found) < visited and reader.advance():
            found.append((reader.kind, reader.channel, reader.payload()))
        if len(found) == visited:
            unread += reader.take_unread()
    unread += reader.take_unread()
    assert encoded(*found) + unread == data
    assert reader.take_unread() == b""


def test_whether_the_next_frame_is_of_a_channel_is_known_only_if_it_is_complete() -> None:
    reader = FrameReader()
    data = encoded((1, 1, b"a"), (3, 0x0102, b"b"), (2, 1, b"c"))
    reader.feed(data[:-1])
    assert reader.is_next_of(1)
    assert reader.advance()
    assert not reader.is_next_of(1)
    assert reader.is_next_of(0x0102)
    assert reader.advance()
    # The last frame lacks its end.
    assert not reader.is_next_of(1)
    assert not reader.advance()
    reader.feed(data[-1:])
    assert reader.is_next_of(1)
    assert reader.advance()
    reader.feed(b"\x01\0\x01\xff\xff\xff\xff\xce" + bytes(20))
    assert not reader.is_next_of(1)


def test_the_cost_of_single_bytes_is_linear() -> None:
    def seconds(size: int) -> float:
        reader = FrameReader()
        reader.frame_size_max = 10**6
        data = encoded((3, 1, bytes(size)))
        best = 10.0
        for _ in range(3):
            began = time.process_time()
            assert len(read(reader, *(data[at : at + 1] for at in range(len(data))))) == 1
            best = min(best, time.process_time() - began)
        return best

    # Eight times the bytes: linear is 8, quadratic is 64.
    assert seconds(40_000) < 30 * max(seconds(5_000), 0.0005)


def test_a_frame_of_the_negotiated_size_is_accepted_and_a_larger_one_refused() -> None:
    reader = FrameReader()
    reader.frame_size_max = 4096
    assert len(read(reader, encoded((3, 1, bytes(4096))))) == 1
    with pytest.raises(FrameError, match=r"type 3, all octets = <<>>: \{frame_too_large,4097,4088\}"):
        read(reader, encoded((3, 1, bytes(4097))))


@pytest.mark.parametrize("size", [4097, 2**31 - 1, 2**31, 2**31 + 5, 2**32 - 8, 2**32 - 1])
@pytest.mark.parametrize("cut", [7, 3])
def test_a_hostile_size_is_refused_as_soon_as_it_is_read(size: int, cut: int) -> None:
    head = struct.pack(">BHI", 1, 0, size)
    with pytest.raises(FrameError, match=rf"frame_too_large,{size},4088"):
        read(FrameReader(), head[:cut], head[cut:])


@pytest.mark.parametrize("cut", [0, 5, 12])
def test_a_frame_must_end_with_its_marker(cut: int) -> None:
    data = encoded((1, 0, b"abcd"))[:-1] + b"\xcd"
    with pytest.raises(FrameError, match="invalid_frame_end_marker,205"):
        read(FrameReader(), data[:cut], data[cut:])


def test_nothing_behind_the_complete_frames_is_read() -> None:
    reader = FrameReader()
    reader.feed(encoded((1, 0, b"abcd")) + b"\x01\x00")
    assert reader.advance()
    assert not reader.advance()
    assert not reader.advance()
