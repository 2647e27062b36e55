"""The identity of a node: its name, and a number of each start that grows with every one.

    <data>/node │ "WRNNOD" │ version u16 │ JSON: {"name": …, "incarnation": …} │ checksum u32 │

The checksum is CRC32C over all before it. The file is written at each start, with the number of that start,
and synced before the node uses the number; it is replaced atomically.

A data directory keeps the name of its first start, so that it stays with its node when the name of the
machine changes, and is not opened as another node's by mistake. The incarnation is at least the time of the
start in seconds: so it also grows in memory, and after an old copy of the directory was restored.
"""

import socket
from pathlib import Path

import msgspec
from google_crc32c import value as checksum_of
from msgspec import Struct

from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.node import settings
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.runtime.private_file import replace_private_file

_NAME = "node"
_DEFAULT_NAME = "warren"
_MAGIC = b"WRNNOD"
_VERSION = 1
_PREFIX = _MAGIC + _VERSION.to_bytes(2, "big")
_CHECKSUM_SIZE = 4


class NodeIdentity(Struct, frozen=True):
    """Which node this is, and which run of it."""

    name: str
    incarnation: Incarnation


class _Stored(Struct, frozen=True):
    """What the file contains."""

    name: str
    incarnation: int


def begin_incarnation(config: Config, directory: Path | None, now: int) -> NodeIdentity:
    """Begin a run of the node at `now` (Unix time, ms): of the one in `directory`, or of one in memory.

    Raises BootRefused if the directory belongs to a node of another name than the configured one, or if its
    file cannot be read or written.
    """
    configured = _complete(config.get(settings.NODE_NAME))
    started_at = now // 1000
    if directory is None:
        return NodeIdentity(configured or _complete(_DEFAULT_NAME), Incarnation(NODE_ALONE, started_at))
    path = directory / _NAME
    try:
        stored = _read(path)
        if stored is not None and configured not in ("", stored.name):
            raise BootRefused(
                f"the data directory {str(directory)!r} belongs to the node {stored.name!r}, but "
                f"{config.place(settings.NODE_NAME.key)}: {settings.NODE_NAME.key} is {configured!r}: set "
                f"{settings.NODE_NAME.key} = {stored.name}, or start with another data directory"
            )
        before = stored or _Stored(configured or _complete(_DEFAULT_NAME), 0)
        begun = _Stored(before.name, max(before.incarnation + 1, started_at))
        _write(path, begun)
    except OSError as error:
        raise BootRefused(f"cannot use {str(path)!r}: {error.strerror}") from error
    return NodeIdentity(begun.name, Incarnation(NODE_ALONE, begun.incarnation))


def _complete(name: str) -> str:
    """`name` with the name of this machine, if it has none."""
    return name if not name or "@" in name else f"{name}@{socket.gethostname().partition('.')[0]}"


def _read(path: Path) -> _Stored | None:
    """What the file at `path` contains; None if there is none. Raises OSError and BootRefused."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    content, checksum = data[:-_CHECKSUM_SIZE], data[-_CHECKSUM_SIZE:]
    is_whole = content.startswith(_MAGIC) and checksum_of(content) == int.from_bytes(checksum, "big")
    version = int.from_bytes(content[len(_MAGIC) : len(_PREFIX)], "big")
    if is_whole and version > _VERSION:
        raise BootRefused(
            f"{str(path)!r} has format {version}, which is newer than {_VERSION}: "
            "start the version of Warren that wrote it"
        )
    try:
        if is_whole:
            return msgspec.json.decode(content[len(_PREFIX) :], type=_Stored)
    except msgspec.DecodeError:
        pass
    raise BootRefused(
        f"{str(path)!r} is damaged: restore it from a backup, or delete it and set "
        f"{settings.NODE_NAME.key} to the name that the node had"
    )


def _write(path: Path, stored: _Stored) -> None:
    """Replace the file at `path`, and sync it."""
    content = _PREFIX + msgspec.json.encode(stored)
    replace_private_file(path, content + checksum_of(content).to_bytes(_CHECKSUM_SIZE, "big"))
