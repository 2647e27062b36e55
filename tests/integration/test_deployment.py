"""The files of deploy/: a valid systemd unit, and a valid configuration."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.broker_process import broker

SYSTEMD = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
ANALYZE = shutil.which("systemd-analyze")
# The exposure that systemd-analyze reports for a service with network access only; 10 is unprotected.
EXPOSURE_MAX = 2.0


def analyzed(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """The output of systemd-analyze for the unit, whose program is replaced by one that exists."""
    unit = folder / "warren.service"
    unit.write_text((SYSTEMD / "warren.service").read_text().replace("/opt/warren/bin/warren", "/bin/true"))
    return subprocess.run([str(ANALYZE), *command, str(unit)], capture_output=True, text=True, check=False)


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit_without_warnings(tmp_path: Path) -> None:
    verified = analyzed(tmp_path, "verify", "--man=no", "--recursive-errors=no")
    assert (verified.returncode, verified.stderr) == (0, "")


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_the_unit_restricts_the_privileges_of_the_broker(tmp_path: Path) -> None:
    judged = analyzed(
        tmp_path, "security", "--offline=yes", "--no-pager", f"--threshold={int(EXPOSURE_MAX * 10)}"
    )
    assert judged.returncode == 0, judged.stdout


def test_the_broker_accepts_the_supplied_configuration(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path), config=SYSTEMD / "warren.conf") as started:
        assert set(started.ports) == {"amqp", "http", "http/prometheus", "stream"}
        assert not [line for line in started.lines if "[warning]" in line]
