"""Each message is in the lake once, wherever between two commits driver, executor or broker is killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset
import pytest
from deltalake import DeltaTable
from tests.broker import Warren, free_port, start_warren, stop
from tests.spark.archived import BATCH_ROWS
from tests.spark.brokers import STREAM, Place

ROOT = Path(__file__).resolve().parents[2]
BATCHES = 9
RUN_S_MAX = 280
# Five times Spark is started: seconds for each, and a minute and more beside other work.
WINDOWS_S_MAX = 1_500
# In the last run nobody ends the query: it has to do with what happens to the others.
OTHERS = {"reading:5": "worker", "planned:6": "broker", "reading:7": "broker", "committed:8": "broker"}


@contextlib.contextmanager
def restarted_broker(folder: Path, marks: Path) -> Iterator[Place]:
    """A Warren that is started again when it is killed; `marks/broker` is its process."""
    port, management = free_port(), free_port()
    (folder / "warren.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{port}\n")
    arguments = ("--config", "warren.conf", "--data-dir", "data", "--management-port", str(management))
    is_over = threading.Event()
    running: list[Warren] = []

    def start() -> Warren:
        broker = start_warren(folder, port, *arguments)
        (marks / "broker").write_text(str(broker.process.pid))
        running[:] = [broker]
        return broker

    def watch(broker: Warren) -> None:
        while True:
            broker.process.wait()
            if is_over.is_set():
                return
            broker = start()

    thread = threading.Thread(target=watch, args=(start(),))
    thread.start()
    try:
        yield Place(port, management)
    finally:
        is_over.set()
        stop(running[0].process)
        thread.join()


def run(place: Place, folder: Path, kind: str, windows: dict[str, str]) -> int:
    """Archive in a process of its own; how that ended."""
    command = [
        sys.executable, str(Path(__file__).with_name("archived.py")), json.dumps(place.options),
        str(folder / "lake"), kind, str(folder / "marks"), json.dumps(windows),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with (folder / "archive.log").open("ab") as log:
        return subprocess.run(
            command, cwd=folder, env=environment, stdout=log, stderr=log, timeout=RUN_S_MAX
        ).returncode


def archived(lake: Path, kind: str) -> list[bytes]:
    """The bodies that are there for a reader who knows nothing of us."""
    if kind == "delta":
        table = DeltaTable(str(lake)).to_pyarrow_table(columns=["body"])
    else:
        table = pyarrow.dataset.dataset(lake, format="parquet", partitioning="hive").to_table(["body"])
    bodies: list[bytes] = table["body"].to_pylist()
    return bodies


# Where the driver is killed, and how many batches are in the lake then.
STREAM_WINDOWS = {"planned:1": 1, "reading:2": 2, "written:3": 3, "committed:4": 5}
SHORT_WINDOWS = {"written:3": 3, "committed:4": 5}
LEASE_WINDOWS = {"committed:4": 5, "settling": 5, "settled": 5}


@pytest.mark.timeout(WINDOWS_S_MAX)
@pytest.mark.parametrize(
    ("source", "kind", "windows"),
    [
        ("stream", "delta", STREAM_WINDOWS),
        ("stream", "parquet", SHORT_WINDOWS),
        ("classic", "delta", LEASE_WINDOWS),
    ],
)
def test_each_message_is_in_the_lake_once_whoever_is_killed_in_a_window(
    tmp_path: Path, source: str, kind: str, windows: dict[str, int]
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    sent = [b"%d" % number for number in range(BATCHES * BATCH_ROWS)]
    log = tmp_path / "archive.log"
    with restarted_broker(tmp_path, marks) as place:
        place.declare("events", STREAM if source == "stream" else {})
        place.publish("events", sent)
        for window, batches in windows.items():
            assert run(place, tmp_path, kind, {window: "driver"}) == -signal.SIGKILL, log.read_text()
            assert (marks / window).exists(), window
            assert len(archived(tmp_path / "lake", kind)) == batches * BATCH_ROWS, window
        assert run(place, tmp_path, kind, OTHERS) == 0, log.read_text()
        for window in OTHERS:
            assert (marks / window).exists(), window
        if source == "classic":
            assert place.count("events") == 0
    found = archived(tmp_path / "lake", kind)
    assert len(found) == len(sent)
    assert set(found) == set(sent)
    assert "repeated 4 0" in log.read_text().splitlines()
