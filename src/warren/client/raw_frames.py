"""Method frames for loops that read and write a socket themselves, without a `ClientConnection`."""

import struct

from warren.client.errors import BrokerRefused, malformed
from warren.errors import AmqpError
from warren.limits import FRAME_OVERHEAD
from warren.wire.frames import METHOD
from warren.wire.method import Method
from warren.wire.methods import BasicReturn, ChannelClose, ConnectionClose, decode_method

_HEAD = struct.Struct(">BHI")
_END = b"\xce"


def method_frame(channel: int, method: Method) -> bytes:
    """Return the frame of `method`."""
    payload = method.encode()
    return _HEAD.pack(METHOD, channel, len(payload)) + payload + _END


def decoded(payload: bytes) -> Method:
    """Decode a method that the broker sent. Raises BrokerRefused if it is not one of AMQP 0-9-1."""
    try:
        return decode_method(payload)
    except AmqpError as error:
        raise malformed(str(error)) from None


def closed(method: ConnectionClose | ChannelClose) -> BrokerRefused:
    """Return a close of the broker as an exception."""
    return BrokerRefused(f"the broker answered {method.reply_code} {method.reply_text}", method.reply_code)


def reason(data: bytes) -> str:
    """Describe unexpected frames in `data`: the reason of a close or return, or the name of the method."""
    at = 0
    while len(data) >= at + FRAME_OVERHEAD:
        kind, _, size = _HEAD.unpack_from(data, at)
        if kind == METHOD and len(data) >= at + FRAME_OVERHEAD + size:
            method = decoded(data[at + _HEAD.size : at + _HEAD.size + size])
            if isinstance(method, ConnectionClose | ChannelClose):
                return str(closed(method))
            if isinstance(method, BasicReturn):
                place = f"exchange {method.exchange!r}, routing key {method.routing_key!r}"
                return f"the broker returned a message: {method.reply_code} {method.reply_text} ({place})"
            return f"the broker sent an unexpected {method.name}"
        at += FRAME_OVERHEAD + size
    return f"the broker sent unexpected bytes: {data[:40].hex(' ')}"
