"""Octets the way Erlang prints them, because RabbitMQ's error texts quote them."""

# A reply-text holds 255 octets and each octet prints as one or more: the rest would be cut off anyway.
_OCTETS_MAX = 256

_NAMED = {8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 27: r"\e", 34: r"\"", 92: r"\\"}


def octets_written(data: bytes) -> str:
    """`data` as `~w` writes it: `<<0,69,88>>`."""
    return "<<" + ",".join(map(str, data[:_OCTETS_MAX])) + ">>"


def octets_printed(data: bytes) -> str:
    """`data` as `~p` prints it: `<<"abc">>` when every octet is printable Latin-1, else as `~w`."""
    shown = data[:_OCTETS_MAX]
    if not shown or not all(octet in _NAMED or 32 <= octet <= 126 or octet >= 160 for octet in shown):
        return octets_written(shown)
    return '<<"' + "".join(_NAMED.get(octet, chr(octet)) for octet in shown) + '">>'
