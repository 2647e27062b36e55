"""Each message of a lake is published once, wherever a replay is killed."""

import json
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.brokers import STREAM, BrokerUnderTest, rows_of
from tests.spark.killing import counted, run
from tests.spark.replayed import BATCH_ROWS, send

from pyspark_warren.pipelines.archive import archive

BATCHES = 4
# Where the driver is killed, how many batches are published then, and how many it has recorded.
WINDOWS = {"staged:0": (0, 0), "decided:1": (1, 1), "sent:2": (3, 2)}


@pytest.mark.long
def test_a_replay_that_is_killed_in_a_window_publishes_each_message_once(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    marks, lake, log = tmp_path / "marks", tmp_path / "lake", tmp_path / "query.log"
    marks.mkdir()
    sent = [b"%d" % number for number in range(BATCHES * BATCH_ROWS)]
    for queue, arguments in (("replay-events", STREAM), ("replayed", None)):
        warren.declare(queue, arguments)
    warren.publish("replay-events", sent)
    options = warren.options
    query = archive(
        spark, lake, queue="replay-events", uri=options["uri"], management_uri=options["managementUri"],
        once=True,
    )  # fmt: skip
    assert query.awaitTermination(200)
    for window, (batches, noted) in WINDOWS.items():
        ended = run("replayed.py", tmp_path, options, str(lake), str(marks), {window: "driver"})
        assert ended == -signal.SIGKILL, log.read_text()
        assert (marks / window).exists(), window
        (plan,) = (lake / "_warren" / "replays").glob("*/plan.json")
        assert json.loads(plan.read_text())["done"] == noted, window
        rows = batches * BATCH_ROWS
        found = [row["body"] for row in rows_of(warren, "replayed")]
        assert counted(found) == (rows, rows), f"rows that were sent, and those that differ, at {window}"
    done = send(spark, lake, options)
    # The third batch is sent again, and the broker recognises it.
    assert (done.sent, done.sent_before) == (2 * BATCH_ROWS, 2 * BATCH_ROWS)
    found = [row["body"] for row in rows_of(warren, "replayed")]
    assert counted(found) == (len(sent), len(sent)), "rows that were sent, and those that differ"
    assert found == sent
