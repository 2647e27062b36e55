"""A growing array of 64-bit numbers."""

import random

import pytest

from warren.model.column import Column

LARGEST = 2**64 - 1


def column_of(numbers: list[int]) -> Column:
    column = Column()
    for number in numbers:
        column.append(number)
    return column


def test_numbers_of_64_bits_are_read_as_they_were_written() -> None:
    column = column_of([0, LARGEST, 7])
    assert [column.get(place) for place in range(column.count)] == [0, LARGEST, 7]
    column.put(1, 2**63)
    assert list(column.numbers()) == [0, 2**63, 7]


def test_a_number_out_of_range_is_refused() -> None:
    column = Column()
    for number in (-1, LARGEST + 1):
        with pytest.raises(OverflowError):
            column.append(number)
    assert column.count == 0


@pytest.mark.parametrize("count", [0, 1, 8, 9, 1_000, 100_000])
def test_a_column_grows(count: int) -> None:
    chance = random.Random(count)
    expected = [chance.randrange(LARGEST) for _ in range(count)]
    column = column_of(expected)
    assert column.count == count
    assert list(column.numbers()) == expected
    assert list(column.numbers(count // 2)) == expected[count // 2 :]
    assert [column.get(place) for place in range(count)] == expected


def test_truncated_entries_are_gone_and_their_space_is_reused() -> None:
    column = column_of(list(range(20)))
    column.cut(5)
    assert list(column.numbers()) == [0, 1, 2, 3, 4]
    column.append(99)
    assert list(column.numbers()) == [0, 1, 2, 3, 4, 99]
    with pytest.raises(IndexError):
        column.cut(7)


def test_an_index_behind_the_end_is_refused() -> None:
    column = column_of([1, 2])
    with pytest.raises(IndexError):
        column.get(2)
    with pytest.raises(IndexError):
        column.put(2, 5)
    with pytest.raises(IndexError):
        Column().get(0)


def test_a_slice_does_not_change() -> None:
    column = column_of([1, 2])
    before = column.numbers()
    column.put(0, 9)
    column.append(3)
    assert list(before) == [1, 2]


def test_two_columns_share_no_data() -> None:
    first, second = column_of([1]), column_of([2])
    assert (first.get(0), second.get(0)) == (1, 2)
