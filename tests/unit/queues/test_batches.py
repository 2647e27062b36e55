"""Batches of messages of a queue."""

from itertools import pairwise

import pytest
from tests.unit.queues.samples import Host, sent

from warren.model.arguments import DEFAULT_SETTINGS
from warren.queues.batches import MessageColumns, acknowledge_batch, extend_ranges, take_batch
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery


def queue_with(*bodies: bytes) -> ClassicQueue:
    queue = ClassicQueue("q", "v", Host(), DEFAULT_SETTINGS)
    for number, body in enumerate(bodies):
        queue.publish(sent(body, now=1_700_000_000_000 + number, delivery_mode=2), None, 0)
    return queue


def taken_from(queue: ClassicQueue, count: int = 100) -> list[Delivery | None]:
    taken: list[Delivery | None] = []
    take_batch(queue, taken, count, 1 << 30)
    return taken


def bodies_in(columns: MessageColumns) -> list[bytes]:
    ends = list(columns.ends)
    return [columns.bodies[begin:end] for begin, end in pairwise(ends)]


def test_a_batch_has_the_requested_number_of_messages() -> None:
    queue = queue_with(b"a", b"bc", b"d")
    taken: list[Delivery | None] = []
    assert take_batch(queue, taken, 2, 1 << 30) == 3
    assert (len(taken), queue.message_count, queue.unacked_count) == (2, 1, 2)
    assert take_batch(queue, taken, 2, 1 << 30) == 1
    assert (len(taken), queue.message_count) == (3, 0)


def test_a_batch_is_limited_by_body_size_but_has_at_least_one_message() -> None:
    queue = queue_with(b"abc", b"d", b"ef")
    taken: list[Delivery | None] = []
    assert take_batch(queue, taken, 9, 2) == 3
    assert take_batch(queue, taken, 9, 2) == 1
    assert (len(taken), queue.message_count, queue.unacked_count) == (2, 1, 2)
    assert [delivery.message.body for delivery in taken if delivery is not None] == [b"abc", b"d"]


def test_adjacent_positions_are_joined_into_ranges() -> None:
    queue = queue_with(*(b"%d" % number for number in range(6)))
    deliveries = taken_from(queue)
    found: list[int] = []
    extend_ranges(queue, deliveries[:2], 0, found)
    assert found == [0, 2]
    extend_ranges(queue, deliveries[:3], 2, found)
    assert found == [0, 3]
    extend_ranges(queue, [*deliveries[:3], deliveries[4], deliveries[5]], 3, found)
    assert found == [0, 3, 4, 6]


def test_the_remaining_deliveries_of_a_batch_are_acknowledged() -> None:
    queue = queue_with(b"a", b"b", b"c")
    deliveries = taken_from(queue)
    deliveries[1] = None
    acknowledge_batch(queue, deliveries, 0, 2)
    assert queue.unacked_count == 2
    acknowledge_batch(queue, deliveries, 2, 9)
    assert (queue.unacked_count, queue.acknowledged_count) == (1, 2)


def test_columns_contain_the_fields_of_each_message() -> None:
    columns = MessageColumns(4)
    first, second = sent(b"ab", now=1 << 41, app_id="x"), sent(b"", now=7, app_id="y")
    columns.add(3, first, False)
    columns.add(-1, second, True)
    columns.add(1 << 50, sent(b"c", now=0, app_id="x"), False)
    assert columns.count == 3
    assert columns.byte_count == 3
    assert list(columns.places) == [3, -1, 1 << 50]
    assert list(columns.times) == [1 << 41, 7, 0]
    assert columns.kinds is not None
    assert list(columns.kinds) == [0, 1, 0]
    assert columns.shapes == [
        (first.address, first.property_list),
        (second.address, second.property_list),
    ]
    assert columns.redelivered == [False, True, False]
    assert bodies_in(columns) == [b"ab", b"", b"c"]


def test_columns_of_one_shape_without_redeliveries_are_stored_once() -> None:
    columns = MessageColumns(2)
    columns.add(0, sent(b"a"), False)
    columns.add(1, sent(b"b"), False)
    assert (columns.kinds, columns.redelivered, len(columns.shapes)) == (None, None, 1)


@pytest.mark.parametrize("capacity", [0, 1, 2])
def test_columns_do_not_exceed_their_capacity(capacity: int) -> None:
    columns = MessageColumns(capacity)
    for place in range(max(capacity, 1)):
        columns.add(place, sent(b"a"), False)
    with pytest.raises(IndexError):
        columns.add(9, sent(b"b"), False)
    assert len(columns.places) == max(capacity, 1)


def test_no_messages_make_empty_columns() -> None:
    columns = MessageColumns(0)
    assert (list(columns.places), list(columns.ends), columns.bodies, columns.shapes) == ([], [0], b"", [])


def test_deliveries_become_columns_up_to_a_body_size() -> None:
    queue = queue_with(b"abc", b"d", b"ef", b"g")
    deliveries = taken_from(queue)
    deliveries[1] = None
    columns = MessageColumns(4)
    assert columns.add_deliveries(queue, deliveries, 0, 1) == 2
    assert columns.add_deliveries(queue, deliveries[2:], 2, 2) == 1
    assert columns.add_deliveries(queue, deliveries[3:], 3, 0) == 1
    assert bodies_in(columns) == [b"abc", b"ef", b"g"]
    assert list(columns.places) == [0, 2, 3]
    assert list(columns.times) == [1_700_000_000_000, 1_700_000_000_002, 1_700_000_000_003]
