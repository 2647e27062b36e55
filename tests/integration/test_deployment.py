"""What deploy/ has for a machine: a unit that systemd understands, and settings that the broker takes."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.broker_process import broker

SYSTEMD = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
ANALYZE = shutil.which("systemd-analyze")
# What one may find of a service that is exposed to nobody but by its ports; 10 is unprotected.
EXPOSURE_MAX = 2.0


def analyzed(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What systemd says of the unit; its program is one that is there."""
    unit = folder / "warren.service"
    unit.write_text((SYSTEMD / "warren.service").read_text().replace("/opt/warren/bin/warren", "/bin/true"))
    return subprocess.run([str(ANALYZE), *command, str(unit)], capture_output=True, text=True, check=False)


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_systemd_finds_nothing_to_say_of_the_unit(tmp_path: Path) -> None:
    verified = analyzed(tmp_path, "verify", "--man=no", "--recursive-errors=no")
    assert (verified.returncode, verified.stderr) == (0, "")


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_the_unit_gives_the_broker_no_more_than_it_needs(tmp_path: Path) -> None:
    judged = analyzed(
        tmp_path, "security", "--offline=yes", "--no-pager", f"--threshold={int(EXPOSURE_MAX * 10)}"
    )
    assert judged.returncode == 0, judged.stdout


def test_the_settings_that_come_with_it_are_taken(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path), config=SYSTEMD / "warren.conf") as started:
        assert set(started.ports) == {"amqp", "http", "http/prometheus", "stream"}
        assert not [line for line in started.lines if "[warning]" in line]
