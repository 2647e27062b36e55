"""Which directory a virtual host has, and what is in it."""

import hashlib
import time
from itertools import count
from pathlib import Path

# The directories of a node: what exists, and the stores of virtual hosts.
METADATA = "metadata"
VHOSTS = "vhosts"
STREAMS = "streams"
NAME = "name"
# What the name of one ends with that a command has deleted, until it is gone.
DELETED = ".deleted"
_DIGITS = 32
# So that none has the name of another.
_numbers = count(1)


def directory_name(name: str) -> str:
    """The name of the directory of the virtual host `name`."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def name_in(path: Path) -> str:
    """What the virtual host in the directory `path` is called, as far as that is known."""
    try:
        return (path / NAME).read_text("utf-8", "surrogateescape").removesuffix("\n")
    except OSError:
        return path.name


def set_aside(path: Path) -> Path:
    """A name for the directory `path` that nobody else asks for, and that says that it may go."""
    return path.with_name(f"{path.name}.{time.time_ns()}-{next(_numbers)}{DELETED}")
