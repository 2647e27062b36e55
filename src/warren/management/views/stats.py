"""Counters as JSON, each with its rate, and with its samples if these are requested."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Annotated, Required, TypedDict

from aiohttp import web
from msgspec import Struct

from warren.limits import SAMPLES_SHOWN_MAX
from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import Shape, doc, shape
from warren.management.replies import bad_request
from warren.metrics.sampler import CHURN, DELIVERED, DISK, LENGTHS, PUBLISHED
from warren.metrics.time_series import SampleRow, SampleTimes, TimeSeries, details

# Settings of Erlang's garbage collector, which clients expect.
GARBAGE_COLLECTION: JsonObject = {
    "fullsweep_after": 65535,
    "max_heap_size": 0,
    "min_bin_vheap_size": 46422,
    "min_heap_size": 233,
    "minor_gcs": 0,
}
# The counters of a group are shown if one of them is not 0.
_GROUPS = (frozenset(("publish", *PUBLISHED)), frozenset(DELIVERED), frozenset(DISK))


class SamplesQuery(TypedDict, total=False):
    """Range (s) and interval (s) of the returned samples: of queue lengths, messages, bytes and the node."""

    lengths_age: Annotated[int, doc("Range (s) of the samples of queue lengths.")]
    lengths_incr: Annotated[int, doc("Interval (s) of the samples of queue lengths.")]
    msg_rates_age: Annotated[int, doc("Range (s) of the samples of message rates.")]
    msg_rates_incr: Annotated[int, doc("Interval (s) of the samples of message rates.")]
    data_rates_age: Annotated[int, doc("Range (s) of the samples of byte rates.")]
    data_rates_incr: Annotated[int, doc("Interval (s) of the samples of byte rates.")]
    node_stats_age: Annotated[int, doc("Range (s) of the samples of node statistics.")]
    node_stats_incr: Annotated[int, doc("Interval (s) of the samples of node statistics.")]


class SampleShape(TypedDict):
    """The value of a counter at a time."""

    sample: int
    timestamp: int


class RateDetailsShape(TypedDict, total=False):
    """The rate of a counter, and its samples."""

    rate: Required[float]
    samples: list[SampleShape]
    avg: float
    avg_rate: float


def with_details(columns: Iterable[str]) -> dict[str, Shape]:
    """The fields of counters and of their details, for a shape."""
    return {
        key: kind for name in columns for key, kind in ((name, float), (f"{name}_details", RateDetailsShape))
    }


ChurnRatesShape = shape(
    "ChurnRatesShape",
    "Numbers of connections, channels and queues that were opened and closed.",
    with_details(CHURN),
)
QueueTotalsShape = shape("QueueTotalsShape", "Numbers of messages.", with_details(LENGTHS))
MessageStatsShape = shape(
    "MessageStatsShape",
    "Numbers of published, delivered and acknowledged messages.",
    with_details((*PUBLISHED, *DELIVERED, *DISK)),
)


class SampleRanges(Struct, frozen=True, kw_only=True):
    """The ranges of samples that a request asks for."""

    # The time of the last samples (Unix time, ms).
    time: int
    now: int
    lengths: SampleTimes | None = None
    msg_rates: SampleTimes | None = None
    data_rates: SampleTimes | None = None
    node_stats: SampleTimes | None = None


def sample_ranges(request: web.Request, node: ManagedNode) -> SampleRanges:
    """The ranges in the query of `request`; raises RequestRefused if they are invalid or too large."""
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
    """Each counter of `row` with its details; `past` has its samples and the time (ms) of the last ones."""
    series, time = past
    shown: JsonObject = {}
    for column, name in enumerate(columns):
        shown[name] = row[column]
        shown[_details_of(name)] = details(series, time, column, times)
    return shown


def no_reductions(times: SampleTimes | None) -> JsonObject:
    """Erlang's unit of work, which Warren does not count."""
    return {"reductions": 0, "reductions_details": details(None, 0, 0, times)}


def message_stats(
    columns: Sequence[str], row: SampleRow, past: tuple[TimeSeries | None, int], times: SampleTimes | None
) -> JsonObject:
    """The message counters of `row` with their details, in groups; groups that are all 0 are left out."""
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


# Many idle objects share a few times of their last activity.
@lru_cache
def format_time(time: int) -> str:
    """`time` (Unix time, ms) in RabbitMQ's format."""
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
    """The query parameter `name`; as in RabbitMQ, one that is not a number is ignored."""
    try:
        return int(request.query.get(name, ""))
    except ValueError:
        return None
