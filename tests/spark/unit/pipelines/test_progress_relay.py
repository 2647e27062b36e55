"""Progress messages of one process are relayed to another, each once and complete."""

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyspark_warren.pipelines.progress_relay import ProgressRelay, query_id

PROGRAM = """
import pickle, sys
from pyspark_warren.pipelines.decode import DecodeProgress
pickle.load(sys.stdin.buffer)(DecodeProgress(batch=7, good=1, bad=2))
"""


@dataclass(frozen=True)
class ProgressMessage:
    """An example of a progress message."""

    number: int


def test_a_relay_returns_messages_of_another_process_once_and_leaves_nothing(tmp_path: Path) -> None:
    relay = ProgressRelay(tmp_path / "told")
    assert list(relay.take()) == []
    relay(ProgressMessage(1))
    assert list(relay.take()) == [{"number": 1}]
    subprocess.run([sys.executable, "-c", PROGRAM], input=pickle.dumps(relay), check=True)
    # A line that is still being written is returned when it is complete.
    with (tmp_path / "told" / "told.jsonl").open("a") as lines:
        lines.write('{"number"')
        lines.flush()
        assert list(relay.take()) == [{"batch": 7, "good": 1, "bad": 2}]
        lines.write(": 3}\n")
    assert list(relay.take()) == [{"number": 3}]
    relay.close()
    assert list(tmp_path.iterdir()) == []


def test_the_id_of_a_query_is_that_of_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "5b2d"}))
    assert query_id(tmp_path) == "5b2d"
    with pytest.raises(FileNotFoundError):
        query_id(tmp_path / "other")
