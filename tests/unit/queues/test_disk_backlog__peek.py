"""Peeking at a queue on disk shows messages in delivery order and changes nothing."""

import random

import pytest
from tests.unit.queues.samples import Host, filled, made, sent
from tests.unit.queues.test_disk_backlog import COUNT, Paged

from warren.queues.queue import PeekedMessage

PAGE = 7


def looked_at(paged: Paged) -> list[PeekedMessage]:
    """All messages, read page by page."""
    found: list[PeekedMessage] = []
    first = 0
    while page := paged.queue.peek(first, PAGE):
        found += page
        first = page[-1].place + 1
    return found


def numbers(found: list[PeekedMessage]) -> list[int]:
    return [int(peeked.message.body.partition(b",")[0]) for peeked in found]


@pytest.mark.parametrize("priority_max", [None, 3])
@pytest.mark.parametrize("seed", range(8))
def test_peeked_messages_are_delivered_in_the_order_shown(seed: int, priority_max: int | None) -> None:
    chance = random.Random(seed)
    paged = Paged(priority_max)
    held = []
    for number in range(COUNT):
        paged.publish(number, is_persistent=chance.random() < 0.7, expires=chance.random() < 0.1)
        if chance.random() < 0.2:
            paged.write()
        if chance.random() < 0.3 and (delivery := paged.queue.get()) is not None:
            held.append(delivery)
        if held and chance.random() < 0.3:
            settle = paged.queue.requeue if chance.random() < 0.6 else paged.queue.acknowledge
            settle(held.pop(chance.randrange(len(held))))
    found = looked_at(paged)
    count = paged.queue.message_count
    assert len(found) == count > 0
    assert numbers(looked_at(paged)) == numbers(found)
    places = [peeked.place for peeked in found]
    assert places == sorted(set(places))
    for peeked in found:
        delivery = paged.queue.get()
        assert delivery.message.body == peeked.message.body
        assert delivery.attempts == peeked.attempts


def test_messages_delivered_before_the_last_restart_are_shown_as_redelivered() -> None:
    paged = Paged()
    for number in range(10):
        paged.publish(number)
    for _ in range(3):
        paged.queue.get()
    paged.write()
    paged.open()
    found = looked_at(paged)
    assert numbers(found) == list(range(10))
    assert [peeked.attempts for peeked in found] == [1, 1, 1, *[0] * 7]


def test_a_peek_can_begin_anywhere_and_end_early() -> None:
    queue = filled(Host(), *"abcdef")
    assert [peeked.message.body for peeked in queue.peek(2, 3)] == [b"c", b"d", b"e"]
    assert queue.peek(6, 3) == []
    assert queue.peek(0, 0) == []


def test_higher_priorities_are_shown_first() -> None:
    queue = made(Host(), priority_max=3)
    for body, priority in zip("abcde", [0, 3, 1, 3, 0], strict=True):
        queue.publish(sent(body, priority=priority), None, 0)
    found = queue.peek(0, 9)
    assert [peeked.message.body for peeked in found] == [b"b", b"d", b"c", b"a", b"e"]
    assert [peeked.message.body for peeked in queue.peek(found[1].place + 1, 2)] == [b"c", b"a"]
