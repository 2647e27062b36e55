"""The states of messages that came back, compared with a dict of positions."""

import random

import pytest
from tests.seeds import SEEDS

from warren.queues.quorum.batch_codec import HoldReason
from warren.queues.quorum.returned_messages import NOT_RETURNED, ReturnedMessages, ReturnedRange, ReturnState

PAGE = 4096


def ranges(states: dict[tuple[int, int], ReturnState]) -> list[ReturnedRange]:
    """The fewest ranges that have `states`."""
    found: list[ReturnedRange] = []
    for level, position in sorted(states):
        state = states[level, position]
        last = found[-1] if found else None
        if last is not None and (last.level, last.end, last.state) == (level, position, state):
            found[-1] = ReturnedRange(level, last.first, position + 1, state)
        else:
            found.append(ReturnedRange(level, position, position + 1, state))
    return found


@pytest.mark.seeds(SEEDS)
def test_states_are_those_that_were_set(seed: int) -> None:
    chance = random.Random(seed)
    messages, expected = ReturnedMessages(), dict[tuple[int, int], ReturnState]()
    width = chance.choice((8, 60))
    for _ in range(chance.randrange(80)):
        level, first = chance.randrange(2), chance.choice((0, PAGE, 5 * PAGE)) + chance.randrange(width)
        first = max(first - width // 2, 0)
        end = first + chance.choice((1, 1, 3, width))
        places = [(level, position) for position in range(first, end)]
        failed, hold = chance.randrange(3), chance.choice(tuple(HoldReason))
        match chance.randrange(4):
            case 0:
                messages.count_attempts(
                    ReturnedRange(level, first, end, ReturnState(HoldReason.NONE, failed, failed, 7))
                )
                for place in places:
                    old = expected.get(place, NOT_RETURNED)
                    expected[place] = ReturnState(old.hold, failed, failed, 7)
            case 1:
                messages.hold(ReturnedRange(level, first, end, ReturnState(hold)))
                for place in places:
                    old = expected.get(place, NOT_RETURNED)
                    expected[place] = ReturnState(hold, old.failed, old.total, old.ready_at)
            case 2:
                messages.add(ReturnedRange(level, first, end, ReturnState(hold, failed, 9, 4)))
                expected |= dict.fromkeys(places, ReturnState(hold, failed, 9, 4))
            case 3:
                messages.remove(level, first, end)
                for place in places:
                    expected.pop(place, None)
        expected = {place: state for place, state in expected.items() if state != NOT_RETURNED}
        assert list(messages.ranges()) == ranges(expected)
    for level in range(2):
        for base in (0, PAGE, 5 * PAGE):
            for position in range(max(base - width, 0), base + 2 * width):
                assert messages.get(level, position) == expected.get((level, position), NOT_RETURNED)
    # Runs end at the end of a page, and are otherwise as few as possible.
    whole = ranges(expected)
    crossing = sum(run.first // PAGE != (run.end - 1) // PAGE for run in whole)
    assert messages.run_count == len(whole) + crossing


def test_a_range_of_many_pages_is_set_and_removed_as_a_whole() -> None:
    messages = ReturnedMessages()
    messages.add(ReturnedRange(0, 10, 100 * PAGE, ReturnState(HoldReason.NONE, 1, 1)))
    assert list(messages.ranges()) == [ReturnedRange(0, 10, 100 * PAGE, ReturnState(HoldReason.NONE, 1, 1))]
    assert messages.run_count == 100
    messages.remove(1, 0, 2**50)
    assert messages.run_count == 100
    messages.remove(0, 0, 2**50)
    assert messages.run_count == 0
    assert not list(messages.ranges())


def test_half_of_the_ranges_with_the_fewest_attempts_are_forgotten_and_held_ones_last() -> None:
    messages = ReturnedMessages()
    states = (
        ReturnState(HoldReason.NONE, 5, 5),
        ReturnState(HoldReason.QUARANTINED, 0, 0),
        ReturnState(HoldReason.NONE, 1, 9),
        ReturnState(HoldReason.NONE, 1, 2),
        ReturnState(HoldReason.NONE, 2, 2),
    )
    for first, state in enumerate(states):
        messages.add(ReturnedRange(0, 2 * first, 2 * first + 1, state))
    messages.forget_half()
    assert [run.first for run in messages.ranges()] == [0, 2]


def test_held_ranges_are_forgotten_only_if_there_are_no_others() -> None:
    messages = ReturnedMessages()
    states = (*[ReturnState(HoldReason.REJECTED)] * 3, ReturnState(HoldReason.NONE, 9, 9))
    for first, state in enumerate(states):
        messages.add(ReturnedRange(0, 2 * first, 2 * first + 1, state))
    messages.forget_half()
    assert [run.first for run in messages.ranges()] == [0, 2, 4]
    messages.forget_half()
    assert [run.first for run in messages.ranges()] == [4]
