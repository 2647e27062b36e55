"""A direct reply is delivered to its requester at once, or dropped."""

from tests.unit.queues.samples import Reader, sent

from warren.queues.queue import ACCEPTED
from warren.queues.reply import ReplyQueue


def test_a_reply_is_delivered_and_replies_beyond_the_bound_are_dropped() -> None:
    reader = Reader(no_ack=True)
    queue = ReplyQueue("name", reader)
    assert queue.publish(sent("1"), None, 0) == ACCEPTED
    reader.is_open = False
    assert queue.publish(sent("2"), None, 0) == ACCEPTED
    reader.is_open = True
    queue.publish(sent("3"), None, 0)
    assert reader.got == [(b"1", False), (b"3", False)]
