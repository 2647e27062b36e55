"""A client's channel: calls, publishing with confirms, deliveries, returns, and its end."""

from collections.abc import Coroutine
from typing import Any

import pytest
from tests.unit.client.broker_pair import BrokerPair, RecordedChannel
from tests.unit.session.client import Broker, call, frame

from warren.client.channel import ClientChannel
from warren.client.errors import BrokerRefused
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.wire import methods
from warren.wire.properties import BasicProperties


class ClientEnd:
    """A client with one channel of an open connection."""

    def __init__(self) -> None:
        self.pair = BrokerPair(Broker())
        self.listener = RecordedChannel()
        self.await_result(self.pair.client.open())
        self.channel: ClientChannel = self.await_result(self.pair.client.open_channel(self.listener))

    def await_result(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Exchange bytes until `coroutine` has ended, and return its result."""
        results: list[Any] = []

        async def collect() -> None:
            try:
                results.append((await coroutine, None))
            except BrokerRefused as error:
                results.append((None, error))

        drive(collect())
        self.pair.exchange()
        ((value, error),) = results
        if error is not None:
            raise error
        return value

    def consume(self, queue: str = "q", *, prefetch: int = 0) -> None:
        self.await_result(self.channel.call(methods.QueueDeclare(queue=queue), methods.QueueDeclareOk))
        if prefetch:
            self.await_result(
                self.channel.call(methods.BasicQos(prefetch_count=prefetch), methods.BasicQosOk)
            )
        self.await_result(self.channel.call(methods.BasicConsume(queue=queue), methods.BasicConsumeOk))

    def publish(self, body: bytes, key: str = "q", *, is_mandatory: bool = False, **more: Any) -> int:
        message = Message.compose(encode_address("", key), BasicProperties(**more), body + b"\xce", now=0)
        sequence = self.channel.publish(message, is_mandatory)
        self.pair.exchange()
        return sequence


@pytest.fixture
def end() -> ClientEnd:
    return ClientEnd()


def test_a_published_message_is_delivered_as_it_was(end: ClientEnd) -> None:
    end.consume()
    end.publish(b"hello", headers={"a": 1}, delivery_mode=2)
    ((message, tag, is_redelivered),) = end.listener.deliveries
    assert (message.exchange, message.routing_key, message.body) == ("", "q", b"hello")
    assert message.properties().headers == message.headers() == {"a": 1}
    assert (tag, is_redelivered) == (1, False)


@pytest.mark.parametrize("size", [0, 1, 4088, 4089, 131_064, 131_065, 400_000])
def test_bodies_of_any_size_are_split_and_assembled(end: ClientEnd, size: int) -> None:
    end.consume()
    end.publish(bytes(size))
    end.publish(b"next")
    assert [len(message.body) for message, _, _ in end.listener.deliveries] == [size, 4]


def test_a_delivered_message_can_be_published_again_unchanged(end: ClientEnd) -> None:
    end.consume()
    end.publish(b"again", headers={"b": [1, None, "x"]}, message_id="17")
    ((first, _, _),) = end.listener.deliveries
    end.channel.publish(first)
    end.pair.exchange()
    (_, (second, _, _)) = end.listener.deliveries
    assert (second.address, second.property_list, second.content) == (
        first.address, first.property_list, first.content,
    )  # fmt: skip


def test_confirms_name_the_sequences_of_the_publishes(end: ClientEnd) -> None:
    end.await_result(end.channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk))
    assert [end.publish(b"x") for _ in range(3)] == [1, 2, 3]
    assert end.listener.confirms == [(1, False, True), (2, False, True), (3, False, True)]


def test_a_message_that_is_not_routed_is_returned_if_it_was_mandatory(end: ClientEnd) -> None:
    end.publish(b"lost", "nowhere")
    end.publish(b"returned", "nowhere", is_mandatory=True)
    ((code, text, message),) = end.listener.returns
    assert (code, text) == (312, "NO_ROUTE")
    assert (message.routing_key, message.body) == ("nowhere", b"returned")


def test_an_acknowledged_delivery_makes_room_for_the_next(end: ClientEnd) -> None:
    end.consume(prefetch=1)
    end.publish(b"1")
    end.publish(b"2")
    assert [tag for _, tag, _ in end.listener.deliveries] == [1]
    end.channel.acknowledge(1, False)
    end.pair.exchange()
    assert [tag for _, tag, _ in end.listener.deliveries] == [1, 2]


def test_rejected_deliveries_return_to_their_queue(end: ClientEnd) -> None:
    end.consume(prefetch=2)
    end.publish(b"1")
    end.publish(b"2")
    end.channel.reject(2, True, True)
    end.pair.exchange()
    delivered = [(message.body, is_redelivered) for message, _, is_redelivered in end.listener.deliveries]
    assert delivered == [(b"1", False), (b"2", False), (b"1", True), (b"2", True)]


def test_a_refused_call_ends_the_channel_with_the_reason_of_the_broker(end: ClientEnd) -> None:
    with pytest.raises(BrokerRefused, match="404 NOT_FOUND - no queue 'none' in vhost '/'") as caught:
        end.await_result(end.channel.call(methods.QueuePurge(queue="none"), methods.QueuePurgeOk))
    assert caught.value.code == 404
    assert not end.channel.is_open
    assert [error.code for error in end.listener.errors] == [404]
    with pytest.raises(BrokerRefused, match="no queue 'none'"):
        end.channel.send(methods.BasicCancel(consumer_tag="t"))
    assert end.pair.client.is_open


def test_the_number_of_a_channel_that_has_ended_is_used_again(end: ClientEnd) -> None:
    end.await_result(end.channel.close())
    second: ClientChannel = end.await_result(end.pair.client.open_channel(RecordedChannel()))
    end.await_result(second.call(methods.QueueDeclare(queue="q"), methods.QueueDeclareOk))
    assert len(end.pair.server.channels) == 1


def test_a_consumer_whose_queue_is_deleted_is_cancelled(end: ClientEnd) -> None:
    end.consume()
    end.await_result(end.channel.call(methods.QueueDelete(queue="q"), methods.QueueDeleteOk))
    assert len(end.listener.cancelled_tags) == 1


def test_publishes_of_a_channel_that_has_ended_are_ignored(end: ClientEnd) -> None:
    end.await_result(end.channel.close())
    end.publish(b"x")
    end.channel.acknowledge(1, False)
    end.channel.reject(1, False, True)
    end.pair.exchange()
    assert end.pair.server.is_open


DELIVER = methods.BasicDeliver(consumer_tag="t", delivery_tag=1, exchange="", routing_key="q")
HEADER = BasicProperties().encode(4)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (frame(3, 1, b"body"), "a body frame that no content header announced"),
        (frame(2, 1, HEADER), "a content header that no method announced"),
        (call(DELIVER) + call(DELIVER), "a method where content is expected"),
        (call(DELIVER) + frame(2, 1, HEADER) + frame(3, 1, b"12345"), "exceeds the size in its header"),
        (call(DELIVER) + frame(2, 1, HEADER) + frame(2, 1, HEADER), "that no method announced"),
        (call(DELIVER) + frame(2, 1, HEADER[:10]), "a content header that is too short"),
        (call(DELIVER) + frame(2, 1, HEADER + b"x"), "content header too long"),
        (call(DELIVER) + frame(2, 1, HEADER[:12] + b"\x20\x00\x00\x00\x00\x09"), "content header cut short"),
        (frame(1, 1, DELIVER.encode()[:-1]), "names do not end with it"),
        (frame(1, 1, DELIVER.encode() + b"x"), "names do not end with it"),
        (frame(1, 1, DELIVER.encode()[:14]), "a basic.deliver that is too short"),
        (frame(1, 1, b"\x00\x3c\x00\x3c\xff" + bytes(20)), "a basic.deliver that is too short"),
        (call(methods.BasicAck(delivery_tag=1)), "a confirm of publish 1, when 0 were published"),
        (call(methods.QueueDeclareOk(queue="q")), "a queue.declare-ok that nothing asked for"),
        (frame(1, 1, b"\x00\x3c\xff\xff"), "no valid AMQP"),
        (frame(8, 1, b""), "a frame of type 8 on channel 1"),
        (frame(1, 9, b""), "a frame on channel 9, which is not open"),
        (b"\x01\x00\x01\xff\xff\xff\xff", "a frame of 4294967295 bytes, more than the agreed 131072"),
        (frame(8, 0, b"")[:-1] + b"\0", "a frame without an end"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cut", [0, 3])
def test_input_that_is_not_valid_ends_the_connection_with_the_reason(
    end: ClientEnd, data: bytes, reason: str, cut: int
) -> None:
    end.pair.client.receive(data[:cut])
    end.pair.client.receive(data[cut:])
    ((error),) = end.pair.listener.errors
    assert error is not None
    assert reason in str(error)
    assert error.code == 501
    assert end.pair.client.is_finished
    assert [str(one) for one in end.listener.errors] == [str(error)]
    end.pair.exchange()
    assert not end.pair.server.is_open


def test_both_ends_may_close_a_channel_at_the_same_time(end: ClientEnd) -> None:
    passive = methods.QueueDeclare(queue="none", passive=True)
    errors = []

    async def fail(coroutine: Coroutine[Any, Any, Any]) -> None:
        try:
            await coroutine
        except BrokerRefused as error:
            errors.append(error.code)

    drive(fail(end.channel.call(passive, methods.QueueDeclareOk)))
    drive(fail(end.channel.close()))
    end.pair.exchange()
    assert errors == [404, 404]
    # The answer of the broker to the close of the client comes when the number may be used again.
    end.pair.client.receive(call(methods.ChannelCloseOk()))
    opened = end.pair.client.open_channel(RecordedChannel())
    drive(fail(opened))
    end.pair.client.receive(call(methods.ChannelCloseOk()) + call(methods.ChannelOpenOk()))
    assert end.pair.client.is_open
    assert errors == [404, 404]


def test_what_follows_an_answer_can_be_read_by_another_reader(end: ClientEnd) -> None:
    drive(end.channel.call(methods.QueueDeclare(queue="q"), methods.QueueDeclareOk))  # type: ignore[arg-type]
    rest = call(DELIVER) + frame(2, 1, HEADER)[:5]
    end.pair.client.receive(call(methods.QueueDeclareOk(queue="q")) + rest, 1)
    assert end.pair.client.has_more
    assert end.pair.client.take_unread() == rest
    assert not end.pair.client.has_more
    assert end.pair.client.take_unread() == b""
