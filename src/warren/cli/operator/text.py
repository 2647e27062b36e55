"""Values as text for a terminal: in columns, and without anything that a terminal would obey."""

import json
import unicodedata
from collections.abc import Iterable, Sequence

# Categories of characters that move the cursor, turn the direction of writing, or cannot be written at all.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_NO_WIDTH = frozenset(("Mn", "Me"))
_GAP = "  "


def escaped(text: str) -> str:
    """`text` with control characters written as what they are: a name is what a client chose."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) for character in text)


def cell_text(value: object) -> str:
    """One value in one cell."""
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
    """The places that `text` takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(_places(character) for character in text)


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """A line for each row, its cells below those of the row before."""
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
