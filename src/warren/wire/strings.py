"""Strings (0-9-1 §4.2.5.3): arbitrary bytes as str, with surrogates for bytes that are not UTF-8."""

from warren.errors import AmqpSyntaxError
from warren.limits import NAME_SIZE_MAX

_ERRORS = "surrogateescape"


def decode_text(octets: bytes) -> str:
    """Decode `octets` to a str that is unique to them."""
    return octets.decode("utf-8", _ERRORS)


def encode_text(text: str) -> bytes:
    """Encode `text`, reversing `decode_text`."""
    try:
        return text.encode("utf-8", _ERRORS)
    except UnicodeEncodeError:
        raise AmqpSyntaxError(f"text {text!r} has no octets") from None


def encode_short_string(text: str) -> bytes:
    """Encode `text`, preceded by its size in one byte."""
    octets = encode_text(text)
    if len(octets) > NAME_SIZE_MAX:
        raise AmqpSyntaxError(f"short string of {len(octets)} octets is longer than {NAME_SIZE_MAX}")
    return bytes((len(octets),)) + octets


def encode_long_string(text: str) -> bytes:
    """Encode `text`, preceded by its size in four bytes."""
    octets = encode_text(text)
    return len(octets).to_bytes(4, "big") + octets
