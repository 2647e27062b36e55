"""Converts filters of a query to ranges of offsets and times, and to sets of queues and addresses.

Spark applies all filters again, so a filter that is not converted here, or that the broker ignores, gives the
same rows and only takes longer. The bounds of different columns are combined with AND.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from pyspark_warren.offsets import StreamOffset
from pyspark_warren.streams import AddressFilter, Streams

# Bytes of the names in one request, whose line can have a few thousand.
NAMES_SIZE_MAX = 2_000
# Stands for bytes that are not UTF-8, so the true name is a different one.
_REPLACED = "\ufffd"
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedFilters:
    """Bounds that contain all rows matching the pushed filters; None is no bound."""

    # Offsets in [start, end), and values of `broker_timestamp` in [since, until), in milliseconds.
    start: int | None = None
    end: int | None = None
    since: int | None = None
    until: int | None = None
    queues: frozenset[str] | None = None
    exchanges: frozenset[str] | None = None
    routing_keys: frozenset[str] | None = None

    @property
    def address_filter(self) -> AddressFilter:
        """Return the filter by exchange and routing key that can be sent to the broker."""
        return AddressFilter(exchanges=_sent(self.exchanges), routing_keys=_sent(self.routing_keys))

    def has(self, queue: str) -> bool:
        """Whether the filters on the column `queue` match `queue`."""
        return self.queues is None or queue in self.queues

    def first(self, queue: str, place: StreamOffset, streams: Streams) -> StreamOffset:
        """Return the start `place`, moved forward to the first offset that can match."""
        bounds = [place.next, self.start or 0]
        if self.since is not None and streams.has_times:
            bounds.append(streams.offset_at(queue, self.since))
        return replace(place, next=max(bounds))

    def last(self, queue: str, place: StreamOffset, streams: Streams) -> StreamOffset:
        """Return the end `place`, moved back to the last offset that can match."""
        bounds = [place.next]
        if self.end is not None:
            bounds.append(max(self.end, 0))
        if self.until is not None and streams.has_times:
            bounds.append(streams.offset_at(queue, self.until))
        return replace(place, next=min(bounds))


NO_FILTERS = PushedFilters()


def pushed_filters(filters: Iterable[Any]) -> PushedFilters:
    """Return the bounds of all `filters` of Spark; filters that cannot be converted are ignored."""
    found = _FilterCollector()
    for one in filters:
        column = getattr(one, "attribute", None)
        if column is not None and len(column) == 1:
            found.take(column[0], type(one).__name__, getattr(one, "value", None))
    return PushedFilters(**found.bounds)


@dataclass(slots=True)
class _FilterCollector:
    """Collects bounds; of two bounds on one column, the narrower one is kept."""

    bounds: dict[str, Any] = field(default_factory=dict)

    def take(self, column: str, kind: str, value: Any) -> None:
        """Add the filter `column` `kind` `value`, where `kind` is the name of its class in PySpark."""
        values = value if isinstance(value, list | tuple) else [value]
        match column:
            case "offset" if all(type(one) is int for one in values) and values:
                self._between("start", "end", kind, [(one, one + 1) for one in values])
            case "broker_timestamp" if all(_has_zone(one) for one in values) and values:
                # The column has microseconds, and the broker compares milliseconds.
                self._between("since", "until", kind, [_around(one) for one in values])
            case "queue" | "exchange" | "routing_key" if all(isinstance(one, str) for one in values):
                if kind in _EQUAL:
                    self._among(f"{column}s", frozenset(values))

    def _between(self, low: str, high: str, kind: str, values: list[tuple[int, int]]) -> None:
        """Add bounds for `values`, each a pair of the integer at or before the value and the next integer."""
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
    """Return the millisecond that contains `time`, and the next one."""
    at = (time - _EPOCH) // _MILLISECOND
    return max(at, 0), max(at + 1, 0)


def _sent(names: frozenset[str] | None) -> tuple[str, ...] | None:
    """Return the names for a request; None, which matches any, if they cannot be sent."""
    if names is None or not names or any(_REPLACED in name for name in names):
        return None
    if sum(len(name.encode()) + 16 for name in names) > NAMES_SIZE_MAX:
        return None
    return tuple(sorted(names))
