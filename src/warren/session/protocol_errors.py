"""Reply texts of close methods, and the errors for misplaced frames, as measured on RabbitMQ 3.10.8."""

from warren.errors import AmqpError, FrameError, UnexpectedFrame
from warren.limits import NAME_SIZE_MAX
from warren.wire.erlang import frame_bytes
from warren.wire.frames import BODY, HEADER, METHOD

_ELLIPSIS = b"..."
# Class, weight and body size of a content header.
_HEADER_SIZE_MIN = 12


def close_text(error: AmqpError) -> str:
    """The reply-text for `error`, cut to 255 bytes."""
    text = error.reply_text.encode("utf-8", "surrogateescape")
    if len(text) <= NAME_SIZE_MAX:
        return error.reply_text
    return (text[: NAME_SIZE_MAX - len(_ELLIPSIS)] + _ELLIPSIS).decode("utf-8", "ignore")


def too_early(kind: int, payload: bytes) -> AmqpError:
    """The error for a frame other than a method on a channel that is not open."""
    error = unexpected_frame_error(kind, payload)
    if isinstance(error, UnexpectedFrame):
        return UnexpectedFrame("expected method frame, got non method frame instead", method_index=0)
    return error


def unexpected_frame_error(kind: int, payload: bytes) -> AmqpError:
    """The error for a frame that is malformed, or not expected on its channel."""
    text = frame_bytes(kind, payload)
    is_cut = kind == HEADER and len(payload) < _HEADER_SIZE_MIN
    if kind not in (METHOD, HEADER, BODY) or is_cut:
        return FrameError(f"{text}: unknown_frame", method_index=0)
    return UnexpectedFrame(text, method_index=0)
