"""Percentiles are those of the sorted values, to better than one percent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.cli.perf.histogram import Histogram, bucket_of, value_of

VALUES = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


def test_the_percentiles_of_an_empty_histogram_are_zero() -> None:
    assert Histogram().percentile(99) == 0


def test_small_values_are_exact() -> None:
    histogram = Histogram(range(1, 101))
    assert [histogram.percentile(p) for p in (0, 50, 95, 99, 99.9, 100)] == [1, 50, 95, 99, 100, 100]
    assert (len(histogram), histogram.value_max) == (100, 100)


def test_a_negative_time_is_counted_as_zero() -> None:
    assert Histogram([-5]).percentile(50) == 0


@given(VALUES, st.sampled_from([1, 25, 50, 90, 99, 99.9, 100]))
def test_percentiles_are_close_to_those_of_the_sorted_values(values: list[int], percent: float) -> None:
    exact = sorted(values)[max(1, -int(-len(values) * percent // 100)) - 1]
    assert Histogram(values).percentile(percent) == pytest.approx(exact, rel=0.01)


@given(VALUES, VALUES)
def test_merging_equals_recording_into_one(left: list[int], right: list[int]) -> None:
    merged = Histogram(left)
    merged.merge(Histogram(right))
    both = Histogram(left + right)
    assert [merged.percentile(p) for p in (1, 50, 99, 100)] == [both.percentile(p) for p in (1, 50, 99, 100)]
    assert (len(merged), merged.value_max) == (len(both), both.value_max)


@given(st.integers(0, 1 << 62))
def test_buckets_preserve_the_order_and_magnitude_of_values(value: int) -> None:
    assert bucket_of(value) <= bucket_of(value + 1)
    assert value_of(bucket_of(value)) == pytest.approx(value, rel=0.01)
