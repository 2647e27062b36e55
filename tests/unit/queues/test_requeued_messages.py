"""Requeued messages by position."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.queues.samples import Host, made, sent

from warren.queues.queue import Delivery
from warren.queues.requeued_messages import RequeuedMessages

QUEUE = made(Host())


def delivery(position: int) -> Delivery:
    return Delivery(QUEUE, sent(f"{position}"), position, position % 3)


def test_the_lowest_position_is_the_first_whatever_was_taken_before() -> None:
    requeued = RequeuedMessages()
    for position in (5, 2, 9, 7):
        requeued.add(delivery(position))
    assert requeued.take(2).position == 2
    assert requeued.take(7).position == 7
    assert (requeued.count, requeued.first_position()) == (2, 5)
    assert [requeued.pop().position for _ in range(2)] == [5, 9]
    assert requeued.count == 0


def test_messages_are_peeked_at_in_order_from_a_position_on() -> None:
    requeued = RequeuedMessages()
    for position in (5, 2, 9, 7):
        requeued.add(delivery(position))
    peeked = [(one.place, one.message.body, one.attempts) for one in requeued.peek(3, 2)]
    assert peeked == [(5, b"5", 2), (7, b"7", 1)]
    assert requeued.count == 4


def test_a_position_without_a_message_cannot_be_taken() -> None:
    requeued = RequeuedMessages()
    requeued.add(delivery(1))
    assert (requeued.holds(1), requeued.holds(2)) == (True, False)
    with pytest.raises(KeyError):
        requeued.take(2)
    assert requeued.count == 1


@given(st.lists(st.tuples(st.sampled_from(["add", "pop", "take"]), st.integers(0, 30)), max_size=80))
def test_requeued_messages_behave_as_a_sorted_list(steps: list[tuple[str, int]]) -> None:
    requeued, model = RequeuedMessages(), list[int]()
    for step, number in steps:
        if step == "add" and number not in model:
            requeued.add(delivery(number))
            model = sorted([*model, number])
        elif step == "pop" and model:
            assert requeued.pop().position == model.pop(0)
        elif step == "take" and model:
            position = model.pop(number % len(model))
            assert requeued.take(position).position == position
        assert requeued.count == len(model)
        assert not model or requeued.first_position() == model[0]
        assert sorted(one.position for one in requeued.deliveries()) == model
