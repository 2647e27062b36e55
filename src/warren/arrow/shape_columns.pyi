"""What `shape_columns.c` gives: only where Warren is compiled."""

from collections.abc import Callable

# How many values are null, which are there (a bit each), where texts end, and the octets of all values.
Column = tuple[int, bytes | None, bytes | None, bytes]

def decode(
    shapes: list[tuple[bytes, bytes]],
    wanted: int,
    others: Callable[[bytes], tuple[list[tuple[str, str | None]], str]],
    /,
) -> list[Column | None]:
    """Columns with an entry for each shape, in the order of `shapes.py`; then names and values of headers.

    None is a column whose bit is not `wanted`, or that is null in all. FrameError if a shape is cut short.
    """
