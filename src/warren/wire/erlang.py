"""Formats bytes as Erlang prints them, because RabbitMQ's error texts quote them."""

from warren.wire.strings import decode_text

# A reply-text has at most 255 bytes, and each byte prints as one or more: the rest would be cut off.
_BYTES_MAX = 256
_SNIPPET = 16

# `~p` breaks a list of numbers so that a line has 79 columns, or 81 if it is the last.
_COLUMNS = 79
_COLUMNS_LAST = 81
_COLUMNS_OF_TUPLE = 78

_NAMED = {
    8: b"\\b",
    9: b"\\t",
    10: b"\\n",
    11: b"\\v",
    12: b"\\f",
    13: b"\\r",
    27: b"\\e",
    34: b'\\"',
    92: b"\\\\",
}


def bytes_written(data: bytes) -> str:
    """`data` as `~w` writes them: `<<0,69,88>>`."""
    return "<<" + ",".join(map(str, data[:_BYTES_MAX])) + ">>"


def bytes_printed(data: bytes, column: int = 0) -> str:
    """`data` as `~p` prints them in `column`: as text if they can be, else as numbers in lines."""
    shown = data[:_BYTES_MAX]
    if shown and all(octet in _NAMED or 32 <= octet <= 126 or octet >= 160 for octet in shown):
        escaped = b"".join(_NAMED.get(octet, bytes((octet,))) for octet in shown)
        return f'<<"{decode_text(escaped)}">>'
    indent = column + len("<<")
    lines = [""]
    for place, octet in enumerate(shown, 1):
        is_last = place == len(shown)
        piece = f"{octet}," if not is_last else f"{octet}>>"
        if indent + len(lines[-1]) + len(piece) > (_COLUMNS_LAST if is_last else _COLUMNS):
            lines.append("")
        lines[-1] += piece
    return "<<" + ("\n" + " " * indent).join(lines) + ("" if shown else ">>")


def frame_bytes(frame_type: int, payload: bytes) -> str:
    """Describe a frame in RabbitMQ's words: `type 5, all bytes = <<"abc">>`."""
    share = "all" if len(payload) <= _SNIPPET else f"first {_SNIPPET}"
    start = f"type {frame_type}, {share} octets = "
    return start + bytes_printed(payload[:_SNIPPET], len(start))


def pair_printed(before: str, name: str, number: int) -> str:
    """Append the pair to `before` as `~p` prints it: in two lines if it does not fit into one."""
    column = len(before) - 1 - before.rfind("\n")
    pair = f"{{{name},{number}}}"
    if column + len(pair) > _COLUMNS_OF_TUPLE:
        pair = pair.replace(",", ",\n" + " " * (column + 1))
    return before + pair
