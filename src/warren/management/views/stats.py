"""Counters as they are shown: each with its rate beside it, and its samples where these are asked for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Required, TypedDict

from aiohttp import web

from warren.limits import SAMPLES_SHOWN_MAX
from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import Shape, shape
from warren.management.replies import bad_request
from warren.metrics.sampler import CHURN, DELIVERED, DISK, LENGTHS, PUBLISHED
from warren.metrics.time_series import SampleRow, SampleTimes, TimeSeries, details

# What cannot be known of a garbage collector that there is not, in the shape that clients expect.
GARBAGE_COLLECTION: JsonObject = {
    "fullsweep_after": 65535,
    "max_heap_size": 0,
    "min_bin_vheap_size": 46422,
    "min_heap_size": 233,
    "minor_gcs": 0,
}
# A group of counters is shown from the first that counts.
_GROUPS = (frozenset(("publish", *PUBLISHED)), frozenset(DELIVERED), frozenset(DISK))


class SamplesQuery(TypedDict, total=False):
    """Of how many seconds samples are shown, and how far apart: of lengths, messages, octets, the node."""

    lengths_age: int
    lengths_incr: int
    msg_rates_age: int
    msg_rates_incr: int
    data_rates_age: int
    data_rates_incr: int
    node_stats_age: int
    node_stats_incr: int


class SampleShape(TypedDict):
    """What a number was."""

    sample: int
    timestamp: int


class RateDetailsShape(TypedDict, total=False):
    """What a number does."""

    rate: Required[float]
    samples: list[SampleShape]
    avg: float
    avg_rate: float


def with_details(columns: Iterable[str]) -> dict[str, Shape]:
    """Numbers with their details, in a shape."""
    return {
        key: kind for name in columns for key, kind in ((name, float), (f"{name}_details", RateDetailsShape))
    }


ChurnRatesShape = shape("ChurnRatesShape", "What came and went.", with_details(CHURN))
QueueTotalsShape = shape("QueueTotalsShape", "How many messages there are.", with_details(LENGTHS))
MessageStatsShape = shape(
    "MessageStatsShape", "What was done with messages.", with_details((*PUBLISHED, *DELIVERED, *DISK))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRanges:
    """What a request wants to know of the past."""

    # When samples were taken last (ms).
    time: int
    now: int
    lengths: SampleTimes | None = None
    msg_rates: SampleTimes | None = None
    data_rates: SampleTimes | None = None
    node_stats: SampleTimes | None = None


def sample_ranges(request: web.Request, node: ManagedNode) -> SampleRanges:
    """What `request` asks for; Refused if that is too much."""
    now = node.now()
    return SampleRanges(
        time=node.sampler.time,
        now=now,
        lengths=_range(request, "lengths", now, is_ceiling=True),
        msg_rates=_range(request, "msg_rates", now),
        data_rates=_range(request, "data_rates", now),
        node_stats=_range(request, "node_stats", now),
    )


def with_rates(
    columns: Sequence[str], row: SampleRow, past: tuple[TimeSeries | None, int], times: SampleTimes | None
) -> JsonObject:
    """Every number of `row`, with its details; `past` are its samples, and when they were taken last."""
    series, time = past
    shown: JsonObject = {}
    for column, name in enumerate(columns):
        shown[name] = row[column]
        shown[_details_of(name)] = details(series, time, column, times)
    return shown


def no_reductions(times: SampleTimes | None) -> JsonObject:
    """Erlang counts steps of work, and nothing here does."""
    return {"reductions": 0, "reductions_details": details(None, 0, 0, times)}


def message_stats(
    columns: Sequence[str], row: SampleRow, past: tuple[TimeSeries | None, int], times: SampleTimes | None
) -> JsonObject:
    """The same for what was done with messages, as far as anything was."""
    if not any(row):
        return {}
    with_details = {name for name, number in zip(columns, row, strict=True) if number}
    shown = frozenset[str]().union(*(group for group in _GROUPS if not with_details.isdisjoint(group)))
    series, time = past
    stats: JsonObject = {}
    for column, name in enumerate(columns):
        if name in shown:
            stats[name] = row[column]
            stats[_details_of(name)] = details(series, time, column, times)
    return stats


@cache
def _details_of(name: str) -> str:
    return f"{name}_details"


# Most of many idle objects are idle since the same few times.
@lru_cache
def format_time(time: int) -> str:
    """`time` (ms) as RabbitMQ writes it."""
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds")


def _range(request: web.Request, prefix: str, now: int, *, is_ceiling: bool = False) -> SampleTimes | None:
    age, step = _number(request, f"{prefix}_age"), _number(request, f"{prefix}_incr")
    if age is None or step is None:
        return None
    if age <= 0 or step <= 0 or age // step > SAMPLES_SHOWN_MAX:
        raise bad_request(f"Invalid range parameters: age {age}, incr {step}", "invalid_range_parameters")
    step_ms = step * 1000
    last = now - now % step_ms
    if is_ceiling and last < now:
        last += step_ms
    return SampleTimes(last, age * 1000, step_ms)


def _number(request: web.Request, name: str) -> int | None:
    """RabbitMQ: what is no number was not said."""
    try:
        return int(request.query.get(name, ""))
    except ValueError:
        return None
