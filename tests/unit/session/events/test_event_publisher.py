"""Events of connections, channels, consumers and logins on the event exchange."""

import pytest
from tests.unit.session.client import CAPABILITIES, Broker, Client
from tests.unit.session.streams.client import Node, StreamClient

from warren.metadata.commands import Bind, DeclareExchange, DeclareQueue
from warren.session.events.event_publisher import EXCHANGE, STREAM, EventPublisher, printed, printed_host
from warren.session.peer import Peer
from warren.wire import methods
from warren.wire.streams import commands
from warren.wire.streams.codes import OffsetType
from warren.wire.streams.fields import Offset
from warren.wire.table import Int32, Table

PEER = Peer(host="10.0.0.1", port=7, server_host="::1", server_port=5672)


def bind_all_events(broker: Broker) -> None:
    """Bind a queue `events` to all events of `broker`."""
    broker.proposals.apply(DeclareExchange(vhost="/", name=EXCHANGE, type="topic", internal=True))
    broker.proposals.apply(DeclareQueue(vhost="/", name="events"))
    broker.proposals.apply(Bind(vhost="/", source=EXCHANGE, destination="events", routing_key="#"))


def events(broker: Broker) -> list[tuple[str, Table]]:
    """The events since the last call."""
    while broker.turns:
        broker.turn()
    found = []
    while (delivery := broker.services.vhost.queues["events"].get(True)) is not None:
        found.append((delivery.message.routing_key, delivery.message.headers()))
    return found


def opened() -> tuple[Broker, Client]:
    broker = Broker()
    bind_all_events(broker)
    return broker, broker.client(capabilities=CAPABILITIES)


def test_a_connection_and_its_channels_emit_events() -> None:
    broker, client = opened()
    [connection, channel] = events(broker)
    assert connection[0] == "connection.created"
    facts = connection[1]
    assert (facts["user_who_performed_action"], facts["vhost"], facts["auth_mechanism"], facts["ssl"]) == (
        "guest", "/", "PLAIN", False,
    )  # fmt: skip
    assert (facts["peer_host"], facts["protocol"], facts["type"]) == ("{127,0,0,1}", "{0,9,1}", "network")
    assert facts["pid"] == "<n.1.1.0>"
    assert channel[0] == "channel.created"
    assert {name: channel[1][name] for name in ("connection", "pid", "name", "number")} == {
        "connection": facts["pid"],
        "pid": "<n.1.1.1>",
        "name": f"{facts['name']} (1)",
        "number": 1,
    }
    client.ask(methods.QueueDeclare(queue="nowhere", passive=True))
    client.ask(methods.ChannelCloseOk(), methods.ChannelOpen())
    assert [key for key, _ in events(broker)] == ["channel.closed", "channel.created"]
    client.connection.lost()
    [(_, channel_facts), (key, facts)] = events(broker)
    assert (key, facts["pid"], channel_facts["pid"]) == ("connection.closed", "<n.1.1.0>", "<n.1.1.2>")
    assert "user_who_performed_action" not in facts


def test_consumers_are_announced_once_when_created_and_deleted() -> None:
    broker, client = opened()
    client.ask(methods.QueueDeclare(queue="q"))
    events(broker)
    client.ask(methods.BasicConsume(queue="q", consumer_tag="a", arguments={"x-priority": Int32(3)}))
    [(key, facts)] = events(broker)
    assert (key, facts["arguments"], facts["ack_required"], facts["exclusive"], facts["queue"]) == (
        "consumer.created", ['{<<"x-priority">>,signedint,3}'], True, False, "q",
    )  # fmt: skip
    client.ask(methods.BasicCancel("a"))
    client.ask(methods.BasicConsume(queue="q", consumer_tag="b"))
    client.ask(methods.QueueDelete(queue="q"))
    client.ask(methods.ChannelClose(200, "", 0, 0))
    assert [(key, facts.get("consumer_tag")) for key, facts in events(broker)] == [
        ("consumer.deleted", "a"),
        ("consumer.created", "b"),
        ("consumer.deleted", "b"),
        ("channel.closed", None),
    ]


def test_a_stream_connection_and_its_subscriptions_emit_events() -> None:
    node = Node()
    bind_all_events(node)
    client = StreamClient(node)
    client.ask(commands.PeerProperties({"product": "p", "connection_name": "mine"}))
    client.ask(commands.SaslAuthenticate("PLAIN", b"\0guest\0guest"))
    client.ask(commands.Tune(100_000, 20))
    assert events(node) == []
    client.ask(commands.Open("/"))
    [(key, created)] = events(node)
    assert key == "connection.created"
    client_facts = {
        "client_properties": [
            '{<<"product">>,longstr,<<"p">>}',
            '{<<"connection_name">>,longstr,<<"mine">>}',
        ],
        "node": "n",
        "pid": "<n.1.1.0>",
        "name": "127.0.0.1:1 -> 127.0.0.1:5552",
        "user_provided_name": "mine",
    }
    assert {name: created[name] for name in client_facts} == client_facts
    del created["timestamp_in_ms"]
    assert {name: value for name, value in created.items() if name not in client_facts} == {
        "user_who_performed_action": "guest",
        "connected_at": 0,
        "channel_max": 0,
        "frame_max": 100_000,
        "timeout": 20,
        "protocol": "stream",
        "vhost": "/",
        "user": "guest",
        "ssl_hash": "",
        "ssl_cipher": "",
        "ssl_key_exchange": "",
        "ssl_protocol": "",
        "auth_mechanism": "PLAIN",
        "peer_cert_validity": "",
        "peer_cert_issuer": "",
        "peer_cert_subject": "",
        "ssl": False,
        "peer_host": "{127,0,0,1}",
        "host": "{127,0,0,1}",
        "peer_port": 1,
        "port": 5552,
    }
    client.ask(commands.Create("s", {}))
    node.write()
    first = Offset(OffsetType.FIRST)
    for number in (1, 2):
        client.subscribe(number, first)
    client.ask(commands.Unsubscribe(1))
    client.connection.lost()
    [unsubscribed, ended, (last, closed)] = events(node)
    tags = [
        (key, facts["consumer_tag"], facts["queue"], facts["channel"]) for key, facts in (unsubscribed, ended)
    ]
    assert tags == [("consumer.deleted", f"stream.subid-{n}", "s", "<n.1.1.0>") for n in (1, 2)]
    del closed["timestamp_in_ms"]
    assert (last, closed) == ("connection.closed", client_facts)


def test_a_stream_connection_that_never_opened_emits_no_event() -> None:
    node = Node()
    bind_all_events(node)
    client = StreamClient(node)
    client.ask(commands.PeerProperties({}))
    client.connection.lost()
    assert events(node) == []


def test_logins_and_alarms_emit_events() -> None:
    broker, _ = opened()
    events(broker)
    event_publisher = broker.server.event_publisher
    event_publisher.authenticated("guest", "PLAIN", PEER)
    event_publisher.authenticated("eve", "PLAIN", PEER, protocol=STREAM, error="no")
    event_publisher.alarm("memory", is_set=True)
    event_publisher.alarm("memory", is_set=False)
    success, failure, alarm, over = events(broker)
    assert (success[0], success[1]["name"], success[1]["host"], success[1]["protocol"]) == (
        "user.authentication.success", "guest", "{0,0,0,0,0,0,0,1}", "{0,9,1}",
    )  # fmt: skip
    assert (failure[0], failure[1]["name"], failure[1]["error"], failure[1]["protocol"]) == (
        "user.authentication.failure", "eve", [110, 111], "stream",
    )  # fmt: skip
    assert (alarm[0], over[0], alarm[1]["source"]) == ("alarm.set", "alarm.cleared", "memory")


def test_without_a_binding_no_event_is_built() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.BasicConsume(queue="q"))
    client.connection.lost()
    event_publisher = broker.server.event_publisher
    event_publisher.authenticated("guest", "PLAIN", PEER)
    event_publisher.alarm("disk", is_set=True)
    assert not broker.turns


def test_a_missing_vhost_receives_no_events() -> None:
    assert not EventPublisher(lambda: None, lambda _: None, node_name="n").is_heard()


@pytest.mark.parametrize(
    ("host", "text"),
    [("127.0.0.1", "{127,0,0,1}"), ("fe80::1%lo", "{65152,0,0,0,0,0,0,1}"), ("/run/socket", "/run/socket")],
)
def test_addresses_are_formatted_as_by_erlang(host: str, text: str) -> None:
    assert printed_host(host) == text


def test_tables_are_formatted_entry_by_entry() -> None:
    assert printed({"a": "b", "t": {"x": True}}) == [
        '{<<"a">>,longstr,<<"b">>}',
        '{<<"t">>,table,[{<<"x">>,bool,true}]}',
    ]
