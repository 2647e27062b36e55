"""However the bytes of a broker are cut into reads, a client learns the same."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.client.scripted_client import result
from tests.unit.session.client import call, frame

from warren.wire import methods
from warren.wire.properties import BasicProperties

OPENED = (
    call(methods.ConnectionStart(version_major=0, version_minor=9, mechanisms="PLAIN", locales="en_US"), 0)
    + call(methods.ConnectionTune(channel_max=10, frame_max=4096, heartbeat=60), 0)
    + call(methods.ConnectionOpenOk(), 0)
    + call(methods.ChannelOpenOk())
    + call(methods.ConfirmSelectOk())
)


def delivery(tag: int, body: bytes, size: int) -> bytes:
    """A message whose body is in frames of `size` bytes."""
    method = methods.BasicDeliver(consumer_tag="c", delivery_tag=tag, exchange="x", routing_key="key")
    properties = BasicProperties(headers={"a": tag}, message_id="m")
    bodies = b"".join(frame(3, 1, body[at : at + size]) for at in range(0, len(body), size))
    return call(method) + frame(2, 1, properties.encode(len(body))) + bodies


SMALL = st.integers(0, 300)
PIECES = st.one_of(
    st.builds(delivery, SMALL, st.binary(max_size=60), st.integers(1, 70)),
    st.builds(lambda tag, multiple: call(methods.BasicAck(tag, multiple)), st.integers(0, 4), st.booleans()),
    st.builds(lambda tag: call(methods.BasicNack(delivery_tag=tag)), st.integers(0, 4)),
    st.sampled_from([
        call(methods.QueueDeclareOk(queue="q")), call(methods.BasicConsumeOk(consumer_tag="c")),
        call(methods.BasicCancel(consumer_tag="c")), frame(8, 0, b""),
        call(methods.ConnectionBlocked(reason="low on memory"), 0), call(methods.ConnectionUnblocked(), 0),
        call(methods.ChannelClose(reply_code=404, reply_text="NOT_FOUND")), call(methods.ChannelOpenOk()),
        call(methods.ChannelCloseOk()), call(methods.ConfirmSelectOk()),
        call(methods.ConnectionClose(reply_code=320, reply_text="bye"), 0),
        call(methods.ConnectionCloseOk(), 0),
        call(methods.BasicReturn(reply_code=312, reply_text="NO_ROUTE", routing_key="q"))
        + frame(2, 1, BasicProperties().encode(1)) + frame(3, 1, b"1"),
        frame(1, 1, b"\xff" * 20), b"\x01\0\1\xff\xff\xff\xff", frame(1, 7, b"abcd"),
    ]),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PIECES, max_size=8), st.lists(st.integers(0, 600), max_size=10))
def test_any_cuts_give_the_same_events(pieces: list[bytes], cuts: list[int]) -> None:
    data = OPENED + b"".join(pieces)
    assert result(data, *cuts) == result(data)


def test_single_bytes_give_the_same_events() -> None:
    answers = call(methods.QueueDeclareOk(queue="q")) + call(methods.BasicConsumeOk(consumer_tag="c"))
    data = OPENED + answers + delivery(1, b"abc", 1) + delivery(2, b"", 1) + delivery(3, b"abcd", 9)
    events, output, _ = whole = result(data)
    assert [event[0] for event in events] == [  # type: ignore[attr-defined]
        "opened", "answered", "answered", "answered", "delivered", "delivered", "delivered",
    ]  # fmt: skip
    assert output
    assert result(data, *range(len(data))) == whole
