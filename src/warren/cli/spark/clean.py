"""`warren spark clean`: removes files of a lake that are no longer needed; starts no Spark."""

from collections.abc import Sequence

import click

from warren.cli.spark.options import SparkSettings, build_command, parse_pairs, storage_option
from warren.cli.spark.session import require_delta

_RETENTION_HOURS = 168


def clean(
    settings: SparkSettings, *, lake: str, storage_option: Sequence[str], retention_hours: int, dry_run: bool
) -> None:
    """Remove files of crashes and of old versions from a lake, and print their paths."""
    require_delta()
    storage = parse_pairs("--storage-option", storage_option)
    from pyspark_warren.pipelines import maintenance

    try:
        removed = maintenance.clean(
            lake,
            storage_options=storage,
            retention_hours=retention_hours,
            dry_run=dry_run,
        )
    except (ValueError, OSError) as error:
        raise settings.failure(error) from error
    settings.print_rows(("removed",), [[name] for name in removed])


command: click.Command = build_command(
    "clean",
    clean,
    (
        click.Argument(["lake"], metavar="PATH"),
        storage_option(),
        click.Option(
            ["--retention-hours"],
            type=click.IntRange(_RETENTION_HOURS),
            default=_RETENTION_HOURS,
            show_default=True,
            help="keep files that are younger",
        ),
        click.Option(["--dry-run"], is_flag=True, help="print the files, and remove nothing"),
    ),
)
