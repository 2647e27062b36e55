"""Methods decode to what they were encoded from, and answer anything else with RabbitMQ's texts."""

import pytest

from warren.errors import AmqpError, CommandInvalid, FrameError
from warren.wire.methods import METHODS, BasicPublish, ChannelOpen, QueueDeclare, decode_method


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_every_method_survives_the_wire(method: type) -> None:
    assert decode_method(method().encode()) == method()


def test_a_declare_is_encoded_as_the_specification_draws_it() -> None:
    declare = QueueDeclare(queue="jobs", durable=True, no_wait=True, arguments={"x-expires": 1})
    octets = b"\0\x32\0\x0a" + b"\0\0" + b"\x04jobs" + b"\x12" + b"\0\0\0\x13\x09x-expiresl\0\0\0\0\0\0\0\x01"
    assert declare.encode() == octets
    assert QueueDeclare.decode(octets) == declare


@pytest.mark.parametrize(
    ("payload", "text", "index"),
    [
        (b"", "FRAME_ERROR - type 1, all octets = <<>>: unknown_frame", 0),
        (b"\0\x32\0", "FRAME_ERROR - type 1, all octets = <<0,50,0>>: unknown_frame", 0),
        (b"\0\x14\0\x0a\0EXTRA", "FRAME_ERROR - cannot decode <<0,69,88,84,82,65>>", 20 << 16 | 10),
        (b"\0\x14\0\x0a", "FRAME_ERROR - cannot decode <<>>", 20 << 16 | 10),
        (b"\0\x14\0\x0a\x03\xff\x01\x02", "FRAME_ERROR - Malformed UTF-8 in shortstr", 0),
    ],
)
def test_a_malformed_method_is_refused_in_rabbitmqs_words(payload: bytes, text: str, index: int) -> None:
    with pytest.raises(FrameError) as caught:
        decode_method(payload)
    assert (caught.value.reply_text, caught.value.method_index) == (text, index)


def test_an_unknown_method_is_an_invalid_command() -> None:
    with pytest.raises(CommandInvalid, match=r"unknown method 50\.99"):
        decode_method(b"\0\x32\0\x63")


def test_names_in_a_publish_may_be_any_octets() -> None:
    publish = BasicPublish.decode(b"\0\x3c\0\x28\0\0\x01\xff\x01\xfe\x01")
    assert publish.mandatory
    assert publish.encode() == b"\0\x3c\0\x28\0\0\x01\xff\x01\xfe\x01"


def test_a_short_string_holds_255_octets() -> None:
    assert ChannelOpen("x" * 255) == ChannelOpen.decode(ChannelOpen("x" * 255).encode())
    with pytest.raises(AmqpError, match="longer than 255"):
        ChannelOpen("x" * 256).encode()


def test_tables_are_not_shared_between_methods() -> None:
    QueueDeclare().arguments["x"] = 1
    assert QueueDeclare().arguments == {}
