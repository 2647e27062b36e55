"""Dead letters by what they died of: the queue that they died in first, the reason, and the exchange."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What of a message is read.
READ = ("queue", "routing_key", "headers", "broker_timestamp")
GROUPS = ("queue", "reason", "exchange", "routing_key", "held_in")
DEFAULT = ("queue", "reason", "exchange")
_HEADER = "headers."
# How many examples of routing keys a group shows.
KEYS_SHOWN = 3
# x-death as text of a header: an array, the newest death first. Numbers of AMQP's smaller types are objects.
_DEATHS = (
    "array<struct<count:string,reason:string,queue:string,exchange:string,"
    "`routing-keys`:array<string>,time:struct<`$T`:bigint>>>"
)


def report(messages: "DataFrame", by: Sequence[str] = DEFAULT, window: str | None = None) -> "DataFrame":
    """A row for each group: how many messages, how often they died, when first and last, and routing keys.

    `by` has some of GROUPS, or headers as `headers.tenant`; `window`, as `5 minutes`, divides by time. A row
    without deaths counts messages that did not die; with a window there is none.
    """
    check(by)
    deaths = first_deaths(messages)
    groups = [_group(name) for name in by]
    if window:
        groups.insert(0, sql.window("died_at", window)["start"].alias("window"))
    rows = deaths.groupBy(*groups).agg(
        sql.count("*").alias("messages"),
        sql.sum("deaths").alias("deaths"),
        sql.min("died_at").alias("first_death"),
        sql.max("died_at").alias("last_death"),
        sql.slice(sql.array_sort(sql.collect_set("routing_key")), 1, KEYS_SHOWN).alias("routing_keys"),
    )
    return rows.orderBy(*(["window"] if window else []), sql.desc("messages"))


def check(by: Sequence[str]) -> None:
    """Raise ValueError for what makes no group."""
    for name in by:
        if name not in GROUPS and (not name.startswith(_HEADER) or name == _HEADER):
            raise ValueError(f"group by {', '.join(GROUPS)} or headers.NAME, not {name!r}")


def first_deaths(messages: "DataFrame") -> "DataFrame":
    """A row for each message: its first death, and how many it had; null where it has not died."""
    header = sql.col("headers")
    deaths = sql.from_json(header["x-death"], _DEATHS)
    oldest = sql.try_element_at(deaths, sql.lit(-1))
    # The entry of the first death is moved to the front by another death of the same kind: so its own
    # headers say which it was, where the broker writes them.
    queue = sql.coalesce(header["x-first-death-queue"], oldest["queue"])
    reason = sql.coalesce(header["x-first-death-reason"], oldest["reason"])
    first = sql.coalesce(
        sql.try_element_at(
            sql.filter(deaths, lambda one: (one["queue"] == queue) & (one["reason"] == reason)), sql.lit(1)
        ),
        oldest,
    )
    counts = sql.transform(deaths, lambda one: sql.regexp_extract(one["count"], r"\d+", 0).cast("bigint"))
    return messages.select(
        queue.alias("queue"),
        reason.alias("reason"),
        sql.coalesce(header["x-first-death-exchange"], oldest["exchange"]).alias("exchange"),
        sql.coalesce(sql.try_element_at(first["routing-keys"], sql.lit(1)), sql.col("routing_key")).alias(
            "routing_key"
        ),
        sql.col("queue").alias("held_in"),
        sql.coalesce(sql.timestamp_seconds(first["time"]["$T"]), sql.col("broker_timestamp")).alias(
            "died_at"
        ),
        # A stream of RabbitMQ has lost the array, and kept the headers beside it.
        sql.when(reason.isNotNull(), sql.coalesce(_sum(counts), sql.lit(1))).alias("deaths"),
        header.alias("headers"),
    )


def _sum(numbers: "Column") -> "Column":
    return sql.aggregate(numbers, sql.lit(0).cast("bigint"), lambda total, one: total + one)


def _group(name: str) -> "Column":
    if name in GROUPS:
        return sql.col(name)
    return sql.col("headers")[name.removeprefix(_HEADER)].alias(name)
