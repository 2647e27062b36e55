"""A direct reply reaches its requester at once, or never."""

from tests.unit.queues.samples import Reader, sent

from warren.queues.queue import ACCEPTED
from warren.queues.reply import ReplyQueue


def test_a_reply_is_handed_over_and_one_too_many_is_dropped() -> None:
    reader = Reader(no_ack=True)
    queue = ReplyQueue("name", reader)
    assert queue.publish(sent("1"), None, 0) == ACCEPTED
    reader.is_open = False
    assert queue.publish(sent("2"), None, 0) == ACCEPTED
    reader.is_open = True
    queue.publish(sent("3"), None, 0)
    assert reader.got == [(b"1", False), (b"3", False)]
