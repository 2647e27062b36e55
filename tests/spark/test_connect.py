"""Pipelines on Spark Connect: what they are made of needs no JVM in their own process."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.spark.brokers import STREAM, Place
from tests.spark.commands import COMMAND_S_MAX

import pyspark_warren

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(find_spec("grpc") is None, reason="grpcio is not installed, which Spark Connect needs")
def test_reports_and_sql_run_on_spark_connect(warren: Place) -> None:
    warren.declare("connect.dead")
    warren.declare("connect.measured", STREAM)
    # What is no text comes as well: Spark Connect cannot send it as it is.
    warren.publish("connect.dead", [b"a", b"a", b"\xff"])
    warren.publish("connect.measured", [b"12345678"] * 20)
    source = Path(pyspark_warren.__file__).resolve().parents[1]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.spark.connected", json.dumps(warren.options), "connect.dead",
         "connect.measured"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"},
        capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["kind"].startswith("pyspark.sql.connect")
    assert [(row["messages"], row["deaths"]) for row in found["deaths"]] == [(3, None)]
    assert sum(row["messages"] for row in found["windows"]) == 20
    assert {row["size_p50"] for row in found["windows"]} == {8}
    assert found["rows"] == [{"body": "a", "n": 2}, {"body": "\ufffd", "n": 1}]
