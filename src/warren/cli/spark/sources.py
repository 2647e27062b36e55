"""The options for the sources of a pipeline: queues, streams and lakes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from warren.cli.operator.failures import USAGE, Failure

if TYPE_CHECKING:
    from pyspark_warren.pipelines.table_reader import TableIdentifier

SOURCES: tuple[click.Parameter, ...] = (
    click.Option(["--queue"], multiple=True, metavar="NAME", help="a queue, browsed and not consumed"),
    click.Option(["--stream"], multiple=True, metavar="NAME", help="a stream, from its beginning"),
    click.Option(["--lake"], multiple=True, metavar="PATH", help="an archive: Parquet or Delta"),
)  # fmt: skip


def source_tables(given: dict[str, Any]) -> "list[TableIdentifier]":
    """Remove the sources from the options `given`, and return them. Raises Failure if there are none."""
    from pyspark_warren.pipelines.table_reader import KINDS, TableIdentifier

    found = [TableIdentifier(kind=kind, name=name) for kind in KINDS for name in given.pop(kind)]
    if not found:
        raise Failure("give at least one of --queue, --stream and --lake", USAGE)
    return found


def listed(source_tables: "Sequence[TableIdentifier]") -> str:
    """Return the names of tables, separated by commas."""
    return ", ".join(map(str, source_tables))
