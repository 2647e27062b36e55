"""The demo runs from a shop's traffic to a report, and leaves no process running."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.user_environment import user_environment

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def warren(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command that starts a broker, in an environment as `make demo` creates it."""
    return user_environment(tmp_path_factory.mktemp("broker") / "environment") / "warren"


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "demo/run.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.long
def test_a_shop_sells_is_archived_and_reported_on(tmp_path: Path, warren: Path) -> None:
    done = demo("--seconds", "5", "--folder", str(tmp_path / "demo"), "--warren", str(warren))
    assert done.returncode == 0, done.stderr
    closed = re.search(r"Closed: (\d+) orders, (\d+) paid, (\d+) declined", done.stdout)
    assert closed is not None
    ordered, paid, declined = map(int, closed.groups())
    assert ordered > 20
    # Each event once: an order, and its payment or refusal.
    assert f"Archived {ordered + paid + declined} events" in done.stdout
    assert re.search(rf"charged +p50_ms +p99_ms\n +{paid} ", done.stdout)
    chart = done.stdout.partition("Orders over the day\n")[2].partition("\n\n")[0]
    assert sum(int(line.split()[-1]) for line in chart.splitlines()) == ordered
    [sql] = re.findall(r"'(SELECT .*)'", done.stdout)
    assert "lake.`" in sql
    assert (tmp_path / "demo" / "lake" / "_delta_log").is_dir()
    assert "stopped" in (tmp_path / "demo" / "warren.log").read_text()


def test_a_demo_without_a_broker_says_what_is_wrong(tmp_path: Path) -> None:
    done = demo("--folder", str(tmp_path / "demo"), "--warren", "/bin/false")
    assert done.returncode == 1
    assert done.stderr == "demo: Warren did not start: /bin/false\n"
