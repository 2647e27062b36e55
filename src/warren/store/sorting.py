"""Sorts the recovered messages of a queue by position, if they were not written in that order.

The order breaks in few places, since messages are copied a segment at a time: sorted runs are merged in pairs
until one is left.
"""

from warren.model.column import Column

# Positions, locations, and sizes of the bodies.
Columns = tuple[Column, Column, Column]


def in_order(positions: Column, locations: Column, sizes: Column) -> Columns:
    """The columns sorted by position; of two rows with the same position the later one is kept."""
    columns = (positions, locations, sizes)
    while True:
        rows = _rows(columns[0])
        if len(rows) == 1:
            return columns
        columns = _merged(columns, rows)


def _rows(positions: Column) -> list[tuple[int, int]]:
    """The sorted runs of `positions` as (first index, end index)."""
    rows = []
    first = 0
    for index in range(1, positions.count):
        if positions.get(index) <= positions.get(index - 1):
            rows.append((first, index))
            first = index
    rows.append((first, positions.count))
    return rows


def _merged(columns: Columns, rows: list[tuple[int, int]]) -> Columns:
    """The columns with each pair of `rows` merged into one sorted run."""
    merged = (Column(), Column(), Column())
    for at in range(0, len(rows), 2):
        early = rows[at]
        _merge(columns, early, rows[at + 1] if at + 1 < len(rows) else (early[1], early[1]), merged)
    return merged


def _merge(columns: Columns, early: tuple[int, int], late: tuple[int, int], merged: Columns) -> None:
    """Append two sorted runs of `columns`, the second of which was written later, to `merged` as one."""
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
