"""Each commit tries all targets with the inputs from which they begin; `make fuzz` goes on from these."""

import subprocess
import sys
from pathlib import Path

from tests.fuzz.targets import TARGETS

PROGRAM = Path(__file__).resolve().parents[1] / "fuzz" / "run.py"


def test_fuzz_targets_accept_the_inputs_from_which_they_begin() -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM, "--begin"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == list(TARGETS)
