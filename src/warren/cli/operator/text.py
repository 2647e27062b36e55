"""Formats values for a terminal: in columns, and without control characters."""

import json
import unicodedata
from collections.abc import Iterable, Sequence

# Unicode categories of characters that move the cursor, change the direction of text, or cannot be encoded.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_NO_WIDTH = frozenset(("Mn", "Me"))
_GAP = "  "


def escaped(text: str) -> str:
    """Return `text` with control characters escaped, since names are chosen by clients."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) for character in text)


def cell_text(value: object) -> str:
    """Format one value for a cell of a table."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case str():
            return escaped(value)
        case list() if not any(isinstance(item, dict | list) for item in value):
            return ",".join(map(cell_text, value))
        case dict() | list():
            return escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        case _:
            return str(value)


def width(text: str) -> int:
    """Return the number of terminal columns that `text` takes."""
    if text.isascii():
        return len(text)
    return sum(_places(character) for character in text)


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Format rows as lines with aligned columns."""
    cells = list(rows)
    if not cells:
        return []
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [_line(row, widths) for row in cells]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (places - width(cell)) for cell, places in zip(row, widths, strict=True))
    return _GAP.join(padded).rstrip()


def _places(character: str) -> int:
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _escape(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
