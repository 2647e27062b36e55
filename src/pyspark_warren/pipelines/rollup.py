"""Rates, sizes and latencies over windows of time, from copies of all messages or from messages themselves.

Copies are what the exchange amq.rabbitmq.trace hands out while a virtual host is traced: each message once
when it is published, and once for each delivery. Anything else counts as one message at the time it came in.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What of a message is read.
READ = ("queue", "exchange", "routing_key", "timestamp", "broker_timestamp", "message_id", "headers", "body")
TRACE = "amq.rabbitmq.trace"
PUBLISHED, DELIVERED, MESSAGE = "published", "delivered", "message"
GROUPS = ("kind", "exchange", "routing_key", "queue")
QUANTILES = (0.5, 0.95, 0.99)
# Where a publisher, or RabbitMQ's plug-in for it, says in milliseconds when it sent a message.
SENT_HEADER = "timestamp_in_ms"
_PROPERTIES = "message_id string, timestamp struct<`$T`:bigint>, headers map<string,string>"
# Closer than that, percentiles of so many values are not told apart.
_ACCURACY = 1_000


def events(messages: "DataFrame") -> "DataFrame":
    """A row for each thing that happened: kind, time, exchange, routing_key, queue, size and latency_ms.

    Latency is from when the publisher says that it sent a message, by the header `timestamp_in_ms` or the
    property, which has whole seconds. Deliveries of messages that have an id, and say nothing of a time, are
    measured from their publication.
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
    # Clocks differ: what came before it was sent took no time.
    is_late = (sql.col("kind") != PUBLISHED) & latency.isNotNull()
    measured = sql.when(is_late, sql.greatest(latency, sql.lit(0.0)))
    return joined.select("kind", "time", *GROUPS[1:], "size", measured.alias("latency_ms"))


def rollup(happened: "DataFrame", window: str, by: Sequence[str] = ("kind",)) -> "DataFrame":
    """A row for each window, as `1 minute`, and group: how many, how fast, how large and how late.

    Rates are over the part of a window in which something was looked at: the first window begins with the
    first event, and the last one ends with the last event and the usual distance between two. What has no
    time is left out.
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
    """Microseconds of the window `span` from the first event of all to behind the last."""
    everything = Window.partitionBy(sql.lit(0))
    first, last = sql.min("first").over(everything), sql.max("last").over(everything)
    start, end = sql.unix_micros("span.start"), sql.unix_micros("span.end")
    gaps = sql.sum("messages").over(everything) - 1
    # Of a single moment nobody knows how long it is.
    behind = sql.when(last > first, last + (last - first) / gaps)
    return sql.least(end, sql.coalesce(behind, end)) - sql.when(
        last > first, sql.greatest(start, first)
    ).otherwise(start)


def check(by: Sequence[str]) -> None:
    """Raise ValueError for what makes no group."""
    for name in by:
        if name not in GROUPS:
            raise ValueError(f"group by {', '.join(GROUPS)}, not {name!r}")


def percentile_names(what: str) -> list[str]:
    """size_p50 and so on."""
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
    """Where a message went: of a copy what its headers say."""
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
    """Which message it is, and when it was sent."""
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
    """Whatever of AMQP's numbers it is: of most types, text as JSON is an object around it."""
    digits = sql.regexp_extract(text, r"\d{10,16}", 0)
    return sql.timestamp_millis(sql.when(digits != "", digits).cast("bigint"))
