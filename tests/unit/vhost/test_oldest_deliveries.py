"""The oldest unacknowledged delivery of each queue."""

from tests.unit.session.client import Broker, Client, call, publication

from warren.vhost.oldest_deliveries import oldest_deliveries, oldest_delivery
from warren.wire import methods


def oldest(broker: Broker, name: str = "q") -> int | None:
    vhost = broker.services.vhost
    return oldest_delivery(oldest_deliveries(vhost), vhost.queues[name])


def published(broker: Broker, client: Client, *names: str) -> None:
    """Publish a message to each of `names`, one second after the other."""
    for name in names:
        broker.clock.now += 1_000
        client.send(publication(name, b""))


def test_the_oldest_delivery_of_each_queue_is_found_as_they_are_acknowledged_in_any_order() -> None:
    broker = Broker()
    client = broker.client()
    for name in ("q", "r"):
        client.ask(methods.QueueDeclare(queue=name), methods.BasicConsume(queue=name, consumer_tag=name))
    start = broker.clock.now
    assert oldest(broker) is None
    published(broker, client, "r", "q", "q", "r", "q")
    assert (oldest(broker), oldest(broker, "r")) == (start + 2_000, start + 1_000)
    client.send(call(methods.BasicAck(3)))
    assert oldest(broker) == start + 2_000
    client.send(call(methods.BasicAck(2)))
    assert (oldest(broker), oldest(broker, "r")) == (start + 5_000, start + 1_000)
    client.send(call(methods.BasicAck(0, True)))
    assert (oldest(broker), oldest(broker, "r")) == (None, None)
    published(broker, client, "q")
    assert oldest(broker) == start + 6_000


def test_a_message_that_is_delivered_again_counts_from_then_on() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.BasicConsume(queue="q"))
    published(broker, client, "q")
    assert oldest(broker) == broker.clock.now
    broker.clock.now += 5_000
    client.send(call(methods.BasicNack(1, False, True)))
    assert oldest(broker) == broker.clock.now


def test_what_was_fetched_and_what_a_cancelled_consumer_holds_is_counted() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.BasicConsume(queue="q", consumer_tag="c"))
    client.ask(methods.QueueDeclare(queue="r"))
    published(broker, client, "q", "r")
    client.ask(methods.BasicCancel("c"), methods.BasicGet(queue="r"))
    client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    first = broker.clock.now - 1_000
    published(broker, client, "q")
    assert (oldest(broker), oldest(broker, "r")) == (first, first + 1_000)
    client.send(call(methods.BasicAck(1)))
    assert oldest(broker) == first + 2_000


def test_the_oldest_of_several_channels_counts() -> None:
    broker = Broker()
    client, other = broker.client(), broker.client()
    client.ask(methods.QueueDeclare(queue="q"))
    published(broker, client, "q", "q")
    other.ask(methods.BasicGet(queue="q"))
    first = broker.clock.now
    broker.clock.now += 1_000
    client.ask(methods.BasicGet(queue="q"))
    assert oldest(broker) == first
    other.send(call(methods.BasicAck(1)))
    assert oldest(broker) == first + 1_000
