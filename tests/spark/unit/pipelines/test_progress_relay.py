"""What is told in one process arrives in another, each line once and whole."""

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
class Told:
    """Something."""

    number: int


def test_a_relay_gives_what_was_told_elsewhere_once_and_leaves_nothing(tmp_path: Path) -> None:
    relay = ProgressRelay(tmp_path / "told")
    assert list(relay.take()) == []
    relay(Told(1))
    assert list(relay.take()) == [{"number": 1}]
    subprocess.run([sys.executable, "-c", PROGRAM], input=pickle.dumps(relay), check=True)
    # A line that is still being written comes when it is whole.
    with (tmp_path / "told" / "told.jsonl").open("a") as lines:
        lines.write('{"number"')
        lines.flush()
        assert list(relay.take()) == [{"batch": 7, "good": 1, "bad": 2}]
        lines.write(": 3}\n")
    assert list(relay.take()) == [{"number": 3}]
    relay.close()
    assert list(tmp_path.iterdir()) == []


def test_the_id_of_a_query_is_what_its_checkpoint_says(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "5b2d"}))
    assert query_id(tmp_path) == "5b2d"
    with pytest.raises(FileNotFoundError):
        query_id(tmp_path / "other")
