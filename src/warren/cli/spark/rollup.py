"""`warren spark rollup`: reports message rates, sizes and latencies by time window."""

from pathlib import Path
from typing import Any

import click

from warren.cli.operator.failures import USAGE, Failure
from warren.cli.spark import progress
from warren.cli.spark.options import SparkSettings, build_command, parse_duration, parse_names
from warren.cli.spark.session import require_spark, spark_session
from warren.cli.spark.sources import SOURCES, listed, source_tables

_COLUMNS = (
    "messages", "per_second", "octets_per_second", "size_p50", "size_p99", "latency_p50", "latency_p95",
    "latency_p99",
)  # fmt: skip


def rollup(settings: SparkSettings, *, by: str, window: str, html: str | None, **given: Any) -> None:
    """Report message rates, sizes and latencies by time window.

    The source has copies of the firehose, both of publications and of deliveries, or messages themselves.
    Nothing is consumed.
    """
    require_spark()
    sources = source_tables(given)
    length_s = parse_duration(window)
    from pyspark_warren.pipelines import rollup as pipeline
    from pyspark_warren.pipelines import table_reader

    names = parse_names("--by", by, pipeline.check)
    with spark_session(settings, "rollup") as session:
        messages = table_reader.read_all(session, sources, settings.broker, pipeline.READ)
        with progress.display(settings, session, f"reading {listed(sources)}"):
            found = pipeline.rollup(pipeline.events(messages), f"{length_s} seconds", names).collect()
    if html:
        from pyspark_warren.pipelines.rollup_page import rollup_page

        rows = [row.asDict() for row in found]
        try:
            Path(html).write_text(rollup_page(rows, names, length_s, listed(sources)), encoding="utf-8")
        except (ValueError, OSError) as error:
            raise Failure(f"{html}: {error}", USAGE if isinstance(error, OSError) else 1) from None
        settings.note(f"written to {html}")
    columns = ("window", *names, *_COLUMNS)
    if settings.is_json:
        settings.print_json([row.asDict() for row in found])
    else:
        settings.print_rows(columns, [[_rounded(row[name]) for name in columns] for row in found])


def _rounded(value: object) -> object:
    return round(value, 1) if isinstance(value, float) else value


command: click.Command = build_command(
    "rollup",
    rollup,
    (
        *SOURCES,
        click.Option(
            ["--by"],
            default="kind",
            show_default=True,
            help="columns to group by: kind, exchange, routing_key, queue",
        ),
        click.Option(["--window"], default="1m", show_default=True, metavar="LENGTH", help="10s, 5m, 1h, 1d"),
        click.Option(["--html"], metavar="FILE", help="also write an HTML page with charts"),
    ),
)
