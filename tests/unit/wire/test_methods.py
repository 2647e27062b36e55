"""Methods are decoded as they were encoded, and errors have RabbitMQ's texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.errors import AmqpError, CommandInvalid, FrameError
from warren.wire import fields
from warren.wire.method import Method
from warren.wire.methods import METHODS, BasicPublish, ChannelOpen, QueueDeclare, decode_method

TEXTS = st.text(max_size=12)
VALUES = {
    fields.BIT: st.booleans(),
    fields.OCTET: st.integers(0, 2**8 - 1),
    fields.SHORT: st.integers(0, 2**16 - 1),
    fields.LONG: st.integers(0, 2**32 - 1),
    fields.LONG_LONG: st.integers(0, 2**64 - 1),
    fields.SHORT_STRING: TEXTS,
    fields.RAW_SHORT_STRING: TEXTS,
    fields.LONG_STRING: TEXTS,
    fields.TABLE: st.dictionaries(TEXTS, st.booleans() | TEXTS, max_size=3),
}
ANY_METHOD = st.sampled_from(sorted(METHODS.values(), key=lambda method: method.index)).flatmap(
    lambda method: st.builds(
        method, **{name: VALUES[hint.__metadata__[0]] for name, hint in method.__annotations__.items()}
    )
)


@given(ANY_METHOD)
def test_any_method_is_decoded_as_it_was_encoded(method: Method) -> None:
    assert decode_method(method.encode()) == method
    assert decode_method(method.encode()).encode() == method.encode()


@given(ANY_METHOD, st.binary(max_size=3), st.integers(0, 200))
def test_a_truncated_or_overlong_method_cannot_be_decoded(method: Method, tail: bytes, kept: int) -> None:
    payload = method.encode()
    for damaged in (payload + tail, payload[: max(4, kept)]):
        if damaged != payload:
            with pytest.raises(FrameError):
                decode_method(damaged)


@given(st.sampled_from(sorted(METHODS)), st.binary(max_size=60))
def test_any_bytes_are_a_method_or_a_frame_error(index: int, data: bytes) -> None:
    payload = index.to_bytes(4, "big") + data
    try:
        method = decode_method(payload)
    except FrameError:
        return
    assert decode_method(method.encode()) == method


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_every_method_is_decoded_as_it_was_encoded(method: type) -> None:
    assert decode_method(method().encode()) == method()


def test_a_declare_is_encoded_as_in_the_specification() -> None:
    declare = QueueDeclare(queue="jobs", durable=True, no_wait=True, arguments={"x-expires": 1})
    data = b"\0\x32\0\x0a" + b"\0\0" + b"\x04jobs" + b"\x12" + b"\0\0\0\x13\x09x-expiresl\0\0\0\0\0\0\0\x01"
    assert declare.encode() == data
    assert QueueDeclare.decode(data) == declare


@pytest.mark.parametrize(
    ("payload", "text", "index"),
    [
        (b"", "FRAME_ERROR - type 1, all octets = <<>>: unknown_frame", 0),
        (b"\0\x32\0", "FRAME_ERROR - type 1, all octets = <<0,50,0>>: unknown_frame", 0),
        (b"\0\x14\0\x0a\0EXTRA", "FRAME_ERROR - cannot decode <<0,69,88,84,82,65>>", 20 << 16 | 10),
        (b"\0\x14\0\x0a", "FRAME_ERROR - cannot decode <<>>", 20 << 16 | 10),
        (b"\0\x14\0\x0a\x03\xff\x01\x02", "FRAME_ERROR - Malformed UTF-8 in shortstr", 0),
        (b"\0\x14\0\x0a\x01\xff\x02", "FRAME_ERROR - cannot decode <<1,255,2>>", 20 << 16 | 10),
    ],
)
def test_a_malformed_method_is_refused_with_the_text_of_rabbitmq(
    payload: bytes, text: str, index: int
) -> None:
    with pytest.raises(FrameError) as caught:
        decode_method(payload)
    assert (caught.value.reply_text, caught.value.method_index) == (text, index)


def test_an_unknown_method_is_an_invalid_command() -> None:
    with pytest.raises(CommandInvalid, match=r"unknown method 50\.99"):
        decode_method(b"\0\x32\0\x63")


def test_names_in_a_publish_may_be_any_bytes() -> None:
    publish = BasicPublish.decode(b"\0\x3c\0\x28\0\0\x01\xff\x01\xfe\x01")
    assert publish.mandatory
    assert publish.encode() == b"\0\x3c\0\x28\0\0\x01\xff\x01\xfe\x01"


def test_a_short_string_has_at_most_255_bytes() -> None:
    assert ChannelOpen("x" * 255) == ChannelOpen.decode(ChannelOpen("x" * 255).encode())
    with pytest.raises(AmqpError, match="longer than 255"):
        ChannelOpen("x" * 256).encode()


def test_tables_are_not_shared_between_methods() -> None:
    QueueDeclare().arguments["x"] = 1
    assert QueueDeclare().arguments == {}
