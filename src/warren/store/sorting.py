"""Puts what was found of a lane in order of positions, when not all of it was written in that order.

There are few places where the order breaks, since messages are copied a segment at a time: rows that are in
order are merged, in pairs, until one is left.
"""

from array import array

# Positions, where they lie, and the sizes of their bodies.
Columns = tuple["array[int]", "array[int]", "array[int]"]


def in_order(positions: "array[int]", locations: "array[int]", sizes: "array[int]") -> Columns:
    """The columns by position; of what was written twice, the later counts."""
    columns = (positions, locations, sizes)
    while True:
        rows = _rows(columns[0])
        if len(rows) == 1:
            return columns
        columns = _merged(columns, rows)


def _rows(positions: "array[int]") -> list[tuple[int, int]]:
    """The stretches of `positions` that are in order: (first index, behind the last)."""
    rows = []
    first = 0
    for index in range(1, len(positions)):
        if positions[index] <= positions[index - 1]:
            rows.append((first, index))
            first = index
    rows.append((first, len(positions)))
    return rows


def _merged(columns: Columns, rows: list[tuple[int, int]]) -> Columns:
    """The same with each two of `rows` made one."""
    merged = (array("Q"), array("Q"), array("I"))
    for at in range(0, len(rows), 2):
        if at + 1 < len(rows):
            _merge(columns, rows[at], rows[at + 1], merged)
        else:
            first, end = rows[at]
            for source, target in zip(columns, merged, strict=True):
                target.extend(source[first:end])
    return merged


def _merge(columns: Columns, early: tuple[int, int], late: tuple[int, int], merged: Columns) -> None:
    """Append two rows of `columns`, of which the second was written later, to `merged` as one."""
    positions, locations, sizes = columns
    left, left_end = early
    right, right_end = late
    while left < left_end or right < right_end:
        if right == right_end or (left < left_end and positions[left] < positions[right]):
            index = left
            left += 1
        else:
            if left < left_end and positions[left] == positions[right]:
                left += 1
            index = right
            right += 1
        merged[0].append(positions[index])
        merged[1].append(locations[index])
        merged[2].append(sizes[index])
