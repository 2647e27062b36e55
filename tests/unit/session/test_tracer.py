"""The firehose tracer copies published and delivered messages, and not its own copies."""

from collections.abc import Mapping
from typing import Any

from tests.unit.session.client import Broker, Client, publication

from warren.limits import TABLE_DEPTH_MAX
from warren.metadata.commands import Bind, DeclareQueue, PutVhost
from warren.model.message import Message
from warren.session.tracer import EXCHANGE
from warren.wire import methods
from warren.wire.table import Int32


def traced(*keys: str) -> tuple[Broker, Client]:
    """A broker with tracing, a queue `traces` bound with `keys`, and a client."""
    broker = Broker()
    switch(broker, is_on=True)
    broker.proposals.apply(DeclareQueue(vhost="/", name="traces"))
    for key in keys or ("#",):
        broker.proposals.apply(Bind(vhost="/", source=EXCHANGE, destination="traces", routing_key=key))
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"))
    return broker, client


def switch(broker: Broker, *, is_on: bool) -> None:
    broker.proposals.apply(PutVhost(name="/", tracing=is_on))


def publish(client: Client, key: str, body: bytes, **more: object) -> None:
    client.send(publication(key, body, **more))


def copies(broker: Broker) -> list[Message]:
    """The traced messages since the last call."""
    while broker.turns:
        broker.turn()
    queue = broker.services.vhost.queues["traces"]
    found = []
    while (delivery := queue.get(True)) is not None:
        found.append(delivery.message)
    return found


def keys(broker: Broker) -> list[str]:
    return [message.routing_key for message in copies(broker)]


def test_a_publish_is_copied_with_its_body_and_metadata() -> None:
    broker, client = traced()
    publish(client, "q", b"hello", headers={"a": Int32(1)}, priority=3, content_type="text/plain")
    [copy] = copies(broker)
    assert (copy.exchange, copy.routing_key, copy.body) == (EXCHANGE, "publish.", b"hello")
    facts = copy.headers()
    assert facts == {
        "exchange_name": "",
        "routing_keys": ["q"],
        "properties": {"priority": 3, "headers": {"a": 1}, "content_type": "text/plain"},
        "node": "warren@test",
        "vhost": "/",
        "connection": client.connection.peer.name,
        "channel": 1,
        "user": "guest",
        "routed_queues": ["q"],
    }
    assert {type(facts["channel"]), type(facts["properties"]["priority"])} == {Int32}
    assert not copy.properties().delivery_mode


def test_an_unroutable_message_is_copied() -> None:
    broker, client = traced()
    publish(client, "nowhere", b"")
    [copy] = copies(broker)
    assert copy.headers()["routed_queues"] == []


def test_deliveries_and_gets_are_copied_with_the_redelivered_flag() -> None:
    broker, client = traced("deliver.#")
    publish(client, "q", b"1")
    client.ask(methods.BasicGet(queue="q"))
    client.ask(methods.BasicRecover(requeue=True))
    client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    publish(client, "q", b"2")
    found = [
        (message.routing_key, message.body, message.headers()["redelivered"]) for message in copies(broker)
    ]
    assert found == [("deliver.q", b"1", 0), ("deliver.q", b"1", 1), ("deliver.q", b"2", 0)]


def test_deliveries_without_acknowledgement_are_traced() -> None:
    broker, client = traced("deliver.#")
    client.ask(methods.BasicConsume(queue="q", no_ack=True))
    publish(client, "q", b"1")
    assert keys(broker) == ["deliver.q"]


def test_bcc_is_a_routing_key_and_not_a_header_in_a_trace() -> None:
    broker, client = traced()
    publish(client, "q", b"", headers={"CC": ["x"], "BCC": ["y"]})
    [copy] = copies(broker)
    assert copy.headers()["routing_keys"] == ["q", "x", "y"]
    assert copy.headers()["properties"] == {"headers": {"CC": ["x"]}}


def test_traces_are_not_traced() -> None:
    broker, client = traced()
    client.ask(methods.BasicConsume(queue="traces", no_ack=True))
    publish(client, "q", b"1")
    for _ in range(3):
        while broker.turns:
            broker.turn()
    assert client.bodies() == [b"1"]


def test_tracing_of_the_trace_queue_itself_terminates() -> None:
    broker, client = traced()
    broker.proposals.apply(Bind(vhost="/", source=EXCHANGE, destination="q", routing_key="#"))
    client.ask(methods.BasicConsume(queue="q", no_ack=True))
    publish(client, "q", b"1")
    assert keys(broker) == ["publish.", "deliver.q"]
    assert not broker.turns


def test_tracing_starts_and_stops_for_open_channels() -> None:
    broker, client = traced()
    switch(broker, is_on=False)
    client.ask(methods.BasicConsume(queue="q", no_ack=True))
    publish(client, "q", b"1")
    assert keys(broker) == []
    switch(broker, is_on=True)
    publish(client, "q", b"2")
    assert keys(broker) == ["publish.", "deliver.q"]
    switch(broker, is_on=False)
    publish(client, "q", b"3")
    assert keys(broker) == []


def test_without_a_binding_nothing_is_copied() -> None:
    broker = Broker()
    switch(broker, is_on=True)
    publish(broker.client(), "q", b"1")
    assert not broker.turns


def test_a_message_in_a_transaction_is_traced_when_it_is_published() -> None:
    broker, client = traced("publish.#")
    client.ask(methods.TxSelect())
    publish(client, "q", b"1")
    assert keys(broker) == ["publish."]
    client.ask(methods.TxCommit())
    assert keys(broker) == []


def test_traces_are_not_counted_as_publishes() -> None:
    broker, client = traced()
    publish(client, "q", b"1")
    before = broker.services.vhost.published
    assert len(copies(broker)) == 1
    queue = broker.services.vhost.queues["traces"]
    assert (broker.services.vhost.published, queue.published_count - queue.broker_published_count) == (
        before,
        0,
    )


def test_headers_at_the_nesting_limit_are_left_out() -> None:
    broker, client = traced()
    deep: Mapping[str, Any] = {}
    for _ in range(TABLE_DEPTH_MAX - 1):
        deep = {"t": deep}
    publish(client, "q", b"1", headers=deep)
    [copy] = copies(broker)
    assert copy.headers()["properties"] == {}


def test_the_routing_key_of_an_exchange_with_a_long_name_is_truncated() -> None:
    broker, client = traced()
    name = "e" * 255
    client.ask(methods.ExchangeDeclare(exchange=name))
    publish(client, "", b"", exchange=name)
    assert keys(broker) == [("publish." + name)[:255]]
