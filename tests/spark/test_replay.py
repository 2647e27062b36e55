"""Replays of a lake: the selected messages, unchanged, in order, and once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.spark.brokers import STREAM, BrokerUnderTest

from pyspark_warren.amqp import CHANNEL
from pyspark_warren.amqp_publisher import AmqpPublisher
from pyspark_warren.encoding import PublishEncoder
from pyspark_warren.options import read_options
from pyspark_warren.partitions import BrowsePartition
from pyspark_warren.pipelines.archive import archive
from pyspark_warren.pipelines.maintenance import compact
from pyspark_warren.pipelines.replay import ReplayProgress, ReplayResult, replay
from pyspark_warren.schema import COLUMNS
from pyspark_warren.versions import HAS_BATCHES

ROWS = 600
TYPED = '{"n":{"$I":5},"x-death":[{"count":2,"queue":"q"}]}'
Replay = Callable[..., ReplayResult]


@pytest.fixture(scope="module", params=["delta", pytest.param("parquet", marks=pytest.mark.long)])
def lake(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    warren: BrokerUnderTest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Two queues with unusual names in a lake."""
    folder: Path = tmp_path_factory.mktemp("replay") / "lake ü"
    for queue in ("replay a/b=ü", "replay-c"):
        warren.declare(queue, dict(STREAM))
        with AmqpPublisher(warren.broker) as publisher:
            size = publisher.frame_size_max
            encoder = PublishEncoder(
                channel=CHANNEL, frame_size_max=size, is_mandatory=True, is_persistent=True
            )
            batch = pa.record_batch({
                "body": [f"{queue} {number}".encode() for number in range(ROWS)],
                "message_id": [str(number) for number in range(ROWS)],
                "priority": pa.array([number % 10 for number in range(ROWS)], pa.int32()),
                "headers_json": [TYPED if number % 2 else None for number in range(ROWS)],
            })  # fmt: skip
            publisher.publish(encoder.encode(batch, ("", queue), None))
            publisher.finish()
    query = archive(
        spark, folder, queue_pattern="replay.*", format=request.param, uri=warren.options["uri"],
        management_uri=warren.options["managementUri"], once=True, batch_rows=500 if HAS_BATCHES else None,
    )  # fmt: skip
    assert query.awaitTermination(200)
    if request.param == "delta":
        compact(folder)
    return folder


@pytest.fixture
def send(spark: SparkSession, warren: BrokerUnderTest, lake: Path) -> Replay:
    """Replays of that lake to that broker."""
    options = warren.options
    return lambda **given: replay(
        spark, lake, uri=options["uri"], management_uri=options["managementUri"], **given
    )


def waiting(place: BrokerUnderTest, queue: str) -> list[dict[str, Any]]:
    options = read_options(place.options | {"queue": queue, "mode": "browse"})
    return [
        row for batch in BrowsePartition(queue).read(options, tuple(COLUMNS)) for row in batch.to_pylist()
    ]


@pytest.mark.versions
def test_a_replay_publishes_each_message_once_unchanged_and_in_order(
    warren: BrokerUnderTest, lake: Path, send: Replay
) -> None:
    warren.declare("replayed")
    steps: list[ReplayProgress] = []
    wanted = {
        "name": "all",
        "exchange": "",
        "routing_key": "replayed",
        "batch_rows": 500,
    }
    done = send(progress=steps.append, **wanted)
    assert (done.rows, done.exchanges, done.batches, done.sent) == (1_200, {"": 1_200}, 3, 1_200)
    assert [(one.batch, one.rows) for one in steps] == [(0, 500), (1, 500), (2, 200)]
    found = waiting(warren, "replayed")
    for queue in ("replay a/b=ü", "replay-c"):
        bodies = [row["body"].decode() for row in found if row["body"].decode().startswith(queue)]
        assert bodies == [f"{queue} {number}" for number in range(ROWS)]
    for row in found:
        number = int(row["message_id"])
        assert (row["priority"], row["delivery_mode"]) == (number % 10, 2)
        assert (json.loads(row["headers_json"] or "{}")) == (json.loads(TYPED) if number % 2 else {})

    again = send(**wanted)
    assert (again.sent, again.sent_before) == (0, 1_200)
    assert warren.count("replayed") == 1_200
    with pytest.raises(ValueError, match=r"was started with another selection.*Use another name"):
        send(**wanted, where="priority = 1")


@pytest.mark.versions
def test_a_dry_run_reports_what_would_be_published_and_publishes_nothing(
    warren: BrokerUnderTest, send: Replay
) -> None:
    reported = send(
        name="dry", dry_run=True, queues=["replay a/b=ü"], headers={"n": "5"}, samples=2,
        where="priority = 3 and cast(body as string) like '%3'",
    )  # fmt: skip
    assert (reported.rows, reported.exchanges, reported.sent, len(reported.samples)) == (60, {"": 60}, 0, 2)
    assert {row["queue"] for row in reported.samples} == {"replay a/b=ü"}
    assert reported.first is not None
    assert reported.last is not None
    assert send(name="dry", dry_run=True, message_ids=["7", "8"], samples=0).rows == 4
    assert send(name="dry", dry_run=True, until=reported.first, samples=0).rows == 0
    assert send(name="dry", dry_run=True, since=reported.first, samples=0).rows == 1_200


def test_messages_are_replayed_to_their_own_queues_by_default(
    spark: SparkSession, warren: BrokerUnderTest, lake: Path, send: Replay
) -> None:
    warren.declare("replay-c")
    name = "own"
    done = send(name=name, queues=["replay-c"], message_ids=["1", "2", "3"], rate=1)
    assert (done.rows, done.batches) == (3, 1)
    assert [row["body"] for row in waiting(warren, "replay-c")] == [
        b"replay-c 1",
        b"replay-c 2",
        b"replay-c 3",
    ]


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"where": "nothing = 1"}, "where='nothing = 1' is not a condition over queue"),
        ({"since": "yesterday"}, "since must be a time as ISO 8601"),
        ({"rate": 0}, "rate must be a number of messages per second above 0, not 0"),
        ({"user_ids": "guess"}, "user_ids must be check, keep or drop, not 'guess'"),
        ({"name": ""}, "a replay needs a name"),
    ],
)
def test_an_impossible_replay_is_refused_with_the_reason(
    send: Replay, given: dict[str, Any], reported: str
) -> None:
    with pytest.raises(ValueError, match=reported):
        send(**({"name": "wrong"} | given))


def test_a_missing_exchange_fails_the_replay(send: Replay) -> None:
    with pytest.raises(PySparkException, match="nowhere"):
        send(name="lost", exchange="nowhere", message_ids=["1"])
