"""The measured tables of the README and the guide equal the newest file of bench/history."""

import ast
import importlib
import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.tidy.sources import ROOT, tree

PAGES = ("README.md", "docs/guide/benchmarks.md")
FIELDS = {"measured_at", "commit", "command", "machine", "conditions", "plan", "versions", "figures"}


def check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "bench" / "report.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_tables_are_those_of_the_newest_measurement() -> None:
    answer = check(ROOT)
    assert answer.returncode == 0, f"{answer.stdout}{answer.stderr}\npython bench/report.py writes them"


def test_a_table_that_differs_from_its_measurement_is_detected(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    for page in PAGES:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
    assert check(tmp_path).returncode == 0
    page = tmp_path / PAGES[1]
    page.write_text(page.read_text().replace(" x |", " times |", 1))
    answer = check(tmp_path)
    assert (answer.returncode, answer.stdout) == (1, f"out of date: {PAGES[1]}\n")


def test_every_file_of_the_history_records_time_machine_and_command() -> None:
    found = sorted((ROOT / "bench" / "history").glob("*.json"))
    assert found
    for path in found:
        document = json.loads(path.read_text())
        assert document.keys() - {"commits"} == FIELDS
        assert re.fullmatch(r"\d{4}-\d\d-\d\d-[\w.]+-[a-z0-9-]+-cores\.json", path.name)
        assert path.name.startswith(document["measured_at"][:10])
        assert {"processor", "cores", "memory_gib", "system", "kernel", "python"} <= document[
            "machine"
        ].keys()


def test_a_row_that_is_measured_at_a_later_commit_is_saved_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "bench")
    measurement = importlib.import_module("measurement")
    monkeypatch.setattr(measurement, "HISTORY", tmp_path)
    (file,) = sorted((ROOT / "bench" / "history").glob("*.json"))[-1:]
    document = json.loads(file.read_text()) | {"commits": {}, "conditions": {"loop_ms_min": 1.0}}

    def save(commit: str, *rows: str) -> dict[str, Any]:
        figures = {row: {"warren": {"figure": 1.0}} for row in rows}
        given = document | {"commit": commit, "figures": figures, "conditions": {f"at_{commit}": 1.0}}
        return dict(json.loads(measurement.Measurement(**given).save().read_text()))

    assert save("one", "a", "b")["commits"] == {}
    saved = save("two", "b", "c")
    assert (saved["commit"], saved["commits"]) == ("one", {"b": "two", "c": "two"})
    assert saved["figures"].keys() == {"a", "b", "c"}
    assert save("one", "b")["commits"] == {"c": "two"}
    saved = save("three", "a", "b", "c")
    assert (saved["commit"], saved["commits"]) == ("three", {})


def test_every_program_that_a_document_names_exists() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"\bbench/[\w/]+\.(?:py|c)\b", page.read_text())}
    assert "bench/cluster.py" in named
    assert {name for name in named if not (ROOT / name).is_file()} == set()


def test_every_name_that_a_program_imports_from_another_exists() -> None:
    """Programs of bench and demo import each other by bare names, which no type checker examines."""
    found = []
    for folder in ("bench", "demo"):
        siblings = {path.stem: path for path in (ROOT / folder).glob("*.py")}
        for path in siblings.values():
            for node in ast.walk(tree(path)):
                if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
                    continue
                if node.module in siblings:
                    names = _top_level(tree(siblings[node.module]))
                    found += [f"{path.name}: {name.name}" for name in node.names if name.name not in names]
                elif "." not in node.module and find_spec(node.module) is None and node.module != "pyspark":
                    found.append(f"{path.name}: {node.module}")
    assert found == []


def _top_level(module: ast.Module) -> set[str]:
    """The names that a module defines."""
    names = set()
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
    return names
