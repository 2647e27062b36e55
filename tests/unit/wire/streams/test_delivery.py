"""Delivered chunks as RabbitMQ encodes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stream_delivery import decode_deliver, encode_deliver

from warren.wire.streams.codes import MalformedFrame
from warren.wire.streams.delivery import DeliverFrame


@given(st.integers(0, 255), st.integers(0, 2**63), st.integers(0, 2**60), st.lists(st.binary(max_size=50)))
def test_a_delivery_is_decoded_as_it_was_encoded(subscription, first, time, messages):
    sent = DeliverFrame(subscription=subscription, first=first, time=time, epoch=1, messages=messages)
    frame = encode_deliver(sent)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert decode_deliver(frame[4:]) == sent


def test_a_transcript_of_rabbitmq_is_decoded():
    """RabbitMQ declares a trailer of 13 bytes, which it does not send; Warren's chunks have none."""
    recorded = (
        b"\0\x08\0\1\1P\0\0\2\0\0\0\2\0\0\x01\xa2\0\x8a,\xb8\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0c\x7f\xa8I"
        b"\0\0\0\x14\0\0\0\r\0\0\0\0\0\0\0\6\0Su\xa0\1a\0\0\0\6\0Su\xa0\1b"
    )
    found = decode_deliver(recorded)
    assert found.messages == [b"\0Su\xa0\1a", b"\0Su\xa0\1b"]
    assert encode_deliver(found)[4:] == recorded.replace(b"\0\0\0\r", b"\0\0\0\0")


@pytest.mark.parametrize("at", [5, 6, 37, 41, 53, 58])
def test_damage_is_detected(at):
    frame = bytearray(
        encode_deliver(DeliverFrame(subscription=1, first=0, time=0, epoch=1, messages=[b"abc"]))
    )
    frame[4 + at] ^= 1
    with pytest.raises(MalformedFrame):
        decode_deliver(bytes(frame[4:]))
