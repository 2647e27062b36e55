"""Rotation of the log file by size, by date and by other programs."""

import logging
from datetime import datetime
from pathlib import Path

import pytest

from warren.node.log_file import RotatedFile, Rotation, is_rotation_date, next_rotation


def record(text: str, when: datetime | None = None) -> logging.LogRecord:
    found = logging.LogRecord("warren.x", logging.INFO, "", 0, text, (), None)
    if when is not None:
        found.created = when.timestamp()
    return found


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_a_file_is_rotated_at_a_size_and_so_many_old_ones_are_kept(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", Rotation(size_max=10, count=2))
    for number in range(4):
        file.handle(record(f"{number} is a line"))
    file.close()
    assert texts(tmp_path) == {"log": "3 is a line\n", "log.0": "2 is a line\n", "log.1": "1 is a line\n"}


def test_without_a_count_the_file_is_truncated(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", Rotation(size_max=5))
    file.handle(record("first"))
    file.handle(record("second"))
    file.close()
    assert texts(tmp_path) == {"log": "second\n"}


def test_a_file_is_rotated_at_a_date(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", Rotation(date="$D0", count=1))
    tomorrow = next_rotation("$D0", datetime.now().astimezone())
    assert tomorrow is not None
    file.handle(record("today"))
    file.handle(record("tomorrow", tomorrow))
    file.handle(record("too", tomorrow))
    file.close()
    assert texts(tmp_path) == {"log": "tomorrow\ntoo\n", "log.0": "today\n"}


def test_a_file_renamed_by_another_program_is_closed_on_reopen(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", Rotation())
    file.handle(record("before"))
    (tmp_path / "log").rename(tmp_path / "log.1")
    file.handle(record("still there"))
    file.reopen()
    file.handle(record("after"))
    file.close()
    assert texts(tmp_path) == {"log": "after\n", "log.1": "before\nstill there\n"}


@pytest.mark.parametrize(
    ("date", "due"),
    [
        ("$D0", "2026-11-22 00:00"),
        ("$D23", "2026-11-21 23:00"),
        ("$W0", "2026-11-22 00:00"),
        ("$W6D12", "2026-11-28 12:00"),
        ("$M1D2", "2026-12-01 02:00"),
    ],
)
def test_rotation_dates_have_the_syntax_of_rabbitmq(date: str, due: str) -> None:
    # A Saturday.
    after = datetime.fromisoformat("2026-11-21 20:15").astimezone()
    assert is_rotation_date(date)
    assert next_rotation(date, after) == datetime.fromisoformat(due).astimezone()


def test_an_invalid_rotation_date_is_recognised() -> None:
    assert [text for text in ("", "$", "D0", "$D24", "$W7", "daily") if is_rotation_date(text)] == [""]
    assert next_rotation("", datetime.now().astimezone()) is None


def test_a_requested_rotation_loses_no_lines(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", Rotation(count=1))
    file.handle(record("first"))
    file.rotate_or_reopen()
    file.handle(record("second"))
    file.close()
    assert texts(tmp_path) == {"log": "second\n", "log.0": "first\n"}


def test_without_a_count_a_requested_rotation_only_reopens_the_file(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", Rotation())
    file.handle(record("first"))
    file.rotate_or_reopen()
    file.handle(record("second"))
    (tmp_path / "log").rename(tmp_path / "renamed")
    file.rotate_or_reopen()
    file.handle(record("third"))
    file.close()
    assert texts(tmp_path) == {"log": "third\n", "renamed": "first\nsecond\n"}
