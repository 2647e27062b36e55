"""The identity of a node: its name, a number of each start that grows with every one, and its cluster.

    <data>/node │ "WRNNOD" │ version u16 │ JSON: {"name": …, "incarnation": …, "cluster": …} │ checksum u32 │

The checksum is CRC32C over all before it. The file is written at each start, with the number of that start,
and synced before the node uses the number; it is replaced atomically. Version 1 has no `cluster`.

A data directory keeps the name of its first start, so that it stays with its node when the name of the
machine changes, and is not opened as another node's by mistake. The incarnation is at least the time of the
start in seconds: so it also grows in memory, and after an old copy of the directory was restored.

`cluster` is what a node was told when it was admitted to a cluster, and how far it has joined:

    ERASING ─▶ what the directory had of the time before is deleted ─▶ JOINING, or no cluster
    JOINING ─▶ it has the metadata of the cluster ─▶ JOINED, which it is as long as it is a member

A node that has met no other, or has formed its cluster, has none: its cluster is in its metadata.
"""

import socket
from enum import StrEnum
from pathlib import Path

import msgspec
from google_crc32c import value as checksum_of
from msgspec import Struct
from msgspec.structs import replace

from warren.cluster.admission import KnownMember
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.node import settings
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.runtime.private_file import replace_private_file

_NAME = "node"
_DEFAULT_NAME = "warren"
_MAGIC = b"WRNNOD"
_VERSION = 2
_CHECKSUM_SIZE = 4
_PREFIX_SIZE = len(_MAGIC) + 2


class MembershipPhase(StrEnum):
    """How far a node has got that was admitted to a cluster, or has left one."""

    ERASING = "erasing"
    JOINING = "joining"
    JOINED = "joined"


class ClusterIdentity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a node keeps of its admission to a cluster."""

    phase: MembershipPhase
    # Its number, the id of the cluster, and the members that there were; of a node that has left a cluster
    # NODE_ALONE, and nothing.
    node_id: int = NODE_ALONE
    cluster_id: bytes = b""
    members: tuple[KnownMember, ...] = ()


class NodeIdentity(Struct, frozen=True):
    """Which node this is, and which run of it."""

    name: str
    incarnation: Incarnation
    cluster: ClusterIdentity | None = None

    @property
    def is_joining(self) -> bool:
        """True if the node has to be sent the metadata of its cluster before it has any."""
        return self.cluster is not None and self.cluster.phase is MembershipPhase.JOINING


class _Stored(Struct, frozen=True, omit_defaults=True):
    """What the file contains."""

    name: str
    incarnation: int
    cluster: ClusterIdentity | None = None


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
        begun = replace(before, incarnation=max(before.incarnation + 1, started_at))
        _write(path, begun)
    except OSError as error:
        raise BootRefused(f"cannot use {str(path)!r}: {error.strerror}") from error
    node = NODE_ALONE if begun.cluster is None else begun.cluster.node_id
    return NodeIdentity(begun.name, Incarnation(node, begun.incarnation), begun.cluster)


def keep_membership(directory: Path, cluster: ClusterIdentity | None) -> None:
    """Replace what the node in `directory` keeps of its cluster, and sync it. Raises OSError."""
    path = directory / _NAME
    stored = _read(path)
    assert stored is not None, "the run has begun"
    _write(path, replace(stored, cluster=cluster))


def stored_name(directory: Path) -> str | None:
    """The name of the node to which a data directory belongs; None if it had no start. Raises OSError and
    BootRefused.
    """
    stored = _read(directory / _NAME)
    return None if stored is None else stored.name


def stored_cluster(directory: Path) -> ClusterIdentity | None:
    """What the node in a data directory keeps of its cluster. Raises OSError and BootRefused."""
    stored = _read(directory / _NAME)
    return None if stored is None else stored.cluster


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
    version = int.from_bytes(content[len(_MAGIC) : _PREFIX_SIZE], "big")
    if is_whole and version > _VERSION:
        raise BootRefused(
            f"{str(path)!r} has format {version}, which is newer than {_VERSION}: "
            "start the version of Warren that wrote it"
        )
    try:
        if is_whole:
            return msgspec.json.decode(content[_PREFIX_SIZE:], type=_Stored)
    except msgspec.DecodeError:
        pass
    raise BootRefused(
        f"{str(path)!r} is damaged: restore it from a backup, or delete it and set "
        f"{settings.NODE_NAME.key} to the name that the node had"
    )


def _write(path: Path, stored: _Stored) -> None:
    """Replace the file at `path`, and sync it."""
    content = _MAGIC + _VERSION.to_bytes(2, "big") + msgspec.json.encode(stored)
    replace_private_file(path, content + checksum_of(content).to_bytes(_CHECKSUM_SIZE, "big"))
