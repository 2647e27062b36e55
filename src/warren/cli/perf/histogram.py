"""A histogram of latencies, whose memory does not grow with the length of a run."""

from collections import Counter
from collections.abc import Iterable

# Values below 2 ** PRECISION_BITS are exact; above, the width of a bucket is at most 1/128 of its values.
PRECISION_BITS = 8


class Histogram:
    """Counts non-negative integers in buckets, with an error below one percent."""

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
        """The largest recorded value, exactly."""
        return self._value_max

    def record(self, value: int) -> None:
        """Count `value`; a negative value, from differing clocks, counts as zero."""
        value = max(value, 0)
        self._buckets[bucket_of(value)] += 1
        self._total += 1
        if value > self._value_max:
            self._value_max = value

    def merge(self, other: "Histogram") -> None:
        """Add the counts of `other`."""
        self._buckets.update(other._buckets)
        self._total += other._total
        self._value_max = max(self._value_max, other._value_max)

    def percentile(self, percent: float) -> int:
        """Return the percentile `percent` as the value of its bucket; 0 if nothing was counted."""
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
    """Return the bucket of `value`, which consists of its highest bits and the number of dropped bits."""
    shift = value.bit_length() - PRECISION_BITS
    return value if shift <= 0 else (shift << PRECISION_BITS) | (value >> shift)


def value_of(bucket: int) -> int:
    """Return the middle of the values in `bucket`."""
    shift = bucket >> PRECISION_BITS
    if shift == 0:
        return bucket
    low = (bucket & ((1 << PRECISION_BITS) - 1)) << shift
    return low + (1 << shift >> 1)
