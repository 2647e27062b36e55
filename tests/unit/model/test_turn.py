"""The time of a turn of the event loop."""

from collections.abc import Callable

import pytest

from warren.limits_relay import LINK_SHARED_MS
from warren.model.turn import Turn


class Loop:
    """A clock that counts its readings, and what is to be called at the end of the turn."""

    def __init__(self) -> None:
        self.readings = 0
        self.ends: list[Callable[[], None]] = []
        self.turn = Turn(self.read, self.ends.append)

    def read(self) -> int:
        self.readings += 1
        return 1_000 * self.readings

    def end_turn(self) -> None:
        ends, self.ends[:] = self.ends[:], []
        for end in ends:
            end()


def test_the_clock_is_read_once_in_a_turn_and_only_if_the_time_is_used() -> None:
    loop = Loop()
    assert loop.readings == 0
    assert [loop.turn.now() for _ in range(3)] == [1_000] * 3
    loop.end_turn()
    assert loop.readings == 1
    assert [loop.turn.now() for _ in range(3)] == [2_000] * 3


def test_an_event_that_begins_has_the_time_read_anew_within_the_same_turn() -> None:
    loop = Loop()
    assert [loop.turn.now(), loop.turn.begin(), loop.turn.now()] == [1_000, 2_000, 2_000]
    assert len(loop.ends) == 1, "the end of a turn is scheduled once"
    loop.end_turn()
    assert loop.turn.now() == 3_000


def test_a_turn_is_shared_while_clients_send() -> None:
    times = [0, LINK_SHARED_MS - 1, LINK_SHARED_MS]
    turn = Turn(lambda: times.pop(0), [].append)
    assert not turn.is_shared()
    turn.note_client()
    assert turn.is_shared()
    turn.end()
    assert turn.is_shared()
    turn.end()
    assert not turn.is_shared()


def test_nobody_can_set_the_time() -> None:
    turn = Loop().turn
    with pytest.raises(AttributeError):
        turn.now = 5  # type: ignore[method-assign, assignment]


def test_a_clock_that_fails_leaves_no_time_behind() -> None:
    readings: list[int | Exception] = [OSError("no clock"), 7]

    def read() -> int:
        reading = readings.pop(0)
        if isinstance(reading, Exception):
            raise reading
        return reading

    turn = Turn(read, [].append)
    with pytest.raises(OSError, match="no clock"):
        turn.now()
    assert turn.now() == 7
