"""`warren spark compact`: few large files in place of many small ones; without Spark."""

from collections.abc import Sequence
from dataclasses import asdict

import click

from warren.cli.spark.options import SparkSettings, build_command, parse_pairs, storage_option
from warren.cli.spark.session import require_delta

_TARGET_MEBIBYTES = 256


def compact(
    settings: SparkSettings, *, lake: str, storage_option: Sequence[str], day: str | None, target: int
) -> None:
    """Rewrite the small files of a Delta table as few large ones; archives and readers go on meanwhile."""
    require_delta()
    storage = parse_pairs("--storage-option", storage_option)
    from pyspark_warren.pipelines import maintenance

    try:
        done = maintenance.compact(
            lake,
            storage_options=storage,
            day=day,
            target_octets=target * 1_048_576,
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
        click.Option(["--day"], metavar="YYYY-MM-DD", help="only this day"),
        click.Option(
            ["--target"],
            type=click.IntRange(1),
            default=_TARGET_MEBIBYTES,
            show_default=True,
            metavar="MEBIBYTES",
            help="how large files become, about",
        ),
    ),
)
