"""Recovery of a cluster whose majority is lost: one stopped member goes on without the others."""

import asyncio
import shlex
from contextlib import closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from warren.journal.file_format import JournalError
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.log_reader import RecoveredLog
from warren.journal.recovery import recover
from warren.journal.sole_member import make_sole_member
from warren.limits_metadata import CLUSTER_ID_SIZE
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.records import MemberRecord
from warren.node.errors import BootRefused
from warren.node.node_identity import keep_membership, stored_cluster, stored_name
from warren.node.quarantine import Quarantine
from warren.node.store_reaches import forget_metadata
from warren.runtime.clock import wall_ms
from warren.runtime.disk import DirectoryDisk
from warren.runtime.randomness import random_bytes
from warren.runtime.read_only_disk import ReadOnlyDisk
from warren.runtime.worker_thread import WorkerThread

_METADATA = "metadata"
# No node has this number, so that a log that is read for it applies only what is known as committed.
_NOBODY = 0


class RecoveryRefused(Exception):
    """The cluster cannot be recovered with this directory; the message says why, and what to do."""


class StoppedMember(Struct, frozen=True, kw_only=True):
    """A stopped member of a cluster: its metadata and its log as they are on the disk."""

    own: MemberRecord
    metadata: Metadata
    found: RecoveredLog

    @property
    def others(self) -> list[MemberRecord]:
        """The other members, in the order of their ids."""
        return [member for member in self.metadata.members.by_id.values() if member.id != self.own.id]

    @property
    def divided_queue_count(self) -> int:
        """The number of quorum queues with replicas here and on several others, which may have more."""
        return sum(
            len(queue.members) > 2 and queue.replica_on(self.own.id) > 0
            for vhost in self.metadata.vhosts.by_name.values()
            for queue in vhost.topology.queues.values()
        )

    def queue_count_on(self, member: MemberRecord) -> int:
        """The number of queues whose home is a member."""
        return self.metadata.homes.get(member.id, 0)


def read_member(data: Path) -> StoppedMember:
    """Read the metadata in the data directory of a stopped node. Raises RecoveryRefused and OSError."""
    try:
        name = stored_name(data)
    except BootRefused as error:
        raise RecoveryRefused(str(error)) from error
    if name is None:
        raise RecoveryRefused(f"{str(data)!r} is not the data directory of a node: it has no identity")
    metadata, _ = _read(data, _NOBODY)
    own = metadata.members.named(name)
    if own is None or len(metadata.members.by_id) == 1:
        raise RecoveryRefused(
            f"'{name}' is in no cluster with another node, as far as its metadata say: it needs no recovery"
        )
    metadata, found = _read(data, own.id)
    own = metadata.members.by_id.get(own.id)
    if own is None:
        raise RecoveryRefused(f"'{name}' was removed from its cluster: start it with another data directory")
    return StoppedMember(own=own, metadata=metadata, found=found)


def continue_alone(data: Path, member: StoppedMember) -> None:
    """Make `member` the only one, of a cluster with a new id; old files are copied first. Raises OSError."""
    folder = data / _METADATA
    Quarantine(data, member.metadata).keep_metadata(folder)
    make_sole_member(member.metadata, member.found, member.own.id, random_bytes(CLUSTER_ID_SIZE))
    failures: list[OSError] = []
    dependencies = JournalDependencies(
        now=wall_ms,
        random_bytes=random_bytes,
        make_future=asyncio.Future,
        report=lambda error: failures.append(error) if error is not None else None,
        incarnation=Incarnation(member.own.id, member.own.incarnation),
    )
    loop = asyncio.new_event_loop()
    with (
        closing(loop),
        closing(WorkerThread(_METADATA)) as worker,
        closing(DirectoryDisk(folder, loop, worker)) as disk,
    ):
        Journal(member.metadata, disk, dependencies, member.found).begin()
        if failures:
            raise failures[0]
        # What was agreed on with others and is not known as that is given up.
        forget_metadata(data, loop, worker)
    known = stored_cluster(data)
    if known is not None:
        cluster_id = member.metadata.members.cluster_id
        keep_membership(data, replace(known, cluster_id=cluster_id, members=()))


def _read(data: Path, node: int) -> tuple[Metadata, RecoveredLog]:
    """Read the metadata as those of `node`. Raises RecoveryRefused if they are incomplete, and OSError."""
    folder = data / _METADATA
    metadata = Metadata()
    with closing(ReadOnlyDisk(folder)) as disk:
        try:
            found = recover(disk, metadata, node=node)
        except JournalError as error:
            raise RecoveryRefused(f"metadata in {str(folder)!r}: {error}") from error
    faults = [*found.damage, *([found.loss] if found.loss is not None else [])]
    if faults:
        raise RecoveryRefused(
            f"metadata in {str(folder)!r}: {faults[0]}; use another member or a backup, or first "
            f"warren metadata recover {shlex.quote(str(data))}"
        )
    return metadata, found
