"""Pipelines on Spark Connect, which need no JVM in their own process."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from deltalake import DeltaTable
from tests.spark.brokers import STREAM, BrokerUnderTest, rows_of
from tests.spark.commands import COMMAND_S_MAX

import pyspark_warren

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    find_spec("grpc") is None, reason="grpcio is not installed, which Spark Connect needs"
)


def connected(module: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The last line that a program with its own server has printed."""
    source = Path(pyspark_warren.__file__).resolve().parents[1]
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"},
        capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    assert found["kind"].startswith("pyspark.sql.connect")
    return found


def waiting(place: BrokerUnderTest, queue: str) -> list[bytes]:
    """The bodies in a queue."""
    return [row["body"] for row in rows_of(place, queue)]


@pytest.mark.long
@pytest.mark.versions
def test_reports_and_sql_run_on_spark_connect(warren: BrokerUnderTest) -> None:
    warren.declare("connect.dead")
    warren.declare("connect.measured", STREAM)
    # Strings that are not valid UTF-8 arrive too: Spark Connect cannot send them unchanged.
    warren.publish("connect.dead", [b"a", b"a", b"\xff"])
    warren.publish("connect.measured", [b"12345678"] * 20)
    found = connected(
        "tests.spark.connected", [json.dumps(warren.options), "connect.dead", "connect.measured"]
    )
    assert [(row["messages"], row["deaths"]) for row in found["deaths"]] == [(3, None)]
    assert sum(row["messages"] for row in found["windows"]) == 20
    assert {row["size_p50"] for row in found["windows"]} == {8}
    assert found["rows"] == [{"body": "a", "n": 2}, {"body": "\ufffd", "n": 1}]


@pytest.mark.long
def test_archive_replay_and_decode_write_each_message_once_on_spark_connect(
    warren: BrokerUnderTest, tmp_path: Path
) -> None:
    sent = [b"%d" % number for number in range(40)]
    warren.declare("connect.events", STREAM)
    warren.publish("connect.events", sent)
    for queue in ("connect.json", "connect.again", "connect.bad"):
        warren.declare(queue)
    warren.publish("connect.json", [b'{"id":1}', b"nope", b'{"id":2}'])
    found = connected("tests.spark.connected_writing", [json.dumps(warren.options), str(tmp_path)])

    assert found["archive killed"], found
    assert found["archive"]["status"] == 0, found["archive"]
    reported = [json.loads(line) for line in found["archive"]["out"].splitlines()]
    assert [(one["stage"], one["batch"]) for one in reported] == [("planned", 0), ("repeated", 0)]
    archived = DeltaTable(str(tmp_path / "lake")).to_pyarrow_table(columns=["body"])["body"].to_pylist()
    assert sorted(archived) == sorted(sent)

    assert found["replay"]["status"] == 0, found["replay"]
    runs = [json.loads(found[run]["out"].splitlines()[-1]) for run in ("replay", "replay again")]
    assert [(one["rows"], one["sent"]) for one in runs] == [(40, 40), (40, 0)]
    assert waiting(warren, "connect.again") == sent

    assert found["decode killed"], found
    assert found["decode"]["status"] == 0, found["decode"]
    assert "batch 0: 2 decoded, 1 do not match" in found["decode"]["err"]
    decoded = pyarrow.dataset.dataset(sorted((tmp_path / "json").glob("batch=*/*.parquet"))).to_table()
    assert sorted(decoded["id"].to_pylist()) == [1, 2]
    assert waiting(warren, "connect.bad") == [b"nope"]
    assert warren.count("connect.json") == 0
    assert found["left"] == []
