"""The frames of a channel that wait: kept at once as far as they may, and read in pieces."""

import pytest

from warren.session.held_frames import HeldFrames, settles
from warren.wire import methods
from warren.wire.frames import FrameReader


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return bytes((kind,)) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce"


def method(channel: int, index: int) -> bytes:
    return frame(1, channel, index.to_bytes(4, "big") + b"arguments")


PUBLISH = method(1, methods.BasicPublish.index)
ACK = method(1, methods.BasicAck.index)
HEADER, BODY = frame(2, 1, b"header"), frame(3, 1, bytes(10_000))


def reader_at(data: bytes) -> FrameReader:
    reader = FrameReader()
    reader.frame_size_max = 131_072
    reader.feed(data)
    assert reader.advance()
    return reader


def frames_of(reader: FrameReader) -> list[tuple[int, int]]:
    found = []
    while reader.advance():
        found.append((reader.kind, reader.size))
    return found


@pytest.mark.parametrize(
    "behind", [ACK, method(2, methods.BasicPublish.index), BODY[:-1], PUBLISH[:6], frame(8, 0, b"")]
)
def test_a_frame_is_kept_with_those_that_follow_it_on_its_channel_up_to_one_that_settles(
    behind: bytes,
) -> None:
    held, run = HeldFrames(), PUBLISH + HEADER + BODY + PUBLISH
    reader = reader_at(run + behind)
    assert held.add(reader) == held.size == len(run)
    assert frames_of(held.after(0)) == [(1, 13), (2, 6), (3, 10_000), (1, 13)]
    is_complete = behind[-1:] == b"\xce"
    assert reader.advance() is is_complete
    if is_complete:
        assert (reader.kind, reader.channel) == (behind[0], behind[2])


def test_what_settles_is_kept_alone_and_behind_the_others() -> None:
    held = HeldFrames()
    reader = reader_at(PUBLISH + ACK + ACK + HEADER)
    held.add(reader)
    while reader.advance():
        held.add(reader)
    assert frames_of(held.after(0)) == [(1, 13), (1, 13), (1, 13), (2, 6)]
    assert [settles(each.index) for each in (methods.BasicNack, methods.BasicReject, methods.BasicGet)] == [
        True, True, False,
    ]  # fmt: skip


def test_pieces_have_one_frame_at_least_and_what_is_removed_is_not_read_again() -> None:
    held = HeldFrames()
    held.add(reader_at(BODY + PUBLISH + HEADER))
    assert frames_of(held.first(1)) == [(3, 10_000)]
    held.remove(len(BODY))
    assert frames_of(held.first(len(PUBLISH))) == [(1, 13)]
    assert frames_of(held.first(4_096)) == [(1, 13), (2, 6)]
    held.remove(len(PUBLISH + HEADER))
    assert held.size == 0
