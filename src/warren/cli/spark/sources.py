"""What a pipeline reads, as options: queues, streams, lakes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from warren.cli.operator.failures import USAGE, Failure

if TYPE_CHECKING:
    from pyspark_warren.pipelines.table_reader import TableIdentifier

SOURCES: tuple[click.Parameter, ...] = (
    click.Option(["--queue"], multiple=True, metavar="NAME", help="a queue, which is left as it is"),
    click.Option(["--stream"], multiple=True, metavar="NAME", help="a stream, from its beginning"),
    click.Option(["--lake"], multiple=True, metavar="PATH", help="an archive: Parquet or Delta"),
)  # fmt: skip


def source_tables(given: dict[str, Any]) -> "list[TableIdentifier]":
    """The sources among what was given, taken out of it; Failure if there is none."""
    from pyspark_warren.pipelines.table_reader import KINDS, TableIdentifier

    found = [TableIdentifier(kind=kind, name=name) for kind in KINDS for name in given.pop(kind)]
    if not found:
        raise Failure("say what to read: --queue, --stream or --lake", USAGE)
    return found


def listed(source_tables: "Sequence[TableIdentifier]") -> str:
    """Their names, for a line about what is going on."""
    return ", ".join(map(str, source_tables))
