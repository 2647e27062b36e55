"""Output frames: few copies, and no frame larger than the client accepts."""

import pytest
from tests.unit.session.client import CountingWake, ReceivedMethod, parse

from warren.framing.outbox import Outbox
from warren.limits import OUTBOX_SIZE_MAX
from warren.model.message import BODY_END, Message, encode_address
from warren.wire.methods import BasicDeliver, BasicGetOk, ChannelOpenOk
from warren.wire.properties import BasicProperties

FRAME_SIZE_MAX = 4096


class Waiting:
    """A source of confirms; the outbox requests them when its contents are taken."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.asked = 0

    def flush(self) -> None:
        self.asked += 1
        self.outbox.method(1, ChannelOpenOk())


def made() -> tuple[Outbox, CountingWake]:
    output_listener = CountingWake()
    outbox = Outbox(output_listener)
    outbox.frame_size_max = FRAME_SIZE_MAX
    return outbox, output_listener


def published(body: bytes, **properties: object) -> Message:
    address = encode_address("ex", "k")
    return Message.compose(address, BasicProperties(**properties), body + BODY_END, now=0)


def sent(outbox: Outbox, message: Message, channel: int) -> list[ReceivedMethod]:
    """`message` as a delivery on `channel`."""
    whole = BasicDeliver("c", 7, False, "ex", "k").encode()
    before = whole[: -len(message.address)]
    head = b"\x01" + channel.to_bytes(2, "big") + len(whole).to_bytes(4, "big")
    outbox.content(channel, head + before, message, b"")
    return parse(b"".join(outbox.take()))


@pytest.mark.parametrize("size", [0, 1, 100, 4087, 4088, 4089, 8176, 8177, 50_000])
@pytest.mark.parametrize("channel", [3, 4])
def test_a_delivery_is_split_into_frames_that_the_client_accepts(size: int, channel: int) -> None:
    outbox, _ = made()
    body = bytes(at % 251 for at in range(size))
    [received] = sent(outbox, published(body, app_id="me"), channel)
    assert (received.channel, received.method) == (channel, BasicDeliver("c", 7, False, "ex", "k"))
    assert (received.properties, received.body) == (BasicProperties(app_id="me"), body)
    assert received.frames == -(-size // (FRAME_SIZE_MAX - 8))


def test_deliveries_with_different_properties_sizes_and_channels_are_encoded() -> None:
    outbox, _ = made()
    messages = [
        published(body, **properties)
        for properties in ({}, {"app_id": "me"}, {"app_id": "us"}, {"message_id": "long" * 30})
        for body in (b"", b"1", b"2", bytes(300), bytes(5000))
    ]
    messages = 3 * messages + messages[::-1] + [message for message in messages for _ in range(2)]
    for number, message in enumerate(messages):
        channel = 1 + number % 7 // 3 + 300 * (number % 5 // 4)
        [received] = sent(outbox, message, channel)
        assert (received.channel, received.body) == (channel, message.body)
        assert received.properties == message.properties()


def test_arguments_may_follow_the_address() -> None:
    outbox, _ = made()
    message = published(b"x")
    whole = BasicGetOk(1, False, "ex", "k", 9).encode()
    at = len(whole) - 4 - len(message.address)
    outbox.content(1, b"\x01\x00\x01" + len(whole).to_bytes(4, "big") + whole[:at], message, whole[-4:])
    [received] = parse(b"".join(outbox.take()))
    assert (received.method, received.body) == (BasicGetOk(1, False, "ex", "k", 9), b"x")


def test_the_listener_is_notified_once_until_output_is_taken() -> None:
    outbox, output_listener = made()
    for _ in range(3):
        outbox.method(1, ChannelOpenOk())
    assert output_listener.count == 1
    outbox.take()
    outbox.method(1, ChannelOpenOk())
    assert output_listener.count == 2


def test_pending_confirms_are_requested_when_output_is_taken() -> None:
    outbox, output_listener = made()
    waiting = Waiting(outbox)
    outbox.flush_later(waiting)
    outbox.raw(b"")
    assert (output_listener.count, waiting.asked) == (1, 0)
    assert len(parse(b"".join(outbox.take()))) == 1
    assert waiting.asked == 1
    assert outbox.take() == []


def test_an_outbox_is_full_at_its_bound_or_while_the_socket_is_blocked() -> None:
    outbox, _ = made()
    outbox.raw(bytes(OUTBOX_SIZE_MAX - 1))
    assert not outbox.is_full()
    outbox.raw(b"x")
    assert outbox.is_full()
    outbox.take()
    assert not outbox.is_full()
    outbox.is_paused = True
    assert outbox.is_full()


def test_paused_consumers_are_returned_once_each() -> None:
    outbox, _ = made()
    one, two = object(), object()
    for subscriber in (one, two, one):
        outbox.wait_for_room(subscriber)
    assert outbox.take_held_back() == [one, two]
    assert outbox.take_held_back() == []


def test_pending_and_total_bytes_are_counted() -> None:
    outbox, _ = made()
    outbox.raw(b"12345")
    outbox.take()
    outbox.raw(b"123")
    assert (outbox.size, outbox.total) == (3, 8)


def test_a_large_body_is_passed_to_the_socket_without_copying() -> None:
    outbox, _ = made()
    outbox.frame_size_max = 131_072
    message = published(bytes(20_000))
    outbox.raw(b"before")
    outbox.content(1, b"head", message, b"")
    outbox.raw(b"after")
    chunks = outbox.take()
    assert chunks[1] is message.content
    assert len(chunks) == 3
    middle = 8 + 12 + len(message.property_list) + 8
    assert len(b"".join(chunks)) == 6 + 4 + len(message.address) + middle + len(message.content) + 5


def test_a_body_in_several_frames_is_not_copied() -> None:
    outbox, _ = made()
    outbox.frame_size_max = 131_072
    message = published(bytes(300_000))
    outbox.content(1, b"head", message, b"")
    parts = [chunk for chunk in outbox.take() if isinstance(chunk, memoryview)]
    assert [len(part) for part in parts] == [131_064, 131_064, 37_872]
    assert all(part.obj is message.content for part in parts)


def test_small_output_leaves_as_one_chunk() -> None:
    outbox, _ = made()
    for _ in range(1000):
        outbox.content(1, b"head", published(b"abc"), b"")
    assert len(outbox.take()) == 1
