"""Puts what was found of a lane in order of positions, when not all of it was written in that order.

There are few places where the order breaks, since messages are copied a segment at a time: rows that are in
order are merged, in pairs, until one is left.
"""

from warren.model.column import Column

# Positions, where they lie, and the sizes of their bodies.
Columns = tuple[Column, Column, Column]


def in_order(positions: Column, locations: Column, sizes: Column) -> Columns:
    """The columns by position; of what was written twice, the later counts."""
    columns = (positions, locations, sizes)
    while True:
        rows = _rows(columns[0])
        if len(rows) == 1:
            return columns
        columns = _merged(columns, rows)


def _rows(positions: Column) -> list[tuple[int, int]]:
    """The stretches of `positions` that are in order: (first index, behind the last)."""
    rows = []
    first = 0
    for index in range(1, positions.count):
        if positions.get(index) <= positions.get(index - 1):
            rows.append((first, index))
            first = index
    rows.append((first, positions.count))
    return rows


def _merged(columns: Columns, rows: list[tuple[int, int]]) -> Columns:
    """The same with each two of `rows` made one."""
    merged = (Column(), Column(), Column())
    for at in range(0, len(rows), 2):
        early = rows[at]
        _merge(columns, early, rows[at + 1] if at + 1 < len(rows) else (early[1], early[1]), merged)
    return merged


def _merge(columns: Columns, early: tuple[int, int], late: tuple[int, int], merged: Columns) -> None:
    """Append two rows of `columns`, of which the second was written later, to `merged` as one."""
    positions, locations, sizes = columns
    merged_positions, merged_locations, merged_sizes = merged
    left, left_end = early
    right, right_end = late
    while left < left_end or right < right_end:
        if right == right_end or (left < left_end and positions.get(left) < positions.get(right)):
            index = left
            left += 1
        else:
            if left < left_end and positions.get(left) == positions.get(right):
                left += 1
            index = right
            right += 1
        merged_positions.append(positions.get(index))
        merged_locations.append(locations.get(index))
        merged_sizes.append(sizes.get(index))
