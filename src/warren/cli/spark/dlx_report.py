"""`warren spark dlx-report`: counts dead letters by their cause."""

from typing import Any

import click

from warren.cli.spark import progress
from warren.cli.spark.options import SparkSettings, build_command, parse_duration, parse_names
from warren.cli.spark.session import require_spark, spark_session
from warren.cli.spark.sources import SOURCES, listed, source_tables

_COLUMNS = ("messages", "deaths", "first_death", "last_death", "routing_keys")


def dlx_report(settings: SparkSettings, *, by: str, window: str | None, **given: Any) -> None:
    """Count dead letters by the queue, the reason and the exchange of their first death.

    These are read from the headers x-death and x-first-death-*. Nothing is consumed: queues of Warren are
    browsed, streams and archives are read.
    """
    require_spark()
    sources = source_tables(given)
    length = None if window is None else f"{parse_duration(window)} seconds"
    from pyspark_warren.pipelines import dlx_report, table_reader

    names = parse_names("--by", by, dlx_report.check)
    with spark_session(settings, "dlx-report") as session:
        messages = table_reader.read_all(session, sources, settings.broker, dlx_report.READ)
        with progress.display(settings, session, f"reading {listed(sources)}"):
            found = dlx_report.report(messages, names, length).collect()
    columns = (*(("window",) if window else ()), *names, *_COLUMNS)
    alive = [row for row in found if not row["deaths"]]
    settings.print_rows(columns, [[row[name] for name in columns] for row in found if row["deaths"]])
    if alive:
        settings.note(f"{sum(row['messages'] for row in alive)} messages are not dead letters")


command: click.Command = build_command(
    "dlx-report",
    dlx_report,
    (
        *SOURCES,
        click.Option(
            ["--by"],
            default="queue,reason,exchange",
            show_default=True,
            help="columns to group by: also routing_key, held_in and headers.NAME",
        ),
        click.Option(["--window"], metavar="LENGTH", help="also group by time windows: 30s, 5m, 1h, 1d"),
    ),
)
