"""The fuzz target of the client engine: whatever a broker sends, a client ends in order and learns the same
however it is cut.
"""

from itertools import accumulate, repeat

from tests.fuzz.broker import call, frame
from tests.fuzz.sessions import framed, unframed
from tests.unit.client.scripted_client import CALLS, result

from warren.wire import methods
from warren.wire.properties import BasicProperties

START = methods.ConnectionStart(version_major=0, version_minor=9, mechanisms="PLAIN", locales="en_US")
TUNE = methods.ConnectionTune(channel_max=10, frame_max=4096, heartbeat=60)
OPENED = call(START, 0) + call(TUNE, 0) + call(methods.ConnectionOpenOk(), 0) + call(methods.ChannelOpenOk())
CALLED = b"".join(call(answer()) for _, answer in CALLS)


def check_client_session(data: bytes) -> None:
    """The first byte selects how the rest is sent: as bytes or as frames, in pieces, before or after the
    handshake and the calls.
    """
    if not data:
        return
    mode, raw = data[0], data[1:]
    if mode & 1:
        raw = framed(raw)
    if mode & 2:
        raw = OPENED + (CALLED if mode & 4 else b"") + raw
    whole = result(raw)
    size = mode // 8 + 1
    assert result(raw, *accumulate(repeat(size, len(raw) // size))) == whole
    events = whole[0]
    assert isinstance(events, list)
    contents = sum(len(event[3]) for event in events if event[0] in ("delivered", "returned"))
    assert contents <= len(raw)


def client_session_seeds() -> list[bytes]:
    """Answers, deliveries, confirms, returns and closes, as frames and as bytes."""
    deliver = methods.BasicDeliver(consumer_tag="c", delivery_tag=1, exchange="x", routing_key="k")
    header = BasicProperties(headers={"a": [1, {"b": b"\xff"}]}, message_id="m", delivery_mode=2)
    returned = methods.BasicReturn(reply_code=312, reply_text="NO_ROUTE", exchange="x", routing_key="k")
    content = frame(2, 1, header.encode(5)) + frame(3, 1, b"abc") + frame(3, 1, b"de")
    deeds = [
        call(deliver) + content + call(deliver) + frame(2, 1, BasicProperties().encode(0)),
        call(returned) + content,
        call(methods.BasicAck(2, True)) + call(methods.BasicNack(3)) + call(methods.BasicAck(9)),
        call(methods.BasicCancel("c")) + call(methods.ChannelFlow(True)) + frame(8, 0, b""),
        call(methods.ConnectionBlocked("memory"), 0) + call(methods.ConnectionUnblocked(), 0),
        call(methods.ChannelCloseOk()) + call(methods.ChannelOpenOk()) + CALLED,
        call(methods.ChannelClose(404, "NOT_FOUND")) + call(methods.ChannelOpenOk()) + CALLED,
        call(methods.ConnectionClose(320, "CONNECTION_FORCED"), 0),
        call(methods.ConnectionCloseOk(), 0),
    ]
    raw = [bytes((mode,)) + deed for deed in deeds for mode in (6, 30)]
    handshakes = [b"\0" + OPENED + CALLED + deeds[0], b"\0" + call(START, 0) + deeds[-2]]
    return [*raw, *handshakes, *[b"\x07" + unframed(deed) for deed in deeds]]
