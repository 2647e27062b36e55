"""The file with the id of the process of a node."""

import os
from pathlib import Path

import pytest

from warren.node.errors import BootRefused
from warren.node.pid_file import PidFile


def test_the_file_has_the_id_of_the_process_until_it_is_removed(tmp_path: Path) -> None:
    name = tmp_path / "run" / "warren" / "pid"
    file = PidFile(str(name))
    assert name.read_text() == f"{os.getpid()}\n"
    assert name.stat().st_mode & 0o777 == 0o644
    assert os.listdir(name.parent) == ["pid"]
    file.remove()
    assert not name.exists()
    file.remove()


def test_an_older_file_is_replaced_and_that_of_another_process_is_kept(tmp_path: Path) -> None:
    name = tmp_path / "pid"
    name.write_text("1 and more\n")
    file = PidFile(str(name))
    assert name.read_text() == f"{os.getpid()}\n"
    name.write_text("2\n")
    file.remove()
    assert name.read_text() == "2\n"


def test_without_a_name_there_is_no_file(tmp_path: Path) -> None:
    PidFile("").remove()
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BootRefused, match=r"cannot write the process id to .*file/pid': File exists"):
        PidFile(str(tmp_path / "file" / "pid"))
