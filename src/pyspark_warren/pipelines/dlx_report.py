"""Counts dead letters by the queue, reason and exchange of their first death."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The columns that are read.
READ = ("queue", "routing_key", "headers", "broker_timestamp")
GROUPS = ("queue", "reason", "exchange", "routing_key", "held_in")
DEFAULT = ("queue", "reason", "exchange")
_HEADER = "headers."
# The number of routing keys that a group lists.
KEYS_SHOWN = 3
# The JSON of the header x-death: an array, the latest death first. Smaller integers of AMQP are objects.
_DEATHS = (
    "array<struct<count:string,reason:string,queue:string,exchange:string,"
    "`routing-keys`:array<string>,time:struct<`$T`:bigint>>>"
)


def report(messages: "DataFrame", by: Sequence[str] = DEFAULT, window: str | None = None) -> "DataFrame":
    """Return a row for each group: messages, deaths, times of the first and last death, and routing keys.

    `by` lists names of GROUPS, or headers such as `headers.tenant`. With `window`, such as `5 minutes`, the
    time of death is grouped too. A row with null deaths counts messages that are not dead letters; with a
    window there is none.
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
    """Raise ValueError if `by` has a name that cannot be grouped by."""
    for name in by:
        if name not in GROUPS and (not name.startswith(_HEADER) or name == _HEADER):
            raise ValueError(f"cannot group by {name!r}: use {', '.join(GROUPS)} or headers.NAME")


def first_deaths(messages: "DataFrame") -> "DataFrame":
    """Return a row for each message with its first death and its deaths; null if it has none."""
    header = sql.col("headers")
    deaths = sql.from_json(header["x-death"], _DEATHS)
    oldest = sql.try_element_at(deaths, sql.lit(-1))
    # Another death in the same queue for the same reason moves the entry of the first death to the front,
    # so the headers x-first-death-* are used if the broker sets them.
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
        # A stream of RabbitMQ loses the array x-death, and keeps x-first-death-*.
        sql.when(reason.isNotNull(), sql.coalesce(_sum(counts), sql.lit(1))).alias("deaths"),
        header.alias("headers"),
    )


def _sum(numbers: "Column") -> "Column":
    return sql.aggregate(numbers, sql.lit(0).cast("bigint"), lambda total, one: total + one)


def _group(name: str) -> "Column":
    if name in GROUPS:
        return sql.col(name)
    return sql.col("headers")[name.removeprefix(_HEADER)].alias(name)
