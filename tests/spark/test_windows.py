"""What arrives when a query is killed between two commits: each row once, or twice where that is
documented.
"""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.spark.brokers import STREAM, BrokerUnderTest, rows_of
from tests.spark.killed import BATCH_ROWS
from tests.spark.killing import (
    RUN_S_MAX,
    counted,
    kill_broker,
    kill_driver,
    restarted_broker,
    run,
    started,
    wait_until,
)

from pyspark_warren.http import HttpApi, path

# Spark is started up to five times: seconds for each, and a minute and more on a busy machine.
WINDOWS_S_MAX = 1_500
BATCHES = 8
# The size of a batch that is interrupted during its commit: not a multiple of the slices that a broker
# publishes.
PART = 300
PATIENT = {"retries": "30"}
# Where the driver is killed, and how many batches are committed then.
DRIVER = {"staged:1": 1, "decided:2": 2, "committed:3": 4}
# In the last run the driver is not killed.
OTHERS = {"staged:5": "worker", "staging:6": "broker", "staged:6": "executor"}


class LimitedQueue:
    """Limits the queue `out`, so that a commit waits in the middle of a batch."""

    def __init__(self, place: BrokerUnderTest, batches: int) -> None:
        self._management = HttpApi(place.broker)
        self._place = place
        self.rows = batches * BATCH_ROWS + PART
        limit = {"max-length": self.rows, "overflow": "reject-publish"}
        place.put(path("policies", "/", "full"), {"pattern": "^out$", "definition": limit})

    def wait(self) -> None:
        """Return when a commit waits, and `out` is full."""
        wait_until(lambda: self._published() == [PART], f"{PART} rows of a batch are published")
        assert self._place.count("out") == self.rows

    def end(self) -> None:
        """Remove the limit."""
        self._management.delete(path("policies", "/", "full"), {})

    def _published(self) -> list[int]:
        return [one["published"] for one in self._management.get(path("warren", "staged"))]


def declare(place: BrokerUnderTest) -> None:
    """Declare a queue and a stream that both receive what is published to `sent`."""
    place.fan_out("sent", {"out": {}, "out-stream": STREAM})


def arrived(place: BrokerUnderTest, queue: str) -> list[bytes]:
    """The bodies that arrived."""
    return [row["body"] for row in rows_of(place, queue)]


def kill_in_a_commit(place: BrokerUnderTest, folder: Path, arguments: tuple[Any, ...], batch: int) -> int:
    """Kill the broker when it has published a part of `batch`; without other windows, the driver before."""
    full, marks = LimitedQueue(place, batch), folder / "marks"
    with started("killed.py", folder, *arguments) as process:
        full.wait()
        if not arguments[-1]:
            kill_driver(marks)
        before = (marks / "broker").read_text()
        kill_broker(marks)
        wait_until(lambda: (marks / "broker").read_text() != before, "the broker is back")
        # What is in the log is recovered, and of the batch only the remaining rows are published.
        full.wait()
        full.end()
        return process.wait(RUN_S_MAX)


@pytest.mark.timeout(WINDOWS_S_MAX)
@pytest.mark.parametrize(
    ("source", "windows"),
    [
        pytest.param("stream", DRIVER, marks=pytest.mark.long, id="stream"),
        pytest.param("leases", {"committed:3": 4}, id="leases"),
    ],
)
def test_each_row_is_published_once_whichever_process_is_killed_in_a_window(
    tmp_path: Path, source: str, windows: dict[str, int]
) -> None:
    marks, log = tmp_path / "marks", tmp_path / "query.log"
    marks.mkdir()
    sent = [b"%d" % number for number in range(BATCHES * BATCH_ROWS)]
    with restarted_broker(tmp_path, marks) as place:
        declare(place)
        place.declare("events", STREAM if source == "stream" else {})
        place.publish("events", sent)
        read = place.options | PATIENT | {"minPartitions": "2"}
        write = place.options | PATIENT | {"exchange": "sent", "txn": "staged"}
        reported = (read, write, str(tmp_path / "checkpoint"), str(marks))

        def check(rows: int, where: str) -> None:
            for queue in ("out", "out-stream"):
                found = arrived(place, queue)
                assert counted(found) == (rows, rows), f"rows in {queue}, and those that differ, at {where}"

        for window, batches in windows.items():
            assert run("killed.py", tmp_path, *reported, {window: "driver"}) == -signal.SIGKILL, (
                log.read_text()
            )
            assert (marks / window).exists(), window
            check(batches * BATCH_ROWS, window)
        if source == "stream":
            assert kill_in_a_commit(place, tmp_path, (*reported, {}), 4) == -signal.SIGKILL
            # It is decided: the broker publishes the rest by itself.
            wait_until(lambda: place.count("out") == 5 * BATCH_ROWS, "the rest of the batch is published")
            check(5 * BATCH_ROWS, "in a commit, without a driver")
        assert kill_in_a_commit(place, tmp_path, (*reported, OTHERS), 7) == 0, log.read_text()
        for window in OTHERS:
            assert (marks / window).exists(), window
        check(len(sent), "the end")
        assert set(arrived(place, "out")) == set(sent)
        if source == "leases":
            assert place.count("events") == 0


@pytest.mark.long
@pytest.mark.timeout(WINDOWS_S_MAX)
def test_over_plain_amqp_unacknowledged_messages_are_repeated_and_none_is_lost(tmp_path: Path) -> None:
    marks, log = tmp_path / "marks", tmp_path / "query.log"
    marks.mkdir()
    sent = [b"%d" % number for number in range(6 * BATCH_ROWS)]
    with restarted_broker(tmp_path, marks) as place:
        for queue in ("events", "out"):
            place.declare(queue)
        place.publish("events", sent)
        read = place.options | PATIENT | {"mode": "classic", "minPartitions": "2"}
        write = place.options | PATIENT | {"queue": "out", "txn": "dedupe"}
        reported = ("killed.py", tmp_path, read, write, str(tmp_path / "checkpoint"), str(marks))
        windows = {"staged:1": "worker", "committed:2": "broker", "committed:4": "driver"}
        assert run(*reported, windows) == -signal.SIGKILL, log.read_text()
        assert run(*reported, {}) == 0, log.read_text()
        for window in windows:
            assert (marks / window).exists(), window
        found = rows_of(place, "out")
        assert place.count("events") == 0
    # A task sends its rows with equal identifiers again. Messages redelivered from the queue are in another
    # batch.
    names = Counter(dict(row["headers"])["x-spark-txn"] for row in found)
    again = {name.rpartition(":")[0] for name, count in names.items() if count == 2}
    task = sum(names.values()) - len(names)
    assert [name.split(":")[1] for name in again] == ["1"], names
    assert 0 < task <= BATCH_ROWS
    # One batch was unacknowledged when the connection broke, and one when the driver was killed.
    bodies = [row["body"] for row in found]
    expected = (len(sent) + task + 2 * BATCH_ROWS, len(sent))
    assert counted(bodies) == expected, "rows that were published, and those that differ"
    assert set(bodies) == set(sent)
