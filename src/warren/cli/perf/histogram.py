"""Latencies counted in buckets, so that a long run needs no more memory than a short one."""

from collections import Counter
from collections.abc import Iterable

# Below 2 ** PRECISION_BITS values are exact; above, a bucket is at most 1/128 of its value wide.
PRECISION_BITS = 8


class Histogram:
    """Counts of non-negative integers, exact to better than one percent."""

    __slots__ = ("_buckets", "_total", "_value_max")

    def __init__(self, values: Iterable[int] = ()) -> None:
        self._buckets: Counter[int] = Counter()
        self._total = 0
        self._value_max = 0
        for value in values:
            self.record(value)

    def __len__(self) -> int:
        return self._total

    @property
    def value_max(self) -> int:
        """The largest value recorded, exact."""
        return self._value_max

    def record(self, value: int) -> None:
        """Count `value`; one below zero (clocks of two processes) counts as zero."""
        value = max(value, 0)
        self._buckets[bucket_of(value)] += 1
        self._total += 1
        if value > self._value_max:
            self._value_max = value

    def merge(self, other: "Histogram") -> None:
        """Add what `other` counted."""
        self._buckets.update(other._buckets)
        self._total += other._total
        self._value_max = max(self._value_max, other._value_max)

    def percentile(self, percent: float) -> int:
        """The smallest bucket's value that `percent` of the values do not exceed; 0 when there are none."""
        if not self._total:
            return 0
        rank = max(1, -int(-self._total * percent // 100))
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                return min(value_of(bucket), self._value_max)
        return self._value_max


def bucket_of(value: int) -> int:
    """The bucket of `value`: its highest bits, and how many were cut off."""
    shift = value.bit_length() - PRECISION_BITS
    return value if shift <= 0 else (shift << PRECISION_BITS) | (value >> shift)


def value_of(bucket: int) -> int:
    """The middle of the values that share `bucket`."""
    shift = bucket >> PRECISION_BITS
    if shift == 0:
        return bucket
    low = (bucket & ((1 << PRECISION_BITS) - 1)) << shift
    return low + (1 << shift >> 1)
