"""The data directory: made if it is missing, and locked so that one process alone has it."""

import fcntl
import os
from pathlib import Path

_LOCK_NAME = "warren.lock"


class FolderRefused(Exception):
    """The data directory cannot be used; the text says why."""


class Folder:
    """A data directory, held until `close` or the end of the process."""

    def __init__(self, name: str) -> None:
        self.path = Path(name)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FolderRefused(f"cannot use the data directory {name!r}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise FolderRefused(
                f"the data directory {name!r} is in use by process {holder or 'unknown'}"
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode("ascii"), 0)

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)
