"""Frames of the stream protocol."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.wire.streams.codes import FrameTooLarge, MalformedFrame
from warren.wire.streams.frames import StreamFrameReader, framed

FRAMES = st.lists(st.binary(min_size=4, max_size=50), max_size=10)


@given(FRAMES, st.integers(1, 20))
def test_frames_are_found_however_the_stream_was_cut(frames, step):
    reader = StreamFrameReader(1000)
    data = b"".join(map(framed, frames))
    found = []
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])
        while reader.has_more and (frame := reader.next()) is not None:
            found.append(frame)
    assert found == frames


def test_a_frame_that_is_too_large_is_refused_by_its_size_alone():
    reader = StreamFrameReader(100)
    reader.feed((101).to_bytes(4, "big"))
    with pytest.raises(FrameTooLarge):
        reader.next()


def test_zero_means_no_limit():
    reader = StreamFrameReader(0)
    reader.feed(framed(bytes(10_000_000)))
    assert len(reader.next()) == 10_000_000


def test_a_frame_without_key_and_version_is_refused():
    reader = StreamFrameReader(100)
    reader.feed(b"\0\0\0\3abc")
    with pytest.raises(MalformedFrame):
        reader.next()
