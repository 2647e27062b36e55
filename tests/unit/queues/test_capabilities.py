"""What a destination of a message can do is asked by its contract, not by the class of a queue."""

import pytest
from tests.unit.queues.samples import Host, Reader, sent

from warren.errors import AmqpNotImplemented, PreconditionFailed
from warren.model.arguments import Overflow, QueueSettings
from warren.queues.capabilities import (
    declared_queue,
    existing,
    refusing_queue,
    stream_queue,
    taking_queue,
)
from warren.queues.classic import ClassicQueue
from warren.queues.reply import ReplyQueue
from warren.queues.stream import StreamQueue
from warren.queues.taking_queue import TakingQueue


class OtherQueue(TakingQueue):
    """Another kind of queue that has the contract."""


HOST = Host(1_000)
CLASSIC = ClassicQueue("c", "/", HOST, QueueSettings())
STREAM = StreamQueue("s", "/", HOST, QueueSettings(kind="stream"))
REPLY = ReplyQueue("amq.reply", Reader("r"))


def test_each_contract_is_known_by_what_has_it() -> None:
    other = OtherQueue("o", "/", HOST, QueueSettings())
    found = {
        one: tuple(ask(one) is not None for ask in (declared_queue, taking_queue, stream_queue))
        for one in (CLASSIC, other, STREAM, REPLY, None, "exchange")
    }
    assert found == {
        CLASSIC: (True, True, False),
        other: (True, True, False),
        STREAM: (True, False, True),
        REPLY: (False, False, False),
        None: (False, False, False),
        "exchange": (False, False, False),
    }


def test_the_first_queue_that_is_full_and_rejects_publishes_is_named() -> None:
    settings = QueueSettings(length_max=1, overflow=Overflow.REJECT_PUBLISH)
    full = ClassicQueue("full", "/", HOST, settings)
    assert refusing_queue((CLASSIC, full, REPLY, STREAM), sent(b"a")) is None
    full.publish(sent(b"a"), None, 0)
    assert refusing_queue((CLASSIC, REPLY, STREAM), sent(b"b")) is None
    assert refusing_queue((CLASSIC, full, REPLY), sent(b"b")) is full


def test_a_deleted_queue_is_left_out_of_what_a_message_was_routed_to() -> None:
    deleted = ClassicQueue("d", "/", HOST, QueueSettings())
    routed = (CLASSIC, deleted, REPLY)
    assert existing(routed) is routed
    deleted.delete()
    assert existing(routed) == (CLASSIC, REPLY)


def test_what_the_broker_published_itself_is_counted_by_queues_that_were_declared() -> None:
    for queue in (CLASSIC, REPLY):
        queue.count_broker_published()
    assert CLASSIC.broker_published_count == 1


def test_a_stream_refuses_exactly_once_and_a_consumer_without_prefetch() -> None:
    for queue in (CLASSIC, REPLY):
        queue.check_positioned()
    CLASSIC.check_reader(Reader(no_ack=True), 0)
    STREAM.check_reader(Reader(), 1)
    with pytest.raises(PreconditionFailed, match=r"^stream 's' in vhost '/' cannot receive messages exactly"):
        STREAM.check_positioned()
    with pytest.raises(PreconditionFailed, match=r"^consumer prefetch count is not set for 'queue 's' in vh"):
        STREAM.check_reader(Reader(), 0)
    with pytest.raises(
        AmqpNotImplemented, match=r"^automatic acknowledgement not supported by stream queues"
    ):
        STREAM.check_reader(Reader(no_ack=True), 0)
