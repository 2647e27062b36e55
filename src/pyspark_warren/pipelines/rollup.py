"""Message rates, sizes and latencies by time window, from traced copies or from the messages themselves.

While a virtual host is traced, the exchange amq.rabbitmq.trace gets a copy of each message when it is
published and another for each delivery. Any other message counts once, at its time of receipt.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The columns that are read.
READ = ("queue", "exchange", "routing_key", "timestamp", "broker_timestamp", "message_id", "headers", "body")
TRACE = "amq.rabbitmq.trace"
PUBLISHED, DELIVERED, MESSAGE = "published", "delivered", "message"
GROUPS = ("kind", "exchange", "routing_key", "queue")
QUANTILES = (0.5, 0.95, 0.99)
# Header with the publish time in milliseconds, set by publishers or by RabbitMQ's timestamp plugin.
SENT_HEADER = "timestamp_in_ms"
_PROPERTIES = "message_id string, timestamp struct<`$T`:bigint>, headers map<string,string>"
# The accuracy of percentile_approx: the error in rank is at most one in this many.
_ACCURACY = 1_000


def events(messages: "DataFrame") -> "DataFrame":
    """Return a row for each event: kind, time, exchange, routing_key, queue, size and latency_ms.

    Latency starts at the time set by the publisher: the header `timestamp_in_ms`, or the property
    `timestamp`, which has whole seconds. If a delivered message has neither but has a message_id, its latency
    starts with the copy of its publication.
    """
    happened = messages.select(
        _kind().alias("kind"),
        sql.coalesce("broker_timestamp", "timestamp").alias("time"),
        *_route(),
        sql.length("body").cast("bigint").alias("size"),
        *_origin(),
    )
    published = (
        happened.where((sql.col("kind") == PUBLISHED) & sql.col("message_id").isNotNull())
        .groupBy("message_id")
        .agg(sql.min("time").alias("published_at"))
    )
    joined = happened.join(published, "message_id", "left")
    delivered = sql.when(sql.col("kind") == DELIVERED, sql.col("published_at"))
    since = sql.coalesce("sent_at", delivered)
    latency = (sql.unix_micros("time") - sql.unix_micros(since)) / 1000
    # Clocks differ: a negative latency counts as 0.
    is_late = (sql.col("kind") != PUBLISHED) & latency.isNotNull()
    measured = sql.when(is_late, sql.greatest(latency, sql.lit(0.0)))
    return joined.select("kind", "time", *GROUPS[1:], "size", measured.alias("latency_ms"))


def rollup(happened: "DataFrame", window: str, by: Sequence[str] = ("kind",)) -> "DataFrame":
    """Return a row for each window, such as `1 minute`, and group: count, rates, sizes and latencies.

    A rate is computed over the part of the window that has data: the first window starts with the first
    event, and the last one ends after the last event plus the mean distance of two events. Events without a
    time are left out. Raises ValueError if `by` has an unknown name.
    """
    check(by)
    shares = sql.array(*map(sql.lit, QUANTILES))
    span = sql.window("time", window)
    rows = happened.groupBy(span.alias("span"), *by).agg(
        sql.count("*").alias("messages"),
        sql.sum("size").alias("octets"),
        sql.percentile_approx("size", shares, _ACCURACY).alias("sizes"),
        sql.max("size").alias("size_max"),
        sql.percentile_approx("latency_ms", shares, _ACCURACY).alias("latencies"),
        sql.max("latency_ms").alias("latency_max"),
        sql.min(sql.unix_micros("time")).alias("first"),
        sql.max(sql.unix_micros("time")).alias("last"),
    )
    seconds = _covered() / 1_000_000
    return rows.select(
        sql.col("span.start").alias("window"),
        *by,
        "messages",
        sql.round(sql.col("messages") / seconds, 3).alias("per_second"),
        sql.round(sql.col("octets") / seconds, 1).alias("octets_per_second"),
        *_percentiles("size", "sizes"),
        "size_max",
        *_percentiles("latency", "latencies"),
        "latency_max",
    ).orderBy("window", *by)


def _covered() -> "Column":
    """Return the microseconds of the window `span` that lie between the first and the last of all events."""
    everything = Window.partitionBy(sql.lit(0))
    first, last = sql.min("first").over(everything), sql.max("last").over(everything)
    start, end = sql.unix_micros("span.start"), sql.unix_micros("span.end")
    gaps = sql.sum("messages").over(everything) - 1
    # If all events have the same time, the whole window counts.
    behind = sql.when(last > first, last + (last - first) / gaps)
    return sql.least(end, sql.coalesce(behind, end)) - sql.when(
        last > first, sql.greatest(start, first)
    ).otherwise(start)


def check(by: Sequence[str]) -> None:
    """Raise ValueError if `by` has a name that cannot be grouped by."""
    for name in by:
        if name not in GROUPS:
            raise ValueError(f"cannot group by {name!r}: use {', '.join(GROUPS)}")


def percentile_names(what: str) -> list[str]:
    """Return the names of the percentile columns of `what`, such as size_p50."""
    return [f"{what}_p{share * 100:.0f}" for share in QUANTILES]


def _percentiles(what: str, values: str) -> list["Column"]:
    return [sql.col(values)[place].alias(name) for place, name in enumerate(percentile_names(what))]


def _kind() -> "Column":
    key = sql.col("routing_key")
    is_copy = sql.col("exchange") == TRACE
    return (
        sql.when(is_copy & key.startswith("publish."), PUBLISHED)
        .when(is_copy & key.startswith("deliver."), DELIVERED)
        .otherwise(MESSAGE)
    )


def _route() -> list["Column"]:
    """Return exchange, routing key and queue; those of a traced copy are in its headers."""
    key, header = sql.col("routing_key"), sql.col("headers")
    is_copy = sql.col("exchange") == TRACE
    keys = sql.from_json(header["routing_keys"], "array<string>")
    queue = sql.when(key.startswith("deliver."), sql.substr(key, sql.lit(len("deliver.") + 1)))
    return [
        sql.when(is_copy, sql.coalesce(header["exchange_name"], sql.lit(""))).otherwise(sql.col("exchange"))
        .alias("exchange"),
        sql.when(is_copy, sql.try_element_at(keys, sql.lit(1))).otherwise(key).alias("routing_key"),
        sql.when(is_copy, queue).otherwise(sql.col("queue")).alias("queue"),
    ]  # fmt: skip


def _origin() -> list["Column"]:
    """Return the message id and the time at which the message was sent."""
    header, is_copy = sql.col("headers"), sql.col("exchange") == TRACE
    copied = sql.from_json(header["properties"], _PROPERTIES)
    text = sql.when(is_copy, copied["headers"][SENT_HEADER]).otherwise(header[SENT_HEADER])
    stamp = sql.when(is_copy, sql.timestamp_seconds(copied["timestamp"]["$T"])).otherwise(
        sql.col("timestamp")
    )
    return [
        sql.when(is_copy, copied["message_id"]).otherwise(sql.col("message_id")).alias("message_id"),
        sql.coalesce(_milliseconds(text), stamp).alias("sent_at"),
    ]


def _milliseconds(text: "Column") -> "Column":
    """Return the timestamp in a header; most integer types of AMQP are JSON objects around the number."""
    digits = sql.regexp_extract(text, r"\d{10,16}", 0)
    return sql.timestamp_millis(sql.when(digits != "", digits).cast("bigint"))
