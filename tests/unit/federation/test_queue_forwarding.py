"""The headers of messages that are taken from another broker's queue."""

from warren.federation.queue_forwarding import QueueForwarding
from warren.model.message import BODY_END, Message, encode_address
from warren.wire.properties import BasicProperties
from warren.wire.table import Table

URI = "amqp://127.0.0.1:30231/up"


def message(exchange: str = "", key: str = "fq", **properties: object) -> Message:
    address = encode_address(exchange, key)
    return Message.compose(address, BasicProperties(**properties), b"body" + BODY_END, now=7)


def forwarding(uri: str = URI, *, is_trusted: bool = False, size_max: int = 1000) -> QueueForwarding:
    return QueueForwarding(uri, "fq", "here", is_trusted=is_trusted, size_max=size_max)


def headers_of(forwarded: Message) -> Table:
    headers = forwarded.properties().headers
    assert headers is not None
    return headers


def entry(uri: str = URI, *, redelivered: bool = False, count: int = 1) -> Table:
    return {"uri": uri, "queue": "fq", "redelivered": redelivered, "visit-count": count}


def test_a_message_goes_to_the_queue_here_and_keeps_its_body_and_properties() -> None:
    source = message("amq.direct", "k", priority=3, delivery_mode=2, message_id="m")
    forwarded = forwarding().transform(source, False)
    assert (forwarded.exchange, forwarded.routing_key, forwarded.body) == ("", "here", b"body")
    properties = forwarded.properties()
    assert (properties.priority, properties.delivery_mode, properties.message_id) == (3, 2, "m")


def test_the_first_forward_notes_where_the_message_was_published() -> None:
    assert headers_of(forwarding().transform(message("amq.direct", "k"), True)) == {
        "x-original-exchange": "amq.direct",
        "x-original-routing-key": "k",
        "x-received-from": [entry(redelivered=True)],
    }


def test_the_header_has_the_bytes_of_rabbitmq() -> None:
    """What RabbitMQ 3.10.8 wrote for the same message."""
    forwarded = forwarding().transform(message(), False)
    assert forwarded.property_list == (
        b" \x00\x00\x00\x00\xa3\x13x-original-exchangeS\x00\x00\x00\x00\x16x-original-routing-keyS\x00\x00"
        b"\x00\x02fq\x0fx-received-fromA\x00\x00\x00WF\x00\x00\x00R\x03uriS\x00\x00\x00\x19"
        b"amqp://127.0.0.1:30231/up\x05queueS\x00\x00\x00\x02fq\x0bredeliveredt\x00\x0bvisit-countl\x00\x00"
        b"\x00\x00\x00\x00\x00\x01"
    )


def test_later_forwards_keep_the_first_address() -> None:
    first = forwarding("amqp://a").transform(message("x", "k"), False)
    second = forwarding("amqp://b").transform(first, True)
    assert headers_of(second) == {
        "x-original-exchange": "x",
        "x-original-routing-key": "k",
        "x-received-from": [entry("amqp://b", redelivered=True), entry("amqp://a")],
    }


def test_visits_are_counted_in_a_ring() -> None:
    moved = message()
    for _ in range(3):
        for uri in ("amqp://a", "amqp://b"):
            moved = forwarding(uri).transform(moved, False)
    assert headers_of(moved)["x-received-from"] == [entry("amqp://b", count=3), entry("amqp://a", count=3)]


def test_a_message_has_returned_if_it_was_taken_from_the_same_queue_before() -> None:
    a, b = forwarding("amqp://a"), forwarding("amqp://b")
    once = a.transform(message(), False)
    assert not a.has_returned
    there = b.transform(once, False)
    assert not b.has_returned
    a.transform(there, False)
    assert a.has_returned
    a.transform(message(), False)
    assert not a.has_returned


def test_copies_are_renamed_so_that_they_are_not_routed_again() -> None:
    headers = headers_of(forwarding().transform(message(headers={"CC": ["other"], "a": 1}), False))
    assert "CC" not in headers
    assert (headers["x-original-cc"], headers["a"]) == (["other"], 1)


def test_a_header_of_another_type_was_set_by_a_client_and_is_moved_away() -> None:
    headers = headers_of(forwarding().transform(message(headers={"x-received-from": "text"}), False))
    assert headers["x-received-from"] == [entry()]
    assert headers["x-invalid-headers"] == {"x-received-from": ["text"]}
    assert headers["x-original-exchange"] == ""


def test_entries_and_counts_that_a_client_has_invented_are_survived() -> None:
    invented = [1, {"uri": URI, "queue": "fq", "visit-count": "many"}, {"uri": URI}]
    headers = headers_of(forwarding().transform(message(headers={"x-received-from": invented}), False))
    assert headers["x-received-from"] == [entry(), 1, {"uri": URI}]
    huge = [{"uri": URI, "queue": "fq", "visit-count": (1 << 63) - 1}]
    headers = headers_of(forwarding().transform(message(headers={"x-received-from": huge}), False))
    assert headers["x-received-from"] == [entry()]


def test_the_user_id_is_kept_only_of_a_trusted_upstream() -> None:
    source = message(user_id="guest")
    assert forwarding().transform(source, False).properties().user_id is None
    assert forwarding(is_trusted=True).transform(source, False).properties().user_id == "guest"


def test_messages_with_equal_properties_share_the_changed_ones() -> None:
    forward = forwarding()
    source = message("x", "k")
    first, second = forward.transform(source, False), forward.transform(source, False)
    assert first.property_list is second.property_list
    assert headers_of(forward.transform(source, True))["x-received-from"] == [entry(redelivered=True)]
    other = Message(encode_address("x", "l"), source.property_list, source.content, 0)
    assert headers_of(forward.transform(other, True))["x-original-routing-key"] == "l"


def test_properties_that_are_not_valid_are_left_for_the_queue_to_refuse() -> None:
    source = Message(encode_address("", "fq"), b"\x20\x00\x00", b"body" + BODY_END, 0)
    assert forwarding().transform(source, False).property_list == b"\x20\x00\x00"


def test_a_message_without_room_for_the_headers_is_forwarded_without_them() -> None:
    source = message("amq.direct", "k", headers={"n": "x" * 400, "CC": ["other"]}, user_id="guest")
    for size_max, expected in ((700, True), (500, False)):
        link = forwarding(size_max=size_max)
        forwarded = link.transform(source, False)
        assert link.has_returned is not expected
        headers = headers_of(forwarded)
        assert ("x-received-from" in headers) is expected
        # Its copies are not routed again, and the user is not known here.
        assert "CC" not in headers
        assert forwarded.properties().user_id is None
        assert headers["n"] == "x" * 400
