"""Which messages of a queue are still needed among all that were written."""

import random

import pytest

from warren.limits import SCANNED_AT_ONCE
from warren.store.recovered_queue import RecoveredQueue
from warren.store.scan import CursorScan, LiveMessages, recovered_cursor
from warren.store.segment import Segment

SIZE = 100


def scan_of(positions: list[int]) -> CursorScan:
    """A message at each of `positions`, written in this order, the n-th in segment n % 3."""
    scan = CursorScan()
    for place, position in enumerate(positions):
        scan.in_order = scan.in_order and position >= scan.last
        scan.last = position + 1
        scan.positions.append(position)
        scan.locations.append(location_of(place))
        scan.sizes.append(SIZE + place % 2)
    return scan


def location_of(place: int) -> int:
    return (place % 3) << 32 | place


def segments() -> dict[int, Segment]:
    return {number: Segment(number) for number in range(3)}


def found_in(scan: CursorScan, holding: dict[int, Segment]) -> tuple[RecoveredQueue, int]:
    """The messages found, and in how many steps."""
    remaining = LiveMessages(scan, recovered_cursor(scan, 1, 0), holding)
    goes = 1
    while remaining.take_some():
        goes += 1
    return remaining.found(), goes


@pytest.mark.parametrize("count", [0, 1, SCANNED_AT_ONCE - 1, SCANNED_AT_ONCE, 3 * SCANNED_AT_ONCE + 1])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_released_messages_are_left_out_and_the_others_found(count: int, share: float) -> None:
    chance = random.Random(count)
    scan = scan_of(list(range(5, 5 + count)))
    done = {position for position in range(5, 5 + count) if chance.random() < share}
    scan.runs.extend((position, position + 1) for position in done)
    scan.expiring.extend(range(5, 5 + count, 7))
    holding = segments()
    found, goes = found_in(scan, holding)
    kept = [place for place in range(count) if place + 5 not in done]
    assert list(found.positions.numbers()) == [place + 5 for place in kept]
    assert list(found.locations.numbers()) == [location_of(place) for place in kept]
    assert found.count == len(kept)
    assert found.byte_count == sum(SIZE + place % 2 for place in kept)
    assert found.expiring == [(place + 5, location_of(place)) for place in kept if place % 7 == 0]
    assert found.end == (5 + count if count else 0)
    for number, segment in holding.items():
        assert segment.live == sum(place % 3 == number for place in kept)
    # Each step is short enough for others to wait.
    assert goes == max(-(-count // SCANNED_AT_ONCE), 1)


def test_messages_written_out_of_order_are_found_in_order() -> None:
    scan = scan_of([3, 4, 9, 1, 4])
    scan.runs.append((3, 4))
    found, _ = found_in(scan, segments())
    assert list(found.positions.numbers()) == [1, 4, 9]
    assert list(found.locations.numbers()) == [location_of(3), location_of(4), location_of(2)]
    assert found.end == 10


def test_the_position_of_a_lost_message_is_not_assigned_again() -> None:
    scan = scan_of([1, 2, 3])
    scan.runs.append((1, 4))
    found, _ = found_in(scan, segments())
    assert (found.count, found.byte_count, found.end) == (0, 0, 4)
