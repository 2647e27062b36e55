"""The import contracts hold, and they bite: an import upwards, or of the world, breaks them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

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


def test_forbidden_imports_break_the_contracts(tmp_path: Path) -> None:
    source = tmp_path / "src" / "warren"
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "static"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (source / "wire" / "clockwork.py").write_text("import asyncio\n")
    (source / "queues" / "sideways.py").write_text("import warren.routing\n")
    (source / "node" / "sparkling.py").write_text("import pyspark_warren\n")
    (source.with_name("pyspark_warren") / "inside.py").write_text("import warren.model.names\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    broken = re.findall(r"^(The [\w ]+?)(?:: .*)? BROKEN\b", result.stdout, re.MULTILINE)
    assert broken == ["The stack", "The waterline", "The connector stands apart", "The broker needs no Spark"]
