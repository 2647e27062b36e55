"""The measured tables of the README and the guide are those of the newest file of bench/history."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tidy.sources import ROOT

PAGES = ("README.md", "docs/guide/benchmarks.md")
FIELDS = {"measured_at", "commit", "command", "machine", "conditions", "plan", "versions", "figures"}


def check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "bench" / "report.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_tables_are_those_of_the_newest_measurement() -> None:
    answer = check(ROOT)
    assert answer.returncode == 0, f"{answer.stdout}{answer.stderr}\npython bench/report.py writes them"


def test_a_table_that_differs_from_its_measurement_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    for page in PAGES:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
    assert check(tmp_path).returncode == 0
    page = tmp_path / PAGES[1]
    page.write_text(page.read_text().replace(" x |", " times |", 1))
    answer = check(tmp_path)
    assert (answer.returncode, answer.stdout) == (1, f"out of date: {PAGES[1]}\n")


def test_every_file_of_the_history_says_when_where_and_how_it_was_measured() -> None:
    found = sorted((ROOT / "bench" / "history").glob("*.json"))
    assert found
    for path in found:
        document = json.loads(path.read_text())
        assert document.keys() == FIELDS
        assert re.fullmatch(r"\d{4}-\d\d-\d\d-[\w.]+-[a-z0-9-]+-cores\.json", path.name)
        assert path.name.startswith(document["measured_at"][:10])
        assert {"processor", "cores", "memory_gib", "system", "kernel", "python"} <= document[
            "machine"
        ].keys()
