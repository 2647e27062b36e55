"""The data directory: created if it is missing, and locked so that only one process uses it."""

import fcntl
import os
import stat
from pathlib import Path

_LOCK_NAME = "warren.lock"
# Messages, password hashes and logs are private to the user of the broker.
_OWNER_ONLY = 0o700
_OTHERS = 0o007
_MODE = 0o7777


def make_directory(path: Path) -> None:
    """Create the directory `path` with its parents, durably."""
    if not path.parent.exists():
        make_directory(path.parent)
    path.mkdir(mode=_OWNER_ONLY, exist_ok=True)
    # Also if it existed: its creator may have been killed before the sync.
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        # It may have been created for us by a user who can read its parent.
        return
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _close_to_others(path: Path) -> None:
    """Remove the permissions of others, which an older version may have given.

    Those of the group are kept.
    """
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & _OTHERS:
        path.chmod(status.st_mode & ~_OTHERS & _MODE)


class DirectoryUnusable(Exception):
    """The data directory cannot be used; the text gives the reason."""


class LockedDirectory:
    """A data directory, locked until `close` or the end of the process."""

    def __init__(self, name: str) -> None:
        self.path = Path(name)
        try:
            make_directory(self.path)
            _close_to_others(self.path)
        except OSError as error:
            raise DirectoryUnusable(f"cannot use the data directory {name!r}: {error.strerror}") from error
        self._lock = self._open_lock()
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise DirectoryUnusable(
                f"the data directory {name!r} is in use by process {holder or 'unknown'}"
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode("ascii"), 0)

    def _open_lock(self) -> int:
        """Open the lock file, which must be a regular file."""
        try:
            lock = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DirectoryUnusable(
                f"cannot use {str(self.path / _LOCK_NAME)!r}: {error.strerror}"
            ) from error
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            os.close(lock)
            raise DirectoryUnusable(f"cannot use {str(self.path / _LOCK_NAME)!r}: it is not a regular file")
        return lock

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)
