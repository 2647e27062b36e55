"""Generated files are checked in and current."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.tidy.sources import ROOT, is_generated, modules, text

GENERATORS = sorted((ROOT / "tools").glob("generate_*.py"))


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda path: path.stem)
def test_the_generated_file_is_current(generator: Path) -> None:
    command = [sys.executable, str(generator), "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_generated_module_has_its_generator() -> None:
    named = {path.name for path in GENERATORS}
    for path in modules():
        if is_generated(path):
            assert any(f"tools/{name}" in text(path) for name in named), path
