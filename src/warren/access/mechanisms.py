"""The SASL mechanisms: reads the credentials from a client's response (RFC 4422, RFC 4616).

A malformed response has an error of its own, as in RabbitMQ (3.10.8, measured).
"""

from collections.abc import Callable

from warren.errors import AmqpError, AmqpSyntaxError
from warren.wire.erlang import bytes_printed
from warren.wire.table import decode_table

PLAIN = "PLAIN"
AMQPLAIN = "AMQPLAIN"
EXTERNAL = "EXTERNAL"

_NUL = b"\0"


def _plain(response: bytes) -> tuple[str, str]:
    # RFC 4616 without an authorisation identity: NUL user NUL password.
    parts = response.split(_NUL)
    if len(parts) != 3 or parts[0]:
        raise AmqpSyntaxError(f"response {bytes_printed(response)} invalid")
    return _text(parts[1]), _text(parts[2])


def _amqplain(response: bytes) -> tuple[str, str]:
    """Read an AMQPLAIN response: a field table without its size, with the fields LOGIN and PASSWORD."""
    try:
        table = decode_table(response, 0, len(response))
    except AmqpError:
        raise AmqpSyntaxError("AMQPLAIN auth info is no field table") from None
    name, password = table.get("LOGIN"), table.get("PASSWORD")
    if not isinstance(name, str) or not isinstance(password, str):
        raise AmqpSyntaxError("AMQPLAIN auth info is missing LOGIN or PASSWORD field")
    return name, password


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


# The mechanisms that send a name and a password; with EXTERNAL the certificate names the user.
READERS: dict[str, Callable[[bytes], tuple[str, str]]] = {PLAIN: _plain, AMQPLAIN: _amqplain}
