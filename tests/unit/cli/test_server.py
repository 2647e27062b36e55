"""The first lines that `warren serve` prints."""

from pathlib import Path

import pytest

from warren.cli.server import check_build, command_name
from warren.node.errors import BootRefused


@pytest.fixture
def warren(tmp_path: Path) -> Path:
    command = tmp_path / "warren"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    return command


def test_a_command_on_the_path_is_shown_by_its_name(warren: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(warren.parent))
    assert command_name(str(warren)) == "warren"


def test_a_command_not_on_the_path_is_shown_as_it_was_run(
    warren: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert command_name(str(warren)) == str(warren)


def test_another_program_name_is_shown_as_warren(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert command_name("-c") == "warren"


def test_requiring_the_compiled_build_refuses_the_interpreted_one() -> None:
    with pytest.raises(BootRefused, match="interpreted"):
        check_build({"WARREN_COMPILED": "1"}, "warren/wire/frames.py")
    check_build({"WARREN_COMPILED": "1"}, "warren/wire/frames.cpython-311-x86_64-linux-gnu.so")
    check_build({}, "warren/wire/frames.py")
