"""The directory names of virtual hosts, and of the folders in them."""

import hashlib
import time
from itertools import count
from pathlib import Path

# The directories of a node: metadata, and the stores of virtual hosts.
METADATA = "metadata"
VHOSTS = "vhosts"
QUARANTINE = "quarantine"
STREAMS = "streams"
NAME = "name"
# Suffix of the directory of a virtual host that was deleted by a command, until its files are deleted.
DELETED = ".deleted"
_DIGITS = 32
# Makes the names of directories unique.
_numbers = count(1)


def directory_name(name: str) -> str:
    """Return the name of the directory of the virtual host `name`."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def is_deleted(path: Path) -> bool:
    """True if the directory `path` is the rest of a virtual host that was deleted."""
    return path.name.endswith(DELETED)


def name_in(path: Path) -> str:
    """Return the name of the virtual host in the directory `path`, as far as it is known."""
    try:
        return (path / NAME).read_text("utf-8", "surrogateescape").removesuffix("\n")
    except OSError:
        return path.name


def set_aside(path: Path) -> Path:
    """Return a unique name for the directory `path`, which marks it as deleted."""
    return path.with_name(f"{path.name}.{time.time_ns()}-{next(_numbers)}{DELETED}")
