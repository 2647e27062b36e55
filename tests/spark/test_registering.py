"""Registering the source in a session that does not find it by itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.brokers import BrokerUnderTest
from tests.spark.commands import COMMAND_S_MAX

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = r"""
import json, re, sys
from tests.spark.conftest import session
import warren.spark

spark = session("registering", "local[1]")

def read():
    reader = spark.read.format("warren").options(**json.loads(sys.argv[1]))
    return [bytes(row.body).decode() for row in reader.load("registered").collect()]

try:
    read()
except Exception as error:
    print(re.search(r"\[([A-Z_]+)\]", str(error))[1])
warren.spark.register(spark)
print(read())
spark.stop()
"""


@pytest.mark.long
def test_a_session_with_a_broken_module_reads_a_queue_after_registering_the_source(
    warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("registered")
    warren.publish("registered", [b"1", b"2"])
    # Spark ignores all modules of such names if it cannot import one of them.
    (tmp_path / "pyspark_broken.py").write_text("raise RuntimeError('broken')\n")
    path = os.pathsep.join(map(str, (tmp_path, ROOT / "src", ROOT)))
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(warren.options)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=COMMAND_S_MAX,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["DATA_SOURCE_NOT_FOUND", "['1', '2']"]
