"""`warren spark decode`: parses JSON bodies into columns, and dead-letters messages that do not match."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warren.cli.operator.failures import USAGE, Failure
from warren.cli.spark import progress
from warren.cli.spark.options import SparkSettings, build_command, parse_pairs, storage_option
from warren.cli.spark.session import require_spark, spark_session

if TYPE_CHECKING:
    from pyspark_warren.pipelines.decode import DecodeProgress


def decode(
    settings: SparkSettings,
    *,
    schema: str,
    to: str,
    once: bool,
    checkpoint: str | None,
    storage_option: Sequence[str],
    **given: Any,
) -> None:
    """Parse JSON bodies into columns of Parquet files, and publish messages that do not match.

    A classic queue is consumed, which requires --consume: its messages are acknowledged when both are
    written. A message that does not match keeps its body and properties, and gets the header x-decode-reason.
    When the command is started again, it resumes from its checkpoint; each message is written once.
    """
    require_spark()
    _check(given)
    storage = parse_pairs("--storage-option", storage_option)

    def tell(told: dict[str, Any]) -> None:
        settings.note(f"batch {told['batch']}: {told['good']} decoded, {told['bad']} do not match")

    def listen(told: "DecodeProgress") -> None:
        tell(asdict(told))

    with spark_session(settings, "decode") as session:
        from pyspark_warren.pipelines import decode as pipeline
        from pyspark_warren.pipelines.consume_check import ConsumeNotAllowed
        from pyspark_warren.pipelines.progress_relay import ProgressRelay

        try:
            wanted = pipeline.schema_of(session, _text(schema))
        except Exception as error:
            raise Failure(f"--schema: {settings.failure(error).message}", USAGE) from None
        relay = ProgressRelay(pipeline.progress_folder(to, checkpoint)) if settings.remote else None
        try:
            query = pipeline.start(
                session,
                source={**settings.broker, **_source(given)},
                schema=wanted,
                to=to,
                dead_letters={**_writing(settings), **_bad(given)},
                once=once,
                progress=relay or listen,
                consume=given["consume"],
                checkpoint=checkpoint,
                storage_options=storage,
            )
        except ConsumeNotAllowed as error:
            raise Failure(f"{error}: add --consume to do so, or decode a stream", USAGE) from None
        settings.note(f"decoding {given['queue'] or given['stream']} into {to}")
        try:
            progress.await_query(query, relay, tell)
        except KeyboardInterrupt:
            query.stop()
            settings.note("stopped; start the command again to resume")


def _check(given: dict[str, Any]) -> None:
    """Raise Failure unless exactly one source and one target for bad messages are given."""
    if bool(given["queue"]) == bool(given["stream"]):
        raise Failure("give exactly one of --queue and --stream", USAGE)
    if bool(given["bad_to"]) == bool(given["bad_to_queue"]):
        raise Failure(
            "give exactly one of --dead-letter-exchange and --dead-letter-queue for bad messages",
            USAGE,
        )


def _text(schema: str) -> str:
    """Return the schema, or for @FILE the contents of the file."""
    if not schema.startswith("@"):
        return schema
    return Path(schema[1:]).read_text(encoding="utf-8")


def _source(given: dict[str, Any]) -> dict[str, str]:
    source = {"queue": given["queue"]} if given["queue"] else {"queue": given["stream"], "mode": "stream"}
    if given["batch"]:
        source["maxOffsetsPerTrigger"] = str(given["batch"])
    return source


def _bad(given: dict[str, Any]) -> dict[str, str]:
    if given["bad_to_queue"]:
        return {"queue": given["bad_to_queue"]}
    key = {"routingKey": given["bad_key"]} if given["bad_key"] is not None else {}
    return {"exchange": given["bad_to"]} | key


def _writing(settings: SparkSettings) -> dict[str, str]:
    """Return the options of the writer that address the broker; other options are for the reader."""
    kept = ("uri", "vhost", "managementuri", "transport", "retries", "timeoutms")
    return {
        name: value
        for name, value in settings.broker.items()
        if name.lower() in kept or name.lower().startswith("tls.")
    }


command: click.Command = build_command(
    "decode",
    decode,
    (
        click.Option(["--queue"], metavar="NAME", help="a queue; its messages are consumed, with --consume"),
        click.Option(["--stream"], metavar="NAME", help="a stream, from its beginning"),
        click.Option(
            ["--schema"],
            required=True,
            metavar="DDL",
            help="such as `id bigint not null, name string`, or Spark's JSON; @FILE reads a file",
        ),
        click.Option(["--to"], required=True, metavar="PATH", help="folder of the Parquet files"),
        storage_option(),
        click.Option(["--checkpoint"], metavar="PATH", help="checkpoint folder [default: in --to]"),
        click.Option(
            ["--dead-letter-exchange", "bad_to"],
            metavar="EXCHANGE",
            help="exchange for messages that do not match",
        ),
        click.Option(
            ["--dead-letter-routing-key", "bad_key"],
            metavar="KEY",
            help="routing key for messages that do not match, instead of their own",
        ),
        click.Option(
            ["--dead-letter-queue", "bad_to_queue"],
            metavar="NAME",
            help="queue for messages that do not match",
        ),
        click.Option(
            ["--batch-rows", "batch"],
            type=click.IntRange(1),
            metavar="ROWS",
            help="maximum messages in a micro-batch",
        ),
        click.Option(
            ["--consume"], is_flag=True, help="consume the messages of a queue that is not a stream"
        ),
        click.Option(
            ["--available-now", "once"], is_flag=True, help="decode the messages available now, and end"
        ),
    ),
)
