"""src/warren/wire/methods.py is what tools/methods.toml says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_methods_are_generated_from_the_table() -> None:
    check = subprocess.run(
        [sys.executable, "tools/generate_methods.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert check.returncode == 0, check.stdout + check.stderr
