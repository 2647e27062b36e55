"""AMQP 1.0 messages are stored without loss, and shown in AMQP 0-9-1 as RabbitMQ shows them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.test_amqp1 import SIMPLE, TEXT

from warren.wire import amqp1
from warren.wire.amqp1 import NULL
from warren.wire.properties import BasicProperties
from warren.wire.streams.conversion import (
    SECTIONS_HEADER,
    SECTIONS_TYPE,
    MessageConverter,
    read_head,
    write_head,
)
from warren.wire.table import Int32, Timestamp

BODY = amqp1.encode_section(amqp1.DATA, ("binary", b"body"))


def text(value):
    return "utf8", value


def symbol(value):
    return "symbol", value


def section(code, *values):
    kind = "list" if code in (amqp1.PROPERTIES, amqp1.HEADER) else "map"
    return amqp1.encode_section(code, (kind, values))


def taken(message):
    head, begin, end, is_data = MessageConverter().split(message)
    return head, message[begin:end], is_data


def again(message):
    """`message` as it is delivered after it was stored."""
    head, body, is_data = taken(message)
    properties = BasicProperties.decode_list(head.property_list)
    data = write_head(properties, head.exchange, head.routing_key, is_kept=True)
    return data + (amqp1.data_head(len(body)) if is_data else b"") + body


PROPERTIES = st.lists(SIMPLE, max_size=13).map(lambda values: section(amqp1.PROPERTIES, *values))
MAPS = st.lists(st.tuples(st.one_of(TEXT.map(text), TEXT.map(symbol)), SIMPLE), max_size=5)
HEADS = st.tuples(
    st.one_of(st.just(b""), st.just(section(amqp1.HEADER, ("boolean", True)))),
    st.one_of(st.just(b""), MAPS.map(lambda pairs: section(amqp1.ANNOTATIONS, *pairs))),
    st.one_of(st.just(b""), PROPERTIES),
    st.one_of(st.just(b""), MAPS.map(lambda pairs: section(amqp1.APPLICATION_PROPERTIES, *pairs))),
).map(b"".join)


@given(HEADS, st.sampled_from([BODY, BODY + BODY, amqp1.encode_section(amqp1.VALUE, text("x"))]))
def test_no_part_of_a_message_is_lost(head, body):
    sent, got = head + body, again(head + body)
    found = amqp1.sections(sent)
    assert [each.code for each in amqp1.sections(got)] in (
        [each.code for each in found],
        # An empty section is equivalent to none.
        [each.code for each in found if not is_empty(sent, each)],
    )
    for each in amqp1.sections(got):
        original = next(other for other in found if other.code == each.code)
        assert trimmed(amqp1.decode(got, each.value_at, each.end)[0]) == trimmed(
            amqp1.decode(sent, original.value_at, original.end)[0]
        )


def is_empty(data, found):
    return not trimmed(amqp1.decode(data, found.value_at, found.end)[0])[1]


def trimmed(value):
    kind, content = value
    if kind == "list":
        content = list(content)
        while content and content[-1] == NULL:
            content.pop()
        content = tuple(content)
    return kind, repr(content)


@given(st.binary(max_size=60))
def test_any_bytes_are_preserved(data):
    got = again(data)
    if got != data:
        # A data section whose length uses more bytes than it needs.
        assert len(got) <= len(data)
        assert taken(got)[1] == taken(data)[1]


def test_a_data_section_alone_has_no_properties():
    head, body, is_data = taken(BODY)
    assert (head.property_list, body, is_data) == (b"\0\0", b"body", True)
    long = amqp1.encode_section(amqp1.DATA, ("binary", bytes(300)))
    assert taken(long)[1:] == (bytes(300), True)


def test_a_message_that_is_not_amqp_1_0_is_a_body():
    head, body, is_data = taken(b"raw octets")
    assert (head.property_list, body, is_data) == (b"\0\0", b"raw octets", False)
    assert again(b"raw octets") == b"raw octets"
    assert again(b"") == b""


def test_properties_are_those_that_rabbitmq_shows():
    """Measured with RabbitMQ 3.10.8 and a consumer of AMQP 0-9-1."""
    fields = (
        text("id"), ("binary", b"guest"), text("to"), text("subj"), text("reply"), text("corr"),
        symbol("text/plain"), symbol("gzip"), ("timestamp", 5), ("timestamp", 5500),
    )  # fmt: skip
    head, _, _ = taken(section(amqp1.PROPERTIES, *fields) + BODY)
    properties = BasicProperties.decode_list(head.property_list)
    assert properties.headers.pop(SECTIONS_HEADER) == section(amqp1.PROPERTIES, *fields)
    assert properties == BasicProperties(
        message_id="id", user_id="guest", reply_to="reply", correlation_id="corr",
        content_type="text/plain", content_encoding="gzip", timestamp=5, headers={},
    )  # fmt: skip


def test_ids_that_are_not_strings_have_their_types_in_headers():
    fields = (("ulong", 7), NULL, NULL, NULL, NULL, ("uuid", bytes(range(16))))
    message = section(amqp1.PROPERTIES, *fields) + BODY
    properties = BasicProperties.decode_list(taken(message)[0].property_list)
    assert properties == BasicProperties(
        message_id="7",
        correlation_id="00010203-0405-0607-0809-0a0b0c0d0e0f",
        headers={"x-message-id-type": "ulong", "x-correlation-id-type": "uuid"},
    )
    assert again(message) == message
    binary = section(amqp1.PROPERTIES, ("binary", b"\xff\0")) + BODY
    assert BasicProperties.decode_list(taken(binary)[0].property_list).message_id == "/wA="


def test_annotations_contain_the_exchange_and_the_routing_key():
    pairs = [(symbol("x-routing-key"), text("rk")), (symbol("x-exchange"), text("ex"))]
    head, _, _ = taken(section(amqp1.ANNOTATIONS, *pairs, (symbol("x-basic-priority"), ("ubyte", 4))) + BODY)
    assert (head.exchange, head.routing_key, head.priority, head.has_headers) == ("ex", "rk", 4, False)


def test_messages_of_amqp_0_9_1_are_delivered_as_by_rabbitmq():
    properties = BasicProperties(
        content_type="text/plain", content_encoding="utf-8", delivery_mode=2, priority=3, correlation_id="c",
        headers={"s": "str", "i": Int32(5), "b": True, "l": 2**40, "by": b"\xff", "n": None,
                 "t": Timestamp(1_577_836_800), "table": {}, "list": [], "d": Decimal(1)},
        reply_to="r", expiration="1000", message_id="m", timestamp=1234, type="t", user_id="guest",
        app_id="app",
    )  # fmt: skip
    # Byte by byte as sent by RabbitMQ 3.10.8, except trailing nulls and a longer encoding of true.
    assert write_head(properties, "amq.topic", "a.b", is_kept=False) == (
        b"\0Sr\xc1s\n\xa3\rx-routing-key\xa1\3a.b\xa3\nx-exchange\xa1\tamq.topic\xa3\x10x-basic-priorityP\3"
        b"\xa3\x15x-basic-delivery-modeP\2\xa3\x12x-basic-expiration\xa1\0041000"
        b"\0Ss\xc00\n\xa1\1m\xa0\5guest@@\xa1\1r\xa1\1c\xa3\ntext/plain\xa3\5utf-8@\x83\0\0\0\0\0\x12\xd4P"
        b"\0St\xc1[\x12\xa1\x0cx-basic-type\xa1\1t\xa1\x0ex-basic-app-id\xa1\3app\xa1\1s\xa1\3str\xa1\1iT\5"
        b"\xa1\1bA\xa1\1l\x81\0\0\1\0\0\0\0\0\xa1\2by\xa0\1\xff\xa1\1n@\xa1\1t\x83\0\0\1o^f\xe8\0"
    )


def test_a_body_of_other_sections_has_a_content_type_that_says_so():
    message = amqp1.encode_section(amqp1.VALUE, text("hi"))
    head, body, is_data = taken(message)
    assert BasicProperties.decode_list(head.property_list).type == SECTIONS_TYPE
    assert (body, is_data) == (message, False)
    assert again(message) == message


def test_a_repeated_header_is_cached():
    converter = MessageConverter()
    message = section(amqp1.PROPERTIES, text("id")) + BODY
    assert converter.split(message)[0] is converter.split(message)[0]


@pytest.mark.parametrize("name", ["x" * 300, "x-basic-app-id"])
def test_parts_that_do_not_fit_amqp_0_9_1_are_stored_separately(name):
    pairs = [(text(name), text("y" * 300))]
    data = section(amqp1.APPLICATION_PROPERTIES, *pairs)
    head = read_head(data, is_data=True)
    assert BasicProperties.decode_list(head.property_list).headers[SECTIONS_HEADER] == data
    assert again(data + BODY) == data + BODY


def test_a_client_cannot_forge_stored_sections():
    data = section(amqp1.APPLICATION_PROPERTIES, (text(SECTIONS_HEADER), ("binary", b"evil")))
    assert again(data + BODY) == data + BODY


def test_a_header_that_is_too_large_becomes_part_of_the_body():
    data = section(amqp1.APPLICATION_PROPERTIES, (text("x"), text("y" * 200_000)))
    head, body, is_data = taken(data + BODY)
    assert (head.property_list, is_data) == (b"\0\0", False)
    assert body == data + BODY
