"""A log file that is rotated by size or by date, as `log.file.rotation.…` configures, and can be reopened.

The current file is renamed to NAME.0, the one before it to NAME.1 and so on; `log.file.rotation.count` is the
number of files that are kept. If it is not set, the file is truncated instead.
"""

import logging
import os
import re
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct

_DATE = re.compile(r"\$(?:W(?P<weekday>[0-6])|M(?P<day>[1-9]|[12]\d|3[01]))?(?:D(?P<hour>\d|1\d|2[0-3]))?")


class Rotation(Struct, frozen=True):
    """When a file is rotated, and how many rotated files are kept; 0 and an empty date mean never."""

    size_max: int = 0
    date: str = ""
    count: int = 0


class RotatedFile(logging.FileHandler):
    """A log handler that writes to one file."""

    def __init__(self, path: Path, rotation: Rotation) -> None:
        super().__init__(path, encoding="utf-8")
        self._rotation = rotation
        self._due = next_rotation(rotation.date, datetime.now().astimezone())

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record`, to a new file if a rotation is due."""
        try:
            if self._is_time(record):
                self.rotate()
        except OSError:
            self.handleError(record)
        super().emit(record)

    def rotate(self) -> None:
        """Rotate: begin a new file."""
        self._close()
        path = Path(self.baseFilename)
        for number in range(self._rotation.count - 1, 0, -1):
            if _kept(path, number - 1).exists():
                os.replace(_kept(path, number - 1), _kept(path, number))
        if self._rotation.count:
            os.replace(path, _kept(path, 0))
        else:
            path.unlink(missing_ok=True)
        self.stream = self._open()

    def rotate_or_reopen(self) -> None:
        """Rotate now if rotated files are kept; else reopen the file that has the name."""
        if not self._rotation.count:
            self.reopen()
            return
        self.acquire()
        try:
            self.rotate()
        finally:
            self.release()

    def reopen(self) -> None:
        """Reopen the file by name, after another program has renamed it."""
        self.acquire()
        try:
            self._close()
            self.stream = self._open()
        finally:
            self.release()

    def _is_time(self, record: logging.LogRecord) -> bool:
        byte_count = self._rotation.size_max
        if self.stream is not None and byte_count and self.stream.tell() >= byte_count:
            return True
        if self._due is None or record.created < self._due.timestamp():
            return False
        self._due = next_rotation(self._rotation.date, datetime.fromtimestamp(record.created).astimezone())
        return True

    def _close(self) -> None:
        if self.stream is not None:
            self.stream.close()


def is_rotation_date(text: str) -> bool:
    """True if `text` is empty or a rotation date: $D0 at midnight, $W5D16 on Fridays at 16:00, $M1D2 …"""
    return not text or (_DATE.fullmatch(text) is not None and text != "$")


def next_rotation(text: str, after: datetime) -> datetime | None:
    """Return the first time after `after` that matches `text`; None if `text` is empty."""
    found = _DATE.fullmatch(text) if text else None
    if found is None:
        return None
    when = after.replace(hour=int(found["hour"] or 0), minute=0, second=0, microsecond=0)
    while when <= after or not _is_day(when, found["weekday"], found["day"]):
        when += timedelta(days=1)
    return when


def _is_day(when: datetime, weekday: str | None, day: str | None) -> bool:
    # Sunday is 0.
    if weekday is not None:
        return when.isoweekday() % 7 == int(weekday)
    return day is None or when.day == int(day)


def _kept(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
