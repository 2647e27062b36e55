"""The source of the web interface: its types, its linter, its unit tests, and forbidden patterns."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

INTERFACE = Path(__file__).parents[2] / "ui"
SOURCES = sorted((INTERFACE / "src").rglob("*.ts*"))
# A list that is not loaded has no entries, and is not empty: `LiveTable` distinguishes the two.
EMPTY_INSTEAD = re.compile(r"items=\{[^}]*\?\?\s*\[\]")
# A component that makes a request itself shows the answer that arrives last, not that to the last request.
ASKED_BY_HAND = re.compile(r"useEffect\(\(\) => void [^;]*\.then\(set|set[A-Z]\w*\(\s*await get")


def test_no_list_is_called_empty_before_it_is_loaded() -> None:
    assert [path.name for path in SOURCES if EMPTY_INSTEAD.search(path.read_text())] == []


def test_no_answer_is_shown_without_a_check_that_its_request_is_current() -> None:
    assert SOURCES
    assert [path.name for path in SOURCES if ASKED_BY_HAND.search(path.read_text())] == []


def test_the_lock_file_names_the_packages_of_every_platform() -> None:
    """Otherwise `npm ci` refuses it, and a fresh clone has no web interface."""
    packages = json.loads((INTERFACE / "package-lock.json").read_text())["packages"]
    wanted = {name for package in packages.values() for name in package.get("optionalDependencies", {})}
    assert [name for name in sorted(wanted) if f"node_modules/{name}" not in packages] == []


def is_installed() -> bool:
    """Whether npm has installed the packages of the lock file, as `make ui` requests."""
    lock = INTERFACE / "package-lock.json"
    done = INTERFACE / "node_modules" / ".package-lock.json"
    return done.exists() and done.stat().st_mtime >= lock.stat().st_mtime


# `check` is the compiler and the linter, which refuses import cycles; `test` is the unit tests.
@pytest.mark.slow
@pytest.mark.parametrize("script", ["check", "test"])
def test_the_scripts_of_the_interface_pass(script: str) -> None:
    if shutil.which("npm") is None or not is_installed():
        pytest.skip("what the web interface is made with is not installed: make ui")
    command = ["npm", "run", "--silent", script]
    ended = subprocess.run(
        command,
        cwd=INTERFACE,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
