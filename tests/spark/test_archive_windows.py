"""Each message is in the lake once, wherever between two commits the driver, an executor or the broker is
killed.
"""

import signal
from pathlib import Path

import pyarrow.dataset
import pytest
from deltalake import DeltaTable
from tests.spark.archived import BATCH_ROWS
from tests.spark.brokers import STREAM
from tests.spark.killing import counted, restarted_broker, run

BATCHES = 9
# Spark is started up to six times: seconds for each, and a minute and more on a busy machine.
WINDOWS_S_MAX = 1_800
# Where the driver is killed, and how many batches are in the lake then.
DRIVER = {"planned:1": 1, "reading:2": 2, "written:3": 3, "committed:4": 5}
SETTLING = {"settling:4": 5, "settled:4": 5}
LEASED = {"planned:1": 1, "reading:2": 2, "committed:4": 5} | SETTLING
# In the last run the driver is not killed: the query must survive the end of other processes.
OTHERS = {
    "reading:5": "worker", "planned:6": "broker", "reading:6": "executor", "settling:6": "broker",
    "reading:7": "broker", "settled:7": "broker", "committed:8": "broker",
}  # fmt: skip


def archived(lake: Path, kind: str) -> list[bytes]:
    """The bodies that an independent reader finds."""
    if kind == "delta":
        table = DeltaTable(str(lake)).to_pyarrow_table(columns=["body"])
    else:
        table = pyarrow.dataset.dataset(lake, format="parquet", partitioning="hive").to_table(["body"])
    bodies: list[bytes] = table["body"].to_pylist()
    return bodies


@pytest.mark.long
@pytest.mark.timeout(WINDOWS_S_MAX)
@pytest.mark.parametrize(
    ("source", "kind", "windows"),
    [
        ("stream", "delta", DRIVER),
        ("stream", "parquet", DRIVER),
        ("leases", "delta", LEASED),
        ("leases", "parquet", {"committed:4": 5} | SETTLING),
    ],
    ids=["stream-delta", "stream-parquet", "leases-delta", "leases-parquet"],
)
def test_each_message_is_in_the_lake_once_whichever_process_is_killed_in_a_window(
    tmp_path: Path, source: str, kind: str, windows: dict[str, int]
) -> None:
    marks, lake, log = tmp_path / "marks", tmp_path / "lake", tmp_path / "query.log"
    marks.mkdir()
    sent = [b"%d" % number for number in range(BATCHES * BATCH_ROWS)]
    with restarted_broker(tmp_path, marks) as place:
        place.declare("events", STREAM if source == "stream" else {})
        place.publish("events", sent)

        def run_to(killed: dict[str, str]) -> int:
            return run("archived.py", tmp_path, place.options, str(lake), kind, str(marks), killed)

        for window, batches in windows.items():
            assert run_to({window: "driver"}) == -signal.SIGKILL, log.read_text()
            assert (marks / window).exists(), window
            rows = batches * BATCH_ROWS
            assert counted(archived(lake, kind)) == (rows, rows), f"rows, and those that differ, at {window}"
        assert run_to(OTHERS) == 0, log.read_text()
        for window in OTHERS:
            assert (marks / window).exists() == (source == "leases" or "settl" not in window), window
        if source == "leases":
            assert place.count("events") == 0
    found = archived(lake, kind)
    assert counted(found) == (len(sent), len(sent)), "rows in the lake, and those that differ"
    assert set(found) == set(sent)
    assert "repeated 4 0" in log.read_text().splitlines()
