"""A report on the day of the shop from the lake and the queues: a few tables, and a chart."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_warren.pipelines.dlx_report import READ, report
from pyspark_warren.pipelines.table_reader import LAKE, QUEUE, TableIdentifier, read
from shop import CAPTURED, CREATED, DEAD_ORDERS
from warren.cli.operator.text import aligned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BARS, WIDTH = 12, 48
EVENT = "order STRING, product STRING, pieces INT, cents BIGINT, country STRING"
PRODUCTS = f"""
    SELECT event.product, count(*) AS orders, sum(event.pieces) AS pieces, sum(event.cents) / 100 AS euros
    FROM events WHERE routing_key = '{CREATED}' GROUP BY event.product ORDER BY euros DESC
"""
# How long customers waited for the charge, in milliseconds: from one event of an order to another.
WAITED = f"""
    SELECT count(*) AS charged, percentile(ms, 0.5) AS p50_ms, percentile(ms, 0.99) AS p99_ms FROM (
        SELECT unix_millis(max(broker_timestamp)) - unix_millis(min(broker_timestamp)) AS ms
        FROM events WHERE routing_key IN ('{CREATED}', '{CAPTURED}') GROUP BY message_id HAVING count(*) = 2
    )
"""
# Orders by parts of the day.
CURVE = f"""
    WITH day AS (
        SELECT unix_millis(broker_timestamp) AS at FROM events WHERE routing_key = '{CREATED}'
    ), span AS (SELECT min(at) AS opened, max(at) + 1 AS closed FROM day)
    SELECT floor({BARS} * (at - opened) / (closed - opened)) AS part, count(*) AS orders
    FROM day CROSS JOIN span GROUP BY part ORDER BY part
"""
# Commands to try next, in single quotes of a shell; the first needs no broker.
NEXT = (
    'SELECT headers["country"] AS country, count(*) AS orders FROM lake.`{lake}` '
    f'WHERE routing_key = "{CREATED}" GROUP BY 1 ORDER BY 2 DESC',
    "SELECT routing_key, count(*) FROM stream.`shop.events` GROUP BY 1",
    f'SELECT headers["x-first-death-reason"] AS why, body FROM queue.`{DEAD_ORDERS}` LIMIT 5',
    "SELECT count(*) AS ever_ordered FROM stream.`amq.retained.orders`",
)


def show(spark: "SparkSession", lake: str, broker: Mapping[str, str]) -> dict[str, list[Any]]:
    """Print the report; returns its rows by name."""
    events = read(spark, TableIdentifier(kind=LAKE, name=lake), broker)
    reported = f"from_json(cast(body AS string), '{EVENT}') AS event"
    events.selectExpr("routing_key", "message_id", "broker_timestamp", reported).createOrReplaceTempView(
        "events"
    )
    dead = read(spark, TableIdentifier(kind=QUEUE, name=DEAD_ORDERS), broker, READ)
    found = {
        "products": _table("What was ordered", spark.sql(PRODUCTS)),
        "waited": _table("How long until it was paid", spark.sql(WAITED)),
        "dead": _table("What nobody could do anything with", report(dead).drop("routing_keys", "exchange")),
        "curve": spark.sql(CURVE).collect(),
    }
    print("\nOrders over the day")
    for line in bars([row.orders for row in found["curve"]]):
        print(line)
    return found


def bars(counts: Sequence[int]) -> list[str]:
    """A bar chart with a line for each count."""
    most = max(counts, default=0) or 1
    return [f"  {'█' * round(WIDTH * count / most) or '▏'} {count}" for count in counts]


def _table(title: str, frame: "DataFrame") -> list[Any]:
    rows = frame.collect()
    print(f"\n{title}")
    cells = [frame.columns, *([_shown(value) for value in row] for row in rows)]
    for line in aligned(cells):
        print(f"  {line}")
    return rows


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:%H:%M:%S}" if hasattr(value, "strftime") else str(value)
