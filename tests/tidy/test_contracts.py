"""The import contracts hold, and they detect an upward import and an import of I/O below the waterline."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
from tests.tidy.sources import ROOT, text

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
    (source / "simulation" / "real.py").write_text("import time\n")
    (source / "node" / "sparkling.py").write_text("import pyspark_warren\n")
    (source.with_name("pyspark_warren") / "inside.py").write_text("import warren.flow.credit\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    broken = re.findall(r"^(The [\w ]+?)(?:[:/] ?.*)? BROKEN\b", result.stdout, re.MULTILINE)
    assert broken == [
        "The stack", "The waterline", "The simulation does no I", "The connector stands apart",
        "The broker needs no Spark",
    ]  # fmt: skip


def test_the_architecture_counts_the_pairs_of_packages_that_import_each_other() -> None:
    graph = grimp.build_graph("warren", exclude_type_checking_imports=False)
    pairs = {
        (one, other)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if (one := _package(module)) and (other := _package(imported)) and one != other
    }
    found = re.search(r"(\d+) pairs", text(ROOT / "ARCHITECTURE.md"))
    assert found is not None
    assert int(found[1]) == len(pairs)


def _package(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]
