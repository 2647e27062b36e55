"""A scan visits each message once, in pieces, and no message that is published later."""

import pytest
from tests.unit.queues.samples import Host, filled, made, sent

from warren.limits import SCAN_READ_SIZE_MAX
from warren.vhost.queue_scan import QueueScan, SelectionScan, scan_batch_max


def seen(queue_scan: QueueScan | SelectionScan, count: int) -> str:
    return "".join(peeked.message.body.decode() for peeked in queue_scan.next_messages(count))


def test_pieces_follow_one_another_to_the_end() -> None:
    queue_scan = QueueScan(filled(Host(), *"abcde"))
    assert [seen(queue_scan, 2), seen(queue_scan, 2), queue_scan.is_over, seen(queue_scan, 2)] == [
        "ab",
        "cd",
        False,
        "e",
    ]
    assert (queue_scan.is_over, queue_scan.examined) == (True, 5)


def test_an_interrupted_scan_continues_where_it_stopped() -> None:
    queue_scan = QueueScan(filled(Host(), *"abc"))
    for peeked in queue_scan.next_messages(3):
        assert peeked.message.body == b"a"
        break
    assert (queue_scan.examined, seen(queue_scan, 9)) == (1, "bc")


@pytest.mark.parametrize("priority_max", [None, 2])
def test_later_messages_are_not_visited(priority_max: int | None) -> None:
    queue = made(Host(), priority_max=priority_max)
    for priority in (2, 0):
        queue.publish(sent(str(priority), priority=priority), None, 0)
    queue_scan = QueueScan(queue)
    for priority in (2, 1, 0):
        queue.publish(sent("x", priority=priority), None, 0)
    assert seen(queue_scan, 1) == "2"
    found = ""
    while not queue_scan.is_over:
        found += seen(queue_scan, 1)
    assert (found, queue_scan.examined) == ("0", 2)


def test_a_scan_can_begin_anywhere() -> None:
    assert seen(QueueScan(filled(Host(), *"abc"), 1), 9) == "bc"


def test_selected_messages_are_visited_if_they_exist() -> None:
    queue = filled(Host(), *"abcd")
    places = [peeked.place for peeked in queue.peek(0, 4)]
    queue.get(no_ack=True)
    chosen = SelectionScan(queue, [places[0], places[2], places[3], 99])
    assert (seen(chosen, 3), chosen.is_over, seen(chosen, 3), chosen.is_over) == ("cd", False, "", True)
    assert SelectionScan(queue, []).is_over


def test_few_large_messages_are_visited_at_a_time() -> None:
    queue = made(Host())
    assert scan_batch_max(queue) > 1_000
    for _ in range(3):
        queue.publish(sent(bytes(SCAN_READ_SIZE_MAX // 2)), None, 0)
    assert scan_batch_max(queue) == 2
    queue.publish(sent(bytes(SCAN_READ_SIZE_MAX * 4)), None, 0)
    assert scan_batch_max(queue) == 1
    queue_scan = QueueScan(queue)
    while not queue_scan.is_over:
        assert len(list(queue_scan.next_messages(9))) <= 1
    assert queue_scan.examined == 4
