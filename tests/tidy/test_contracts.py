"""The import contracts hold, and they bite: an import upwards, or of the world, breaks them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tidy.sources import ROOT

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from importlinter.cli import lint_imports_command as run; run()",
]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "--no-cache", "--no-logo"], cwd=root, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def test_the_contracts_are_kept() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("wire/__init__.py", "import asyncio"),
        ("session/__init__.py", "import time"),
        ("routing/__init__.py", "import warren.vhost"),
        ("queues/__init__.py", "import warren.routing"),
    ],
)
def test_a_forbidden_import_breaks_a_contract(tmp_path: Path, module: str, statement: str) -> None:
    shutil.copytree(
        ROOT / "src" / "warren", tmp_path / "src" / "warren", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "src" / "warren" / module).open("a") as file:
        file.write(f"{statement}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert "BROKEN" in result.stdout
