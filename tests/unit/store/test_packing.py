"""Integers in a buffer, and what is copied out of it."""

import pytest

from warren.queues.quorum.batch_codec import QuorumBatch, SettledRun, encode
from warren.store.packing import copied, put


def test_an_integer_is_written_in_as_many_bytes_as_asked_for() -> None:
    data = bytearray(b"........")
    put(data, 1, 2, 0x0102)
    put(data, 4, 4, 0xFFFF_FFFF)
    assert data == b".\x01\x02.\xff\xff\xff\xff"


@pytest.mark.parametrize(("at", "size", "value"), [(-1, 2, 0), (7, 2, 0), (9, 0, 0), (0, 2, 65_536)])
def test_what_has_no_room_is_refused_and_changes_nothing(at: int, size: int, value: int) -> None:
    data = bytearray(b"........")
    with pytest.raises(OverflowError):
        put(data, at, size, value)
    assert data == b"........"


def test_compiled_code_refuses_what_has_no_room_as_well() -> None:
    with pytest.raises(OverflowError):
        encode(QuorumBatch(settled=(SettledRun(0, 0, 1 << 32),)))


def test_no_more_is_copied_than_there_is() -> None:
    data = bytearray(b"abcd")
    assert (copied(data, 3), copied(data, 5)) == (b"abc", b"abcd")
    assert type(copied(data, 3)) is bytes
