"""Files that only the user of the broker can read, replaced durably."""

import os
from pathlib import Path


def replace_private_file(path: Path, content: bytes) -> None:
    """Replace the file at `path` atomically by one with `content`, and sync it; raises OSError."""
    new = path.with_name(path.name + ".new")
    with open(new, "wb", opener=_open_private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Sync the names in the directory `path`; raises OSError."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
