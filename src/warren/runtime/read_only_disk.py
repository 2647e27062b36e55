"""A directory of files that is opened read-only."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from warren.store.disk import Disk, DiskStep, OnDone


class ReadOnlyDisk(Disk):
    """The files in one directory; writing is refused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = ""
        self._file = -1

    def names(self) -> Mapping[str, int]:
        """The names of the files, with their sizes in bytes."""
        return {entry.name: entry.stat().st_size for entry in os.scandir(self._path) if entry.is_file()}

    def read(self, name: str, at: int, size: int) -> bytes:
        """Up to `size` bytes of `name` from `at` on."""
        if name != self._name:
            self.close()
            self._file = os.open(self._path / name, os.O_RDONLY | os.O_CLOEXEC)
            self._name = name
        data = os.pread(self._file, size, at)
        while len(data) < size:
            more = os.pread(self._file, size - len(data), at + len(data))
            if not more:
                break
            data += more
        return data

    def perform(self, steps: Sequence[DiskStep]) -> None:
        """Refuse to write."""
        raise PermissionError("nothing is written here")

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        """Refuse to write."""
        raise PermissionError("nothing is written here")

    def create_beside(self, name: str, size: int, done: OnDone) -> None:
        """Refuse to write."""
        raise PermissionError("nothing is written here")

    def note(self, name: str, at: int, data: bytes) -> None:
        """Refuse to write."""
        raise PermissionError("nothing is written here")

    def close(self) -> None:
        """Close the open file."""
        if self._file >= 0:
            os.close(self._file)
        self._name, self._file = "", -1
