"""The project that `warren spark init` writes, read by Spark's own command."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.spark.brokers import STREAM, BrokerUnderTest
from tests.spark.commands import COMMAND_S_MAX, run

import pyspark_warren

SPARK_PIPELINES = Path(sys.executable).with_name("spark-pipelines")


@pytest.mark.long
@pytest.mark.versions
@pytest.mark.since((4, 1), "declarative pipelines")
@pytest.mark.skipif(
    find_spec("grpc") is None or not SPARK_PIPELINES.exists(), reason="spark-pipelines cannot run here"
)
def test_spark_accepts_the_written_project(warren: BrokerUnderTest, tmp_path: Path) -> None:
    warren.declare("declared", STREAM)
    folder = tmp_path / "declared"
    assert run(warren, "init", str(folder), "--stream", "declared").returncode == 0
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": SOURCE,
        "WARREN_AMQP_URI": warren.options["uri"],
        "WARREN_URI": warren.options["managementUri"],
    }
    ended = subprocess.run(
        [SPARK_PIPELINES, "dry-run"], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Run is COMPLETED." in ended.stdout


SOURCE = str(Path(pyspark_warren.__file__).resolve().parents[1])
