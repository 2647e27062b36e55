"""`warren spark decode`: JSON bodies into columns, and what does not fit to a dead-letter exchange."""

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
    """Turn JSON bodies into columns in Parquet files, and publish what does not fit to --bad-to.

    A classic queue is consumed, which wants --consume: its messages are acknowledged when both are written.
    A bad one keeps its body and properties, and its header x-decode-reason says what is wrong. Started again,
    it goes on where it was; a message is written once.
    """
    require_spark()
    _check(given)
    storage = parse_pairs("--storage-option", storage_option)

    def tell(told: dict[str, Any]) -> None:
        settings.note(f"batch {told['batch']}: {told['good']} decoded, {told['bad']} do not fit")

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
                told=relay or listen,
                consume=given["consume"],
                checkpoint=checkpoint,
                storage_options=storage,
            )
        except ConsumeNotAllowed as error:
            raise Failure(f"{error}: say --consume if that is meant, or decode a stream", USAGE) from None
        settings.note(f"decoding {given['queue'] or given['stream']} into {to}")
        try:
            progress.await_query(query, relay, tell)
        except KeyboardInterrupt:
            query.stop()
            settings.note("stopped; started again, it goes on here")


def _check(given: dict[str, Any]) -> None:
    """Refuse what says twice, or not at all, what to read or where bad messages go."""
    if bool(given["queue"]) == bool(given["stream"]):
        raise Failure("say what to read by one of --queue and --stream", USAGE)
    if bool(given["bad_to"]) == bool(given["bad_to_queue"]):
        raise Failure("say where bad messages go by one of --bad-to and --bad-to-queue", USAGE)


def _text(schema: str) -> str:
    """A schema as it was given, or what is in the file of that name, behind @."""
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
    """What says where the broker is; the rest of --option is for the reader."""
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
        click.Option(["--queue"], metavar="NAME", help="a queue, whose messages are taken with --consume"),
        click.Option(["--stream"], metavar="NAME", help="a stream, from its beginning"),
        click.Option(
            ["--schema"],
            required=True,
            metavar="DDL",
            help="as `id bigint not null, name string`, or Spark's JSON; @FILE reads either from a file",
        ),
        click.Option(["--to"], required=True, metavar="PATH", help="where the Parquet files go"),
        storage_option(),
        click.Option(["--checkpoint"], metavar="PATH", help="where it stands [default: in --to]"),
        click.Option(["--bad-to"], metavar="EXCHANGE", help="where bad messages are published"),
        click.Option(["--bad-key"], metavar="KEY", help="their routing key, in place of their own"),
        click.Option(["--bad-to-queue"], metavar="NAME", help="a queue for them, in place of an exchange"),
        click.Option(
            ["--batch"], type=click.IntRange(1), metavar="ROWS", help="how many a batch has at most"
        ),
        click.Option(["--consume"], is_flag=True, help="take the messages of a queue that is no stream"),
        click.Option(["--once"], is_flag=True, help="what is there now, and then end"),
    ),
)
