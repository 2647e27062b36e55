"""Assembly of frames to messages, permissions, routes and confirms of a publishing channel."""

import pytest
from tests.unit.session.client import Broker, Client, call, frame, publication

from warren.limits import PUBLISHER_ADDRESSES_MAX
from warren.metadata.commands import SetPermissions, SetTopicPermissions
from warren.model.message import Message
from warren.wire import methods
from warren.wire.properties import BasicProperties

PUBLISH = call(methods.BasicPublish(routing_key="q"))


def opened(**settings: object) -> tuple[Broker, Client]:
    broker = Broker(**settings)
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"))
    return broker, client


def kept(broker: Broker) -> Message:
    """The message that is ready."""
    delivery = broker.services.vhost.queues["q"].get()
    assert delivery is not None
    return delivery.message


def header(size: int, **properties: object) -> bytes:
    return frame(2, 1, BasicProperties(**properties).encode(size))


def closed_with(client: Client) -> tuple[str, int, str]:
    """How the broker closed the connection or the channel."""
    [received] = client.hear()
    return received.method.name, received.method.reply_code, received.method.reply_text


# --- assembly -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 5, 20, 1000])
def test_a_message_does_not_depend_on_how_its_bytes_were_cut(size: int) -> None:
    data = publication("q", b"hello world", headers={"a": 1}, delivery_mode=2, priority=4)
    broker, client = opened()
    for at in range(0, len(data), size):
        client.send(data[at : at + size])
    message = kept(broker)
    whole = Message.compose(
        b"\x00\x01q",
        BasicProperties(headers={"a": 1}, delivery_mode=2, priority=4),
        b"hello world\xce",
        now=0,
    )
    assert (message.address, message.property_list) == (whole.address, whole.property_list)
    assert message.content == whole.content
    assert (message.flags, message.priority, message.body_size) == (whole.flags, whole.priority, 11)


def test_messages_with_different_properties_are_published() -> None:
    broker, client = opened()
    kinds = (
        {},
        {"app_id": "me"},
        {"app_id": "us"},
        {"delivery_mode": 2, "priority": 5},
        {"headers": {"a": 1}},
    )
    for properties in (*kinds, *kinds[::-1], *(kind for kind in kinds for _ in range(2))):
        client.send(publication("q", b"x", **properties))
        message = kept(broker)
        assert (message.properties(), message.body) == (BasicProperties(**properties), b"x")
        assert message.is_persistent == ("delivery_mode" in properties)
        assert message.priority == properties.get("priority", 0)
        assert message.headers() == properties.get("headers", {})


def test_messages_with_equal_properties_share_them() -> None:
    broker, client = opened()
    client.send(*(publication("q", body, app_id="me") for body in (b"a", b"bcd", b"")))
    one, two, three = (kept(broker) for _ in range(3))
    assert one.property_list is two.property_list is three.property_list


def test_a_body_may_come_in_many_frames_some_of_them_empty() -> None:
    for pieces in ((b"hel", b"lo"), (b"", b"hello"), (b"h", b"", b"ell", b"o"), (b"hello",)):
        broker, client = opened()
        client.send(PUBLISH, header(5), *(frame(3, 1, piece) for piece in pieces))
        assert kept(broker).body == b"hello"
        for data in (PUBLISH, header(5), *(frame(3, 1, piece) for piece in pieces)):
            client.send(data)
        assert kept(broker).body == b"hello"


def test_a_message_without_a_body_has_no_body_frame() -> None:
    broker, client = opened()
    client.send(PUBLISH, header(0), PUBLISH, header(0))
    assert (kept(broker).body, kept(broker).body) == (b"", b"")


def test_messages_of_two_channels_may_be_interleaved() -> None:
    broker, client = opened()
    client.ask(methods.ChannelOpen(), channel=2)
    other = call(methods.BasicPublish(routing_key="q"), 2)
    client.send(PUBLISH, other, header(2), frame(2, 2, BasicProperties().encode(3)), frame(3, 2, b"two"))
    client.send(frame(3, 1, b"1"), frame(3, 1, b"!"))
    assert [kept(broker).body for _ in range(2)] == [b"two", b"1!"]


def test_a_body_that_is_too_long_closes_the_connection() -> None:
    for pieces in ((b"hello!",), (b"hel", b"lo!")):
        _, client = opened()
        client.send(PUBLISH, header(5), *(frame(3, 1, piece) for piece in pieces))
        assert closed_with(client)[:2] == ("connection.close", 501)


@pytest.mark.parametrize(
    "frames",
    [
        [PUBLISH, PUBLISH],
        [PUBLISH, frame(3, 1, b"x")],
        [PUBLISH, header(5), header(5)],
        [PUBLISH, header(5), PUBLISH],
        [PUBLISH, header(5), call(methods.BasicAck(1))],
        [header(5)],
        [frame(3, 1, b"x")],
        [PUBLISH, frame(2, 1, b"\x00\x32" + bytes(12))],
        [PUBLISH, frame(2, 1, b"\x00\x3c\x00\x01" + bytes(10))],
    ],
)
def test_frames_out_of_order_close_the_connection(frames: list[bytes]) -> None:
    _, client = opened()
    client.send(*frames)
    assert closed_with(client)[:2] == ("connection.close", 505)


@pytest.mark.parametrize(
    "payload",
    [bytes(length) for length in range(7)]
    + [b"\x00\x01q", b"\x00\x05q\x00", b"\x09q\x00", b"\x00\x01q\x00\x00", b"\xff\xff\xff"],
)
def test_a_truncated_or_overlong_publish_closes_the_connection(payload: bytes) -> None:
    broker, client = opened()
    client.send(frame(1, 1, b"\x00\x3c\x00\x28\x00\x00" + payload), header(0))
    if payload == bytes(3):
        return  # exchange "", routing key "", no bits: a sound one
    assert closed_with(client)[:2] == ("connection.close", 501)
    assert broker.reports == []


@pytest.mark.parametrize("payload", [b"", b"\x00\x3c", bytes(13), b"\x00\x3c" + bytes(11) + b"\xff\xff"])
def test_a_malformed_content_header_closes_the_connection(payload: bytes) -> None:
    broker, client = opened()
    client.send(PUBLISH, frame(2, 1, payload))
    assert closed_with(client)[0] == "connection.close"
    assert broker.reports == []


def test_a_message_that_is_too_large_is_refused_at_its_header() -> None:
    _, client = opened(message_size_max=100)
    client.send(PUBLISH, header(101))
    text = "PRECONDITION_FAILED - message size 101 is larger than configured max size 100"
    assert closed_with(client) == ("channel.close", 406, text)


@pytest.mark.parametrize("size", [2**31, 2**32 - 1, 2**32, 2**32 + 5, 2**63, 2**64 - 1])
def test_hostile_sizes_are_refused_with_the_value(size: int) -> None:
    _, client = opened()
    client.send(PUBLISH, header(size))
    assert closed_with(client)[2].startswith(f"PRECONDITION_FAILED - message size {size} is larger")


def test_immediate_is_not_implemented() -> None:
    _, client = opened()
    client.send(call(methods.BasicPublish(routing_key="q", immediate=True)))
    assert closed_with(client) == ("connection.close", 540, "NOT_IMPLEMENTED - immediate=true")


# --- permission ---------------------------------------------------------------------------------


def test_permissions_are_checked_again_when_they_change() -> None:
    broker, client = opened()
    client.send(publication("q", b"1"), publication("q", b"2"))
    forbidden = SetPermissions(user="guest", vhost="/", configure="", write="^$", read=".*")
    broker.proposals.apply(forbidden)
    client.send(publication("q", b"3", exchange="amq.direct"))
    assert closed_with(client)[:2] == ("channel.close", 403)
    assert broker.services.vhost.queues["q"].published_count == 2


def test_an_address_is_checked_again_when_its_exchange_is_deleted() -> None:
    _, client = opened()
    client.ask(methods.ExchangeDeclare(exchange="ex"))
    client.send(publication("q", b"1", exchange="ex"))
    assert client.hear() == []
    client.ask(methods.ExchangeDelete(exchange="ex"))
    client.send(publication("q", b"2", exchange="ex"))
    assert closed_with(client) == ("channel.close", 404, "NOT_FOUND - no exchange 'ex' in vhost '/'")


def test_a_refused_address_stays_refused() -> None:
    _, client = opened()
    for _ in range(2):
        client.send(publication("q", b"1", exchange="nope"))
        assert closed_with(client)[1] == 404
        client.ask(methods.ChannelCloseOk(), methods.ChannelOpen())


def test_more_addresses_than_the_cache_holds_are_all_published() -> None:
    broker, client = opened()
    client.ask(methods.QueueBind(queue="q", exchange="amq.fanout"))
    count = PUBLISHER_ADDRESSES_MAX + 10
    for number in [*range(count), 0, 1]:
        client.send(publication(f"k{number}", b"x", exchange="amq.fanout"))
    queue = broker.services.vhost.queues["q"]
    keys = [queue.get().message.routing_key for _ in range(count + 2)]
    assert keys == [f"k{number}" for number in [*range(count), 0, 1]]


def test_alternating_addresses_are_all_published() -> None:
    broker, client = opened()
    topics = SetTopicPermissions(user="guest", vhost="/", exchange="amq.topic", write="^k", read=".*")
    broker.proposals.apply(topics)
    client.ask(methods.QueueBind(queue="q", exchange="amq.topic", routing_key="#"))
    count = PUBLISHER_ADDRESSES_MAX + 10
    for number in [*range(count), 0, 1]:
        client.send(publication(f"k{number}", b"x", exchange="amq.topic"))
    assert broker.services.vhost.queues["q"].published_count == count + 2
    client.send(publication("x", b"x", exchange="amq.topic"))
    assert closed_with(client)[1] == 403


@pytest.mark.parametrize("copies", [{"CC": ["kept", "x"]}, {"BCC": ["x"]}, {"CC": ["x" * 300]}])
def test_publishing_requires_permission_for_each_key_of_cc_and_bcc(copies: dict[str, object]) -> None:
    broker, client = opened()
    topics = SetTopicPermissions(user="guest", vhost="/", exchange="amq.topic", write="^k", read=".*")
    broker.proposals.apply(topics)
    client.ask(methods.QueueBind(queue="q", exchange="amq.topic", routing_key="#"))
    allowed = publication("k", b"x", exchange="amq.topic", headers={"CC": ["k1"], "BCC": ["k2"]})
    client.send(allowed, allowed)
    client.send(publication("k", b"x", exchange="amq.topic", headers=copies))
    assert closed_with(client)[1] == 403
    assert broker.services.vhost.queues["q"].published_count == 2


def test_in_a_transaction_each_key_of_cc_and_bcc_requires_permission() -> None:
    broker, client = opened()
    topics = SetTopicPermissions(user="guest", vhost="/", exchange="amq.topic", write="^k", read=".*")
    broker.proposals.apply(topics)
    client.ask(methods.TxSelect())
    client.send(publication("k", b"x", exchange="amq.topic", headers={"CC": ["x"]}))
    assert closed_with(client)[1] == 403


# --- routes -------------------------------------------------------------------------------------


def test_alternating_messages_share_the_bytes_of_their_addresses() -> None:
    broker, client = opened()
    other = broker.client()
    client.ask(methods.QueueBind(queue="q", exchange="amq.fanout"))
    one, two = (
        publication("one", b"x", exchange="amq.fanout"),
        publication("two", b"x", exchange="amq.fanout"),
    )
    client.send(one, two, one, two)
    other.send(one, two)
    addresses = [kept(broker).address for _ in range(6)]
    assert len({id(address) for address in addresses}) == 2


def test_a_new_binding_applies_to_the_next_message() -> None:
    broker, client = opened()
    client.ask(
        methods.QueueDeclare(queue="r"), methods.QueueBind(queue="q", exchange="amq.topic", routing_key="k")
    )
    message = publication("k", b"x", exchange="amq.topic")
    client.send(message, message, call(methods.QueueBind(queue="r", exchange="amq.topic", routing_key="k")))
    client.send(message, call(methods.QueueUnbind(queue="q", exchange="amq.topic", routing_key="k")), message)
    counts = {name: queue.published_count for name, queue in broker.services.vhost.queues.items()}
    assert counts == {"q": 3, "r": 2}


def test_a_headers_exchange_routes_each_message_anew() -> None:
    broker, client = opened()
    client.ask(
        methods.QueueDeclare(queue="r"),
        methods.QueueBind(queue="q", exchange="amq.headers", arguments={"to": "q"}),
        methods.QueueBind(queue="r", exchange="amq.headers", arguments={"to": "r"}),
    )
    for to in "qrrq":
        client.send(publication("k", b"x", exchange="amq.headers", headers={"to": to}))
    counts = {name: queue.published_count for name, queue in broker.services.vhost.queues.items()}
    assert counts == {"q": 2, "r": 2}


def test_cc_keys_are_routed_although_the_route_is_cached() -> None:
    broker, client = opened()
    client.ask(methods.QueueDeclare(queue="r"))
    client.send(publication("q", b"1"), publication("q", b"2", headers={"CC": ["r"]}), publication("q", b"3"))
    counts = {name: queue.published_count for name, queue in broker.services.vhost.queues.items()}
    assert counts == {"q": 3, "r": 1}


# --- answers ------------------------------------------------------------------------------------


def test_an_unroutable_mandatory_message_is_returned_and_then_confirmed() -> None:
    _, client = opened()
    client.ask(methods.ConfirmSelect())
    client.send(publication("nobody", b"x", mandatory=True, app_id="me"), publication("nobody", b"y"))
    returned, ack = client.hear()
    assert returned.method == methods.BasicReturn(312, "NO_ROUTE", "", "nobody")
    assert (returned.body, returned.properties) == (b"x", BasicProperties(app_id="me"))
    assert ack.method == methods.BasicAck(2, True)


def test_a_message_refused_by_a_full_queue_is_nacked() -> None:
    _, client = opened()
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    client.ask(methods.QueueDeclare(queue="full", arguments=arguments), methods.ConfirmSelect())
    client.send(*(publication("full", b"x") for _ in range(3)))
    assert [received.method for received in client.hear()] == [
        methods.BasicAck(1, False),
        methods.BasicNack(3, True, True),
    ]


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"user_id": "bob"}, "user_id property set to 'bob' but authenticated user was 'guest'"),
        ({"expiration": "soon"}, "invalid expiration 'soon': no_integer"),
        ({"expiration": "-1"}, "invalid expiration '-1': {value_negative,-1}"),
        ({"delivery_mode": 3}, "invalid message: {delivery_mode_unknown,3}"),
        ({"reply_to": "amq.rabbitmq.reply-to"}, "fast reply consumer does not exist"),
    ],
)
def test_invalid_properties_close_the_channel(properties: dict[str, object], text: str) -> None:
    _, client = opened()
    client.send(publication("q", b"x", **properties))
    assert closed_with(client) == ("channel.close", 406, f"PRECONDITION_FAILED - {text}")
