"""Filters of a query as what need not be read: ranges of offsets, streams, and addresses.

Spark looks at the rows again, so a filter that says nothing here, or that the broker cannot follow, costs
time and nothing else. What is said of one column holds together with what is said of another.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from pyspark_warren.offsets import StreamOffset
from pyspark_warren.streams import AddressFilter, Streams

# Octets of the names that are sent with a request: a request has a few thousand.
NAMES_SIZE_MAX = 2_000
# What stands in a column for octets that are no UTF-8: the name itself is another one.
_REPLACED = "\ufffd"
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedFilters:
    """Rows that a query wants are among these; None is no bound."""

    # Offsets from `start` up to, and without, `end`; and the same of `broker_timestamp`, in milliseconds.
    start: int | None = None
    end: int | None = None
    since: int | None = None
    until: int | None = None
    queues: frozenset[str] | None = None
    exchanges: frozenset[str] | None = None
    routing_keys: frozenset[str] | None = None

    @property
    def address_filter(self) -> AddressFilter:
        """What of it the broker can look at."""
        return AddressFilter(exchanges=_sent(self.exchanges), routing_keys=_sent(self.routing_keys))

    def has(self, queue: str) -> bool:
        """Whether there are such rows in `queue`, as far as its name says."""
        return self.queues is None or queue in self.queues

    def first(self, queue: str, place: StreamOffset, streams: Streams) -> StreamOffset:
        """`place`, where rows begin, or what is behind it."""
        bounds = [place.next, self.start or 0]
        if self.since is not None and streams.has_times:
            bounds.append(streams.offset_at(queue, self.since))
        return replace(place, next=max(bounds))

    def last(self, queue: str, place: StreamOffset, streams: Streams) -> StreamOffset:
        """`place`, where rows end, or what is before it."""
        bounds = [place.next]
        if self.end is not None:
            bounds.append(max(self.end, 0))
        if self.until is not None and streams.has_times:
            bounds.append(streams.offset_at(queue, self.until))
        return replace(place, next=min(bounds))


NO_FILTERS = PushedFilters()


def pushed_filters(filters: Iterable[Any]) -> PushedFilters:
    """What all of `filters`, as Spark hands them over, leave."""
    found = _FilterCollector()
    for one in filters:
        column = getattr(one, "attribute", None)
        if column is not None and len(column) == 1:
            found.take(column[0], type(one).__name__, getattr(one, "value", None))
    return PushedFilters(**found.bounds)


@dataclass(slots=True)
class _FilterCollector:
    """Gathers bounds: the narrower one counts."""

    bounds: dict[str, Any] = field(default_factory=dict)

    def take(self, column: str, kind: str, value: Any) -> None:
        """One filter."""
        values = value if isinstance(value, list | tuple) else [value]
        match column:
            case "offset" if all(type(one) is int for one in values) and values:
                self._between("start", "end", kind, [(one, one + 1) for one in values])
            case "broker_timestamp" if all(_has_zone(one) for one in values) and values:
                # A column of microseconds, and times of the broker in milliseconds.
                self._between("since", "until", kind, [_around(one) for one in values])
            case "queue" | "exchange" | "routing_key" if all(isinstance(one, str) for one in values):
                if kind in _EQUAL:
                    self._among(f"{column}s", frozenset(values))

    def _between(self, low: str, high: str, kind: str, values: list[tuple[int, int]]) -> None:
        """Values as the whole number at or before each, and the one behind it."""
        if kind in ("GreaterThan", "GreaterThanOrEqual", *_EQUAL):
            bound = min(at for at, _ in values)
            if kind == "GreaterThan" and low == "start":
                bound += 1
            self.bounds[low] = max(bound, self.bounds.get(low, bound))
        if kind in ("LessThan", "LessThanOrEqual", *_EQUAL):
            bound = max(behind for _, behind in values)
            if kind == "LessThan" and high == "end":
                bound -= 1
            self.bounds[high] = min(bound, self.bounds.get(high, bound))

    def _among(self, name: str, values: frozenset[str]) -> None:
        self.bounds[name] = values & self.bounds.get(name, values)


_EQUAL = ("EqualTo", "EqualNullSafe", "In")


def _has_zone(value: Any) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def _around(time: datetime) -> tuple[int, int]:
    """The millisecond that `time` is in, and the next."""
    at = (time - _EPOCH) // _MILLISECOND
    return max(at, 0), max(at + 1, 0)


def _sent(names: frozenset[str] | None) -> tuple[str, ...] | None:
    """Names that a request can bring; None, any, if it cannot."""
    if names is None or not names or any(_REPLACED in name for name in names):
        return None
    if sum(len(name.encode()) + 16 for name in names) > NAMES_SIZE_MAX:
        return None
    return tuple(sorted(names))
