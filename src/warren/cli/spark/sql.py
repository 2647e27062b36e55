"""`warren spark sql`: runs a SQL query over queues, streams and lakes."""

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from warren.cli.operator.failures import USAGE, Failure
from warren.cli.spark import progress
from warren.cli.spark.options import SparkSettings, build_command, parse_pairs, storage_option
from warren.cli.spark.session import require_spark, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_warren.pipelines.sql import SqlQuery

_CLEAR = "\x1b[2J\x1b[H"


def sql(
    settings: SparkSettings,
    *,
    query: str,
    table: tuple[str, ...],
    storage_option: tuple[str, ...],
    limit: int,
    watch: float | None,
) -> None:
    """Run a query over queue.NAME, stream.NAME and lake.PATH; nothing is consumed.

    Names other than identifiers are quoted: queue.`orders.new`, lake.`./lake/orders`. The column `body` is
    text, and `data` is the body as binary. If QUERY is -, it is read from standard input.
    """
    require_spark()
    from pyspark_warren.pipelines import sql as queries
    from pyspark_warren.pipelines import table_reader

    text = sys.stdin.read() if query == "-" else query
    try:
        tables = {
            name: table_reader.parse_table(place) for name, place in parse_pairs("--table", table).items()
        }
        found = queries.parse(text, tables)
    except ValueError as error:
        raise Failure(str(error), USAGE) from None
    with spark_session(settings, "sql") as session:
        queries.prepare(session, found, settings.broker, parse_pairs("--storage-option", storage_option))
        _run(settings, session, found, limit)
        # --watch ends with Ctrl-C.
        with suppress(KeyboardInterrupt):
            while watch is not None:
                time.sleep(watch)
                if sys.stdout.isatty():
                    click.echo(_CLEAR, nl=False)
                _run(settings, session, found, limit)


def _run(settings: SparkSettings, session: "SparkSession", query: "SqlQuery", limit: int) -> None:
    from pyspark.errors import AnalysisException

    from pyspark_warren.pipelines import sql as queries

    named = ", ".join(map(str, query.views.values()))
    try:
        with progress.display(settings, session, f"reading {named}" if named else "the query names no table"):
            frame = queries.run(session, query)
            rows = frame.limit(limit + 1).collect()
    except AnalysisException as error:
        if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
            raise
        told = settings.failure(error)
        tables = "Tables are queue.NAME, stream.NAME and lake.PATH"
        raise Failure(f"{told.message} {tables}", told.status) from None
    names = frame.columns
    settings.print_rows(names, [[plain(value) for value in row] for row in rows[:limit]])
    # Through a pipe, each result appears when it is complete.
    sys.stdout.flush()
    if len(rows) > limit:
        settings.note(f"only the first {limit} rows are printed: use --limit to print more")


def plain(value: object) -> object:
    """Convert a value for JSON: rows to objects, bytes to hexadecimal, times and decimals to text."""
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


command: click.Command = build_command(
    "sql",
    sql,
    (
        click.Argument(["query"]),
        click.Option(
            ["--table"], multiple=True, metavar="NAME=TABLE", help="alias of a table, such as o=queue.orders"
        ),
        storage_option(),
        click.Option(
            ["--limit"], type=click.IntRange(1, 1_000_000), default=100, show_default=True,
            help="maximum number of rows to print",
        ),
        click.Option(
            ["--watch"], type=click.FloatRange(0.1, 86_400), metavar="SECONDS",
            help="run the query again after each interval, until Ctrl-C",
        ),
    ),
)  # fmt: skip
