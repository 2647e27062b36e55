"""`warren spark compact`: rewrites small files of a Delta table into large ones; starts no Spark."""

from collections.abc import Sequence
from dataclasses import asdict

import click

from warren.cli.spark.options import SparkSettings, build_command, parse_pairs, storage_option
from warren.cli.spark.session import require_delta

_TARGET_MEBIBYTES = 256


def compact(
    settings: SparkSettings, *, lake: str, storage_option: Sequence[str], day: str | None, target: int
) -> None:
    """Rewrite small files of a Delta table into few large ones; archives and readers can run meanwhile."""
    require_delta()
    storage = parse_pairs("--storage-option", storage_option)
    from pyspark_warren.pipelines import maintenance

    try:
        done = maintenance.compact(
            lake,
            storage_options=storage,
            day=day,
            target_bytes=target * 1_048_576,
        )
    except (ValueError, OSError) as error:
        raise settings.failure(error) from error
    settings.print_facts(asdict(done))


command: click.Command = build_command(
    "compact",
    compact,
    (
        click.Argument(["lake"], metavar="PATH"),
        storage_option(),
        click.Option(["--day"], metavar="YYYY-MM-DD", help="compact only this day"),
        click.Option(
            ["--target"],
            type=click.IntRange(1),
            default=_TARGET_MEBIBYTES,
            show_default=True,
            metavar="MEBIBYTES",
            help="approximate size of the new files",
        ),
    ),
)
