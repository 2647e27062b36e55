"""Strings (0-9-1 §4.2.5.3): arbitrary bytes as str, with surrogates for bytes that are not UTF-8."""

from warren.errors import AmqpSyntaxError
from warren.limits import NAME_SIZE_MAX

_ERRORS = "surrogateescape"


def decode_text(data: bytes) -> str:
    """Decode `data` to a str that is unique to them."""
    return data.decode("utf-8", _ERRORS)


def encode_text(text: str) -> bytes:
    """Encode `text`, reversing `decode_text`."""
    try:
        return text.encode("utf-8", _ERRORS)
    except UnicodeEncodeError:
        raise AmqpSyntaxError(f"text {text!r} cannot be encoded") from None


def encode_short_string(text: str) -> bytes:
    """Encode `text`, preceded by its size in one byte."""
    data = encode_text(text)
    if len(data) > NAME_SIZE_MAX:
        raise AmqpSyntaxError(f"short string of {len(data)} bytes is longer than {NAME_SIZE_MAX}")
    return bytes((len(data),)) + data


def encode_long_string(text: str) -> bytes:
    """Encode `text`, preceded by its size in four bytes."""
    data = encode_text(text)
    return len(data).to_bytes(4, "big") + data
