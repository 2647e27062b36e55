"""`warren spark replay`: publishes messages of a lake again."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from warren.cli.spark.options import SparkSettings, build_command, parse_pairs, storage_option
from warren.cli.spark.session import require_spark, spark_session

if TYPE_CHECKING:
    from pyspark_warren.pipelines.replay import ReplayProgress

_BATCH_ROWS = 200_000
_SAMPLES = 5
_SHOWN = ("queue", "offset", "broker_timestamp", "exchange", "routing_key", "message_id", "body")
# Characters of a body that a sample shows.
_CHARACTERS = 60


def replay(
    settings: SparkSettings,
    *,
    source: str,
    queue: Sequence[str],
    message_id: Sequence[str],
    header: Sequence[str],
    storage_option: Sequence[str],
    **given: Any,
) -> None:
    """Publish messages of a lake again, each once to its exchange, in order of receipt.

    With --dry-run, the number of messages and some samples are printed. When the command is run again with
    the same --name, it resumes where it was.
    """
    headers = parse_pairs("--header", header)
    storage = parse_pairs("--storage-option", storage_option)
    require_spark()

    def tell(step: "ReplayProgress") -> None:
        if settings.is_json:
            click.echo(json.dumps(asdict(step)))
        else:
            settings.note(
                f"batch {step.batch + 1} of {step.batches}: {step.rows} published in {step.seconds} s"
            )

    with spark_session(settings, "replay") as session:
        from pyspark_warren.pipelines import replay

        done = replay.replay(
            session,
            source,
            queues=queue,
            message_ids=message_id,
            headers=headers,
            options=settings.broker,
            storage_options=storage,
            progress=tell,
            **given,
        )
    facts = asdict(done)
    samples = facts.pop("samples")
    if settings.is_json:
        # `octets` is a deprecated name of `bytes`.
        shown = facts | {"octets": done.bytes, "samples": [_plain(one) for one in samples]}
        click.echo(json.dumps(shown, default=str))
        return
    settings.print_facts(facts | {"exchanges": ", ".join(f"{n!r}: {c}" for n, c in done.exchanges.items())})
    if samples:
        settings.print_rows(_SHOWN, [[_plain(one)[name] for name in _SHOWN] for one in samples])


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a sample with its body as text, shortened."""
    return row | {"body": bytes(row["body"] or b"").decode(errors="replace")[:_CHARACTERS]}


command: click.Command = build_command(
    "replay",
    replay,
    (
        click.Option(["--from", "source"], required=True, metavar="PATH", help="the lake"),
        storage_option(),
        click.Option(
            ["--checkpoint"],
            metavar="PATH",
            help="folder of the plan and its progress [default: in the lake]",
        ),
        click.Option(["--name"], required=True, help="name of the replay, by which a later run resumes it"),
        click.Option(
            ["--exchange"], metavar="NAME", help="publish to this exchange instead of each message's own"
        ),
        click.Option(["--routing-key"], metavar="KEY", help="use this key instead of each message's own"),
        click.Option(
            ["--since"], metavar="TIME", help="only messages received at this time or later, ISO 8601"
        ),
        click.Option(["--until"], metavar="TIME", help="only messages received before this time"),
        click.Option(
            ["--queue"], multiple=True, metavar="NAME", help="only messages of this queue; can be repeated"
        ),
        click.Option(
            ["--message-id"], multiple=True, metavar="ID", help="only messages with this id; can be repeated"
        ),
        click.Option(
            ["--header"],
            multiple=True,
            metavar="NAME=VALUE",
            help="only messages with this header; can be repeated",
        ),
        click.Option(["--where"], metavar="SQL", help="condition over the columns of messages, and day"),
        click.Option(["--rate"], type=float, metavar="N", help="maximum messages per second"),
        click.Option(
            ["--batch-rows"],
            type=click.IntRange(1),
            default=_BATCH_ROWS,
            show_default=True,
            help="messages in a batch",
        ),
        click.Option(
            ["--user-ids"],
            type=click.Choice(["check", "keep", "drop"]),
            default="check",
            show_default=True,
            help="how to treat a user_id of another user",
        ),
        click.Option(["--dry-run"], is_flag=True, help="report the messages, and publish nothing"),
        click.Option(
            ["--samples"],
            type=click.IntRange(0),
            default=_SAMPLES,
            show_default=True,
            help="number of samples of a dry run",
        ),
    ),
)
