"""Counting deliveries in a byte stream, cut at any place; unexpected frames are detected."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.cli.perf.delivery_counter import DeliveryCounter, Misaligned, delivery_length
from warren.wire.methods import BasicDeliver, ChannelClose
from warren.wire.properties import BasicProperties


def frame(kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"


def delivery(tag: int, body: bytes, step: int = 100) -> bytes:
    method = BasicDeliver(consumer_tag="c0000001", delivery_tag=tag, exchange="x", routing_key="key")
    data = frame(1, method.encode()) + frame(2, BasicProperties(delivery_mode=2).encode(len(body)))
    return data + b"".join(frame(3, body[at : at + step]) for at in range(0, len(body), step))


def stream(count: int, size: int = 16) -> bytes:
    return b"".join(delivery(tag, bytes(size)) for tag in range(1, count + 1))


@pytest.mark.parametrize("size", [0, 1, 100, 101, 1000])
def test_the_length_of_a_delivery_is_known_once_it_is_complete(size: int) -> None:
    data = delivery(1, bytes(size))
    assert delivery_length(data + b"more") == len(data)
    assert all(delivery_length(data[:cut]) == 0 for cut in range(len(data)))


@given(st.lists(st.integers(1, 400), max_size=40), st.integers(0, 250))
def test_deliveries_are_counted_wherever_the_stream_is_cut(cuts: list[int], size: int) -> None:
    data = stream(30, size)
    counter = DeliveryCounter()
    at = 0
    for cut in [*cuts, len(data)]:
        piece = memoryview(data)[at : at + cut]
        if piece:
            assert counter.feed(piece) == counter.total
        at += cut
    assert counter.total == 30
    assert counter.offset == 0


def test_the_body_is_found() -> None:
    data = delivery(1, b"body")
    counter = DeliveryCounter()
    counter.feed(memoryview(data))
    assert data[counter.body_at :].startswith(b"body")


def test_an_incomplete_delivery_is_not_counted() -> None:
    counter = DeliveryCounter()
    assert counter.feed(memoryview(stream(3)[:-1])) == 2
    assert counter.offset == len(delivery(3, bytes(16))) - 1


def test_a_close_between_deliveries_is_detected() -> None:
    closing = frame(1, ChannelClose(reply_code=406, reply_text="no").encode())
    counter = DeliveryCounter()
    counter.feed(memoryview(stream(3)))
    with pytest.raises(Misaligned) as caught:
        counter.feed(memoryview(b"".join(delivery(tag, bytes(16)) for tag in (4, 5)) + closing + bytes(100)))
    assert caught.value.data.startswith(closing)


def test_a_missing_delivery_is_detected_by_its_tag() -> None:
    counter = DeliveryCounter()
    counter.feed(memoryview(stream(3)))
    with pytest.raises(Misaligned):
        counter.feed(memoryview(delivery(5, bytes(16))))


def test_an_unexpected_frame_at_the_beginning_is_detected() -> None:
    with pytest.raises(Misaligned):
        DeliveryCounter().feed(memoryview(frame(1, ChannelClose(reply_code=404, reply_text="no").encode())))
