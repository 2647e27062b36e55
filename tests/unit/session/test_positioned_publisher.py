"""Messages that are published with positions arrive once, unchanged, and are confirmed when they are safe."""

import random

import pytest
from tests.sim.durable_broker import DurableBroker
from tests.unit.session.client import Broker, Client, call, frame

from warren.limits_relay import POSITIONED_GROUP_MAX
from warren.model.message import BODY_END, Message
from warren.model.message_position import POSITIONS_REALM, MessagePosition, with_position
from warren.wire import methods
from warren.wire.properties import BasicProperties

ORIGIN = b"of a source here"


@pytest.fixture
def broker() -> DurableBroker:
    return DurableBroker(random.Random(1))


def announced(broker: Broker, **arguments: object) -> Client:
    """A client with a durable queue `q`, whose publishes have positions from here on."""
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q", durable=True, arguments=dict(arguments)))
    client.ask(methods.ConfirmSelect(), methods.AccessRequest(realm=POSITIONS_REALM))
    return client


def publication(
    place: int, body: str = "b", *, key: str = "q", origin: bytes = ORIGIN, **more: object
) -> bytes:
    """The frames of a message with a position."""
    plain = BasicProperties(delivery_mode=2, **more)
    message = Message(b"\0\0", plain.encode_list(), body.encode() + BODY_END, 0)
    property_list = with_position(message, MessagePosition(origin, 1, place)).property_list
    header = plain.encode(len(body))[:12] + property_list
    publish = methods.BasicPublish(routing_key=key)
    return call(publish) + frame(2, 1, header) + (frame(3, 1, body.encode()) if body else b"")


def confirms(client: Client) -> list[methods.Method]:
    return [one.method for one in client.hear()]


def content(broker: Broker, queue: str = "q") -> list[str]:
    live = broker.services.vhost.queues[queue]
    return [peeked.message.body.decode() for peeked in live.peek(0, 100_000)]  # type: ignore[attr-defined]


def test_a_message_arrives_once_and_is_confirmed_when_it_is_on_disk(broker: DurableBroker) -> None:
    client = announced(broker)
    client.send(publication(1, "a"), publication(2, "b"), publication(1, "again"))
    assert confirms(client) == []
    assert content(broker) == ["a", "b"]
    broker.sync()
    assert confirms(client) == [methods.BasicAck(3, True)]
    client.send(publication(2, "again"), publication(3, ""))
    client.hear()
    broker.sync()
    assert confirms(client) == [methods.BasicAck(5, True)]
    assert content(broker) == ["a", "b", ""]


def test_a_message_that_was_confirmed_arrives_once_also_after_a_loss_of_power(
    broker: DurableBroker,
) -> None:
    client = announced(broker)
    client.send(publication(1, "a"))
    client.hear()
    broker.sync()
    client.send(publication(2, "lost"))
    client.hear()
    broker.crash(is_power_lost=True)
    client = announced(broker)
    client.send(publication(1, "again"), publication(2, "b"))
    client.hear()
    broker.sync()
    assert confirms(client) == [methods.BasicAck(2, True)]
    assert content(broker) == ["a", "b"]


def test_a_message_that_was_published_before_is_not_confirmed_before_the_first_is_on_disk(
    broker: DurableBroker,
) -> None:
    first, second = announced(broker), announced(broker)
    first.send(publication(1, "a"))
    first.hear()
    second.send(publication(1, "again"))
    assert confirms(second) == []
    broker.sync()
    assert confirms(second) == [methods.BasicAck(1, False)]


def test_the_message_arrives_as_its_publisher_has_sent_it(broker: DurableBroker) -> None:
    client = announced(broker)
    client.send(publication(1, content_type="t", headers={"x-warren-position": 5}))
    client.hear()
    broker.sync()
    client.hear()
    (got,) = client.ask(methods.BasicGet(queue="q"))
    assert got.properties == BasicProperties(
        delivery_mode=2, content_type="t", headers={"x-warren-position": 5}
    )


def test_a_refused_message_can_be_published_again(broker: DurableBroker) -> None:
    client = announced(broker, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    client.send(publication(1, "a"), publication(2, "b"), publication(3, "c"))
    client.hear()
    broker.sync()
    assert content(broker) == ["a"]
    client.ask(methods.QueuePurge(queue="q"))
    client.send(publication(1, "again"), publication(2, "b"))
    client.hear()
    broker.sync()
    client.hear()
    assert content(broker) == ["b"]


def test_refused_messages_are_answered_with_nack_and_accepted_ones_with_ack(broker: DurableBroker) -> None:
    client = announced(broker, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    client.send(publication(1, "a"), publication(2, "b"), publication(3, "c"))
    answers = confirms(client)
    broker.sync()
    answers += confirms(client)
    assert methods.BasicAck(1, False) in answers
    nacked = [one.delivery_tag for one in answers if isinstance(one, methods.BasicNack)]
    assert max(nacked) == 3


def test_no_queue_has_a_message_that_one_of_them_refuses(broker: DurableBroker) -> None:
    client = announced(broker, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    client.ask(methods.QueueDeclare(queue="r", durable=True))
    client.send(publication(1, "a"))
    client.hear()
    message = publication(2, "b", headers={"CC": ["r"]})
    client.send(message)
    client.hear()
    assert content(broker) == ["a"]
    assert content(broker, "r") == []
    client.ask(methods.QueuePurge(queue="q"))
    client.send(message)
    client.hear()
    assert (content(broker), content(broker, "r")) == (["b"], ["b"])


def test_an_unroutable_message_is_confirmed_and_counts_as_published(broker: DurableBroker) -> None:
    client = announced(broker)
    client.send(publication(1, "a", key="nowhere"))
    client.hear()
    broker.sync()
    assert confirms(client) == [methods.BasicAck(1, False)]
    assert broker.services.vhost.dropped == 1


def test_many_messages_of_several_sources_are_published_in_order(broker: DurableBroker) -> None:
    client = announced(broker)
    count = POSITIONED_GROUP_MAX * 2 + 7
    for number in range(count):
        client.send(publication(number, str(number), origin=bytes(15) + bytes((number % 3,))))
    client.hear()
    broker.sync()
    assert confirms(client) == [methods.BasicAck(count, True)]
    assert content(broker) == [str(number) for number in range(count)]


def test_nothing_waits_for_a_client_that_reads_no_answers(broker: DurableBroker) -> None:
    client = announced(broker)
    for number in range(POSITIONED_GROUP_MAX):
        client.send(publication(number))
    assert len(content(broker)) == POSITIONED_GROUP_MAX


def test_without_a_store_messages_are_confirmed_at_once() -> None:
    broker = Broker()
    client = announced(broker)
    client.send(publication(1, "a"), publication(1, "again"))
    assert confirms(client) == [methods.BasicAck(2, True)]
    assert content(broker) == ["a"]


def test_a_queue_may_be_deleted_before_the_end_of_the_turn(broker: DurableBroker) -> None:
    client, other = announced(broker), broker.client()
    client.send(publication(1, "a"))
    other.ask(methods.QueueDelete(queue="q"))
    client.hear()
    broker.sync()
    assert confirms(client) == [methods.BasicAck(1, False)]


@pytest.mark.parametrize(
    ("before", "data", "text"),
    [
        ([methods.AccessRequest(realm=POSITIONS_REALM)], b"", "need confirm mode"),
        (
            [methods.ConfirmSelect(), methods.AccessRequest(realm=POSITIONS_REALM)],
            call(methods.BasicPublish(routing_key="q")) + frame(2, 1, BasicProperties().encode(0)),
            "no position",
        ),
    ],
)
def test_what_cannot_be_published_once_is_refused(
    broker: DurableBroker, before: list[methods.Method], data: bytes, text: str
) -> None:
    client = broker.client()
    answers = client.ask(*before)
    client.send(data)
    answers += client.hear()
    refusal = answers[-1].method
    assert isinstance(refusal, methods.ChannelClose)
    assert refusal.reply_code == 406
    assert text in refusal.reply_text


def test_a_position_is_used_for_one_message_only(broker: DurableBroker) -> None:
    client = announced(broker)
    client.send(publication(1, "a"))
    client.send(call(methods.BasicPublish(routing_key="q")))
    client.send(frame(2, 1, BasicProperties(delivery_mode=2).encode(0)))
    assert isinstance(client.hear()[-1].method, methods.ChannelClose)


def test_a_channel_that_has_announced_nothing_publishes_positions_as_headers(broker: DurableBroker) -> None:
    client = announced(broker)
    other = broker.client()
    other.ask(methods.ConfirmSelect(), methods.AccessRequest())
    other.send(publication(1, "a"), publication(1, "b"))
    other.hear()
    assert content(broker) == ["a", "b"]
    client.send(publication(1, "c"))
    client.hear()
    assert content(broker) == ["a", "b", "c"]
