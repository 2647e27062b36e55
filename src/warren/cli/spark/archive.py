"""`warren spark archive`: archives messages in a lake, continuously or those available now."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warren.cli.operator.failures import USAGE, Failure
from warren.cli.spark import progress
from warren.cli.spark.options import SparkSettings, build_command, parse_pairs, storage_option
from warren.cli.spark.session import require_delta, require_spark, spark_session

if TYPE_CHECKING:
    from pyspark_warren.pipelines.archive import ArchiveProgress


def archive(settings: SparkSettings, *, to: str, storage_option: Sequence[str], **given: Any) -> None:
    """Write messages to a lake, each once: a Delta table or Parquet files by day and queue.

    A stream is read by offsets and keeps its messages. A classic queue is consumed, which requires --consume:
    its messages are acknowledged when they are in the lake, and consumers do not receive them. When the
    command is started again, it resumes from its checkpoint.
    """
    sources = ("queue", "queue_pattern", "super_stream", "firehose")
    if sum(bool(given[source]) for source in sources) != 1:
        raise Failure("give exactly one of --queue, --queue-pattern, --super-stream and --firehose", USAGE)
    require_spark()
    if given["format"] == "delta":
        require_delta()

    is_idle = True

    def tell(told: dict[str, Any]) -> None:
        nonlocal is_idle
        is_idle = False
        if settings.is_json:
            # `octets` is a deprecated name of `bytes`.
            click.echo(json.dumps(told | {"octets": told["bytes"]}))
        elif told["stage"] == "committed":
            text = f"{told['rows']} rows, {told['files']} files, {told['bytes']} bytes, {told['seconds']} s"
            settings.print_line((f"batch {told['batch']}", told["stage"], text))

    def listen(told: "ArchiveProgress") -> None:
        tell(asdict(told))

    storage = parse_pairs("--storage-option", storage_option)
    with spark_session(settings, "archive") as session:
        from pyspark_warren.pipelines import archive
        from pyspark_warren.pipelines.consume_check import ConsumeNotAllowed
        from pyspark_warren.pipelines.progress_relay import ProgressRelay

        relay = ProgressRelay(_progress_folder(to, given["checkpoint"])) if settings.remote else None
        try:
            query = archive.archive(
                session,
                to,
                options=settings.broker,
                storage_options=storage,
                progress=relay or listen,
                **given,
            )
        except ConsumeNotAllowed as error:
            advice = "add --consume to do so, or set the policy 'retain' and archive its stream"
            raise Failure(f"{error}: {advice}", USAGE) from None
        settings.note(f"archiving into {to} as {query.name!r}")
        try:
            progress.await_query(query, relay, tell)
            if is_idle:
                settings.note("no new messages: the lake has all of them")
        finally:
            query.stop()


def _progress_folder(to: str, checkpoint: str | None) -> Path:
    """Return the folder, in the lake or by the checkpoint, for progress from a Spark Connect server."""
    from pyspark_warren.pipelines import lakes, object_store

    if not object_store.is_object_store(to):
        return lakes.attempt_folder(lakes.lake_folder(to), "told")
    return lakes.attempt_folder(lakes.lake_folder(checkpoint or ".").parent, "told")


command: click.Command = build_command(
    "archive",
    archive,
    (
        click.Option(["--queue"], metavar="NAME", help="a queue or a stream"),
        click.Option(["--queue-pattern"], metavar="REGEX", help="all streams whose names match"),
        click.Option(["--super-stream"], metavar="NAME", help="the partitions of a super stream"),
        click.Option(["--firehose"], is_flag=True, help="copies of all messages of a traced virtual host"),
        click.Option(["--to"], required=True, metavar="PATH", help="the lake"),
        storage_option(),
        click.Option(
            ["--format"], type=click.Choice(["delta", "parquet"]), default="delta", show_default=True
        ),
        click.Option(
            ["--consume"], is_flag=True, help="consume the messages of a queue that is not a stream"
        ),
        click.Option(
            ["--available-now", "once"], is_flag=True, help="archive the messages available now, and end"
        ),
        click.Option(
            ["--interval"], default="30 seconds", show_default=True, help="interval between two micro-batches"
        ),
        click.Option(
            ["--batch-rows"],
            type=click.IntRange(1),
            help="maximum rows of a micro-batch [default: 1000000; before Spark 4.2, all available]",
        ),
        click.Option(["--name"], help="name of the query [default: its source]"),
        click.Option(["--checkpoint"], metavar="PATH", help="checkpoint folder [default: in the lake]"),
        click.Option(
            ["--starting-offsets", "starting"],
            help="start without a checkpoint: earliest, latest, archived, or offsets as JSON",
        ),
    ),
)
