"""Messages on their way from the upstream."""

from warren.federation.exchange_forwarding import ExchangeForwarding, PropertyLimit, Source
from warren.model.message import BODY_END, Message, encode_address
from warren.wire.properties import BasicProperties

SOURCE = Source(uri="amqp://h:5672/w", exchange="x", cluster_name="there", vhost="w")
SIZE_MAX = 1000
ENTRY = {
    "uri": "amqp://h:5672/w",
    "exchange": "x",
    "redelivered": False,
    "cluster-name": "there",
    "vhost": "w",
}


def forwarding(
    source: Source = SOURCE, *, max_hops: int = 2, is_trusted: bool = False, warnings: list[str] | None = None
) -> ExchangeForwarding:
    limit = PropertyLimit(SIZE_MAX, [].append if warnings is None else warnings.append)
    return ExchangeForwarding(
        source, limit, cluster_name="here", vhost="v", max_hops=max_hops, is_trusted=is_trusted
    )


def delivered(key: str = "k", exchange: str = "origin", **properties: object) -> Message:
    return Message(
        encode_address(exchange, key),
        BasicProperties(**properties).encode_list(),  # type: ignore[arg-type]
        b"body" + BODY_END,
        5,
    )


def test_a_message_goes_to_the_federated_exchange_with_its_key_body_and_properties() -> None:
    found = forwarding().transform(delivered("a.b", message_id="m", delivery_mode=2), False)
    assert found is not None
    assert (found.exchange, found.routing_key, found.body) == ("x", "a.b", b"body")
    properties = found.properties()
    assert (properties.message_id, properties.delivery_mode) == ("m", 2)
    assert properties.headers == {"x-received-from": [ENTRY]}
    # In RabbitMQ's order.
    assert list(properties.headers["x-received-from"][0]) == list(ENTRY)


def test_the_upstream_is_entered_before_the_brokers_passed_earlier() -> None:
    earlier = {"cluster-name": "first", "vhost": "v"}
    found = forwarding().transform(delivered(headers={"x-received-from": [earlier], "n": 1}), True)
    assert found is not None
    assert found.properties().headers == {
        "n": 1,
        "x-received-from": [{**ENTRY, "redelivered": True}, earlier],
    }


def test_an_upstream_without_a_name_is_entered_without_one() -> None:
    source = Source(uri="amqp://h", exchange="x", cluster_name=None, vhost="w")
    found = forwarding(source).transform(delivered(), False)
    assert found is not None
    headers = found.properties().headers
    assert headers is not None
    assert "cluster-name" not in headers["x-received-from"][0]


def test_a_message_that_has_passed_too_many_brokers_or_this_one_is_dropped() -> None:
    other = {"cluster-name": "other", "vhost": "v"}
    here = {"cluster-name": "here", "vhost": "v"}
    assert forwarding().transform(delivered(headers={"x-received-from": [other, other]}), False) is None
    assert forwarding().transform(delivered(headers={"x-received-from": [here]}), False) is None
    assert forwarding().transform(delivered(headers={"x-received-from": [other]}), False) is not None


def test_the_user_id_is_removed_unless_the_upstream_is_trusted() -> None:
    message = delivered(user_id="alice")
    found = forwarding().transform(message, False)
    assert found is not None
    assert found.properties().user_id is None
    trusted = forwarding(is_trusted=True).transform(message, False)
    assert trusted is not None
    assert trusted.properties().user_id == "alice"


def test_messages_with_equal_properties_share_the_changed_ones() -> None:
    link, first, other = forwarding(), delivered("a"), delivered("b")
    second = Message(other.address, first.property_list, other.content, 0)
    found = [link.transform(message, False) for message in (first, second)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].property_list is found[1].property_list
    assert [message.routing_key for message in found if message] == ["a", "b"]
    redelivered = link.transform(second, True)
    assert redelivered is not None
    headers = redelivered.properties().headers
    assert headers is not None
    assert headers["x-received-from"][0]["redelivered"] is True


def test_a_message_whose_properties_are_no_valid_amqp_is_dropped() -> None:
    assert forwarding().transform(Message(b"\0\0", b"\xff\xff", BODY_END, 0), False) is None


def test_a_message_without_room_for_its_entry_is_dropped_and_reported_once() -> None:
    warnings: list[str] = []
    link = forwarding(warnings=warnings)
    for size in (SIZE_MAX - 60, SIZE_MAX):
        large = delivered(headers={"n": b"\0" * size})
        assert link.transform(large, False) is None
    assert link.transform(delivered(headers={"n": b"\0" * (SIZE_MAX // 2)}), False) is not None
    (warning,) = warnings
    assert "routing key 'k' was dropped" in warning
