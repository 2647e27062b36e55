"""Every row arrives once, wherever between two commits a query is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.brokers import STREAM, Place

from pyspark_warren.options import read_options
from pyspark_warren.partitions import BrowsePart

ROOT = Path(__file__).resolve().parents[2]
ROWS = 3_000
RUN_S_MAX = 280


def run(place: Place, folder: Path, window: str) -> int:
    """Run the query in a process of its own; how that ended."""
    command = [
        sys.executable, str(Path(__file__).with_name("killed.py")), json.dumps(place.options),
        str(folder / "checkpoint"), str(folder / "mark"), window,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with (folder / "query.log").open("ab") as log:
        return subprocess.run(
            command, cwd=folder, env=environment, stdout=log, stderr=log, timeout=RUN_S_MAX
        ).returncode


def arrived(place: Place) -> list[bytes]:
    """The bodies that wait in `out`."""
    options = read_options(place.options | {"queue": "out", "mode": "browse"})
    return [row["body"] for batch in BrowsePart("out").read(options, ("body",)) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "window"),
    [("stream", "staged"), ("stream", "decided"), ("stream", "committed"), ("classic", "committed")],
)
def test_a_query_that_is_killed_in_a_window_publishes_each_row_once(
    warren: Place, tmp_path: Path, kind: str, window: str
) -> None:
    sent = [b"%d" % number for number in range(ROWS)]
    warren.declare("events", STREAM if kind == "stream" else {})
    warren.declare("out")
    warren.publish("events", sent)
    log = tmp_path / "query.log"
    assert run(warren, tmp_path, window) == -signal.SIGKILL, log.read_text()
    assert (tmp_path / "mark").exists()
    before = len(arrived(warren))
    assert before == (2_000 if window == "committed" else 1_000)
    assert run(warren, tmp_path, window) == 0, log.read_text()
    found = arrived(warren)
    assert len(found) == ROWS
    assert sorted(found) == sorted(sent)
