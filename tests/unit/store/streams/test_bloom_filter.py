"""Bloom filters of the filter values of chunks: no false negatives, few false positives."""

import random

import pytest
from tests.unit.queues.samples import sent

from warren.limits import STREAM_BLOOM_BITS, STREAM_BLOOM_FILTERS_MAX
from warren.store.streams.bloom_filter import (
    BloomFilterCache,
    FilterMatcher,
    bloom_bits,
    bloom_filter_of,
    filter_value,
)
from warren.store.streams.chunk import Chunk, ChunkBuilder, read_head

ONLY = {"has_unfiltered": False}


def chunk(*values: object, first: int = 0) -> Chunk:
    """A chunk whose messages have these filter values."""
    builder = ChunkBuilder(first)
    for value in values:
        headers = {"room": 7} if value is None else {"room": 7, "x-stream-filter-value": value}
        builder.add(sent(b"body", headers=headers))
    data = builder.encode(1, 2, 0)
    head = read_head(data, 0, 1, 2)
    assert head is not None
    return Chunk(data, 0, head)


@pytest.mark.parametrize(
    ("values", "wanted", "unfiltered", "may_be"),
    [
        (["eu", "us"], ["us"], False, True),
        (["eu", "us"], ["apac", "eu"], False, True),
        (["eu", "us"], ["apac"], False, False),
        (["eu", "us"], ["apac"], True, False),
        (["eu", None], ["apac"], True, True),
        (["eu", None], ["apac"], False, False),
        ([None], ["eu"], False, False),
        ([None], ["eu"], True, True),
        # RabbitMQ treats an empty value as none.
        ([""], ["eu"], True, True),
        ([None], [""], False, True),
        (["z\u00fcrich", "\udcff"], ["\udcff"], False, True),
        # A value that is not a string does not count as a filter value.
        ([5], ["5"], True, False),
    ],
)
def test_a_filter_contains_the_values_of_its_messages(
    values: list[object], wanted: list[str], unfiltered: bool, may_be: bool
) -> None:
    bloom_filter = bloom_filter_of(chunk(*values))
    assert FilterMatcher(wanted, has_unfiltered=unfiltered).may_match(bloom_filter) is may_be


def test_every_value_is_found_and_few_others_are() -> None:
    chance = random.Random(5)
    values = {f"customer-{chance.randrange(10**9)}" for _ in range(150)}
    others = [f"other-{chance.randrange(10**9)}" for _ in range(2_000)]
    there = sorted(values)[:50]
    bloom_filter = bloom_filter_of(chunk(*there))
    assert all(FilterMatcher([value], **ONLY).may_match(bloom_filter) for value in there)
    assert sum(FilterMatcher([value], **ONLY).may_match(bloom_filter) for value in others) < 20
    assert bloom_filter.bit_length() <= STREAM_BLOOM_BITS


def test_no_value_has_the_bit_of_messages_without_a_value() -> None:
    assert not any(bloom_bits(f"v{number}") & 1 for number in range(20_000))


def test_a_header_that_resembles_a_filter_value_is_not_one() -> None:
    assert filter_value(sent(b"", headers={"a": "x-stream-filter-value"}).property_list) is None
    assert filter_value(sent(b"", headers={"a": b"\x15x-stream-filter-valueS"}).property_list) is None


def noted(bloom_filters: BloomFilterCache, first: int, value: str, *, stream: int = 7) -> None:
    """Note that two messages from `first` on have the filter value `value`."""
    found = chunk(value, value, first=first)
    bloom_filters.note(stream, found, bloom_filter_of(found))


def test_equal_adjacent_chunks_are_one_run() -> None:
    bloom_filters = BloomFilterCache()
    eu, us = bloom_bits("eu"), bloom_bits("us")
    for first in (0, 2, 4):
        noted(bloom_filters, first, "eu")
    noted(bloom_filters, 6, "us")
    noted(bloom_filters, 8, "eu")
    assert [bloom_filters.of(7, first) for first in (0, 2, 6, 8)] == [(6, eu), None, (8, us), (10, eu)]
    # A run of another stream, and one that is already known.
    noted(bloom_filters, 10, "eu", stream=8)
    noted(bloom_filters, 0, "eu")
    assert [bloom_filters.of(7, 0), bloom_filters.of(8, 10)] == [(6, eu), (12, eu)]


def test_a_reader_that_begins_within_a_run_knows_the_rest_of_it() -> None:
    bloom_filters = BloomFilterCache()
    for first in (4, 6):
        noted(bloom_filters, first, "eu")
    for first in (0, 2):
        noted(bloom_filters, first, "eu")
    assert (bloom_filters.of(7, 0), bloom_filters.of(7, 4)) == ((4, bloom_bits("eu")), (8, bloom_bits("eu")))
    for first in (6, 2, 8):
        noted(bloom_filters, first, "eu")
    found, at = [], 0
    while (known := bloom_filters.of(7, at)) is not None:
        at = known[0]
        found.append(at)
    assert found[-1] == 10


def test_notes_in_any_order_are_correct() -> None:
    chance = random.Random(11)
    for _ in range(200):
        values = [chance.choice(("eu", "us")) for _ in range(12)]
        bloom_filters = BloomFilterCache()
        for _ in range(60):
            at = chance.randrange(12)
            noted(bloom_filters, 2 * at, values[at])
            for first in range(12):
                known = bloom_filters.of(7, 2 * first)
                if known is not None:
                    assert {bloom_bits(value) for value in values[first : known[0] // 2]} == {known[1]}


def test_the_number_of_runs_is_bounded() -> None:
    bloom_filters = BloomFilterCache()
    for stream in range(STREAM_BLOOM_FILTERS_MAX):
        noted(bloom_filters, 0, "eu", stream=stream)
    assert bloom_filters.of(0, 0) == (2, bloom_bits("eu"))
    noted(bloom_filters, 0, "eu", stream=STREAM_BLOOM_FILTERS_MAX)
    assert bloom_filters.of(1, 0) is None
    # Evicted runs are not extended.
    noted(bloom_filters, 2, "eu", stream=1)
    assert (bloom_filters.of(1, 0), bloom_filters.of(1, 2)) == (None, (4, bloom_bits("eu")))
    assert bloom_filters.of(0, 0) == (2, bloom_bits("eu"))
