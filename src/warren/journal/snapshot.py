"""A snapshot of all metadata: the first part of a metadata file.

Transient objects are in it as well, since later commands in the log may depend on them. The next start
deletes them when it has read the log.

References to the records are collected at once, which is quick. They are encoded piece by piece while the
file is written, which takes a while for 100,000 queues and happens in the thread that writes to the disk.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from warren.journal.codec import StateEnd, VoteState, encode_command, encode_hard_state, encode_state_end
from warren.journal.file_format import (
    BATCH,
    HARD,
    STATE,
    STATE_END,
    encode_batch,
    encode_head,
    encode_origin,
    seed_of,
)
from warren.journal.high_water_mark import HighWaterMark
from warren.journal.parameter_cipher import Cipher
from warren.limits import JOURNAL_CHUNK_SIZE, JOURNAL_ROWS_MAX
from warren.metadata.commands import (
    DoubtNumbers,
    GrantLease,
    MetadataCommand,
    PauseQueue,
    RememberRemoved,
    RestoreTopology,
    SetGlobalParameter,
    SetParameter,
    SettleNumbers,
    SetVhostLimits,
)
from warren.metadata.declared_topology import DEFAULT_EXCHANGES
from warren.metadata.leases import LeaseRecord
from warren.metadata.machine import Metadata
from warren.metadata.policies import Policies
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.metadata.restoring_commands import (
    put_user,
    put_vhost,
    restore_members,
    set_permissions,
    set_policy,
    set_topic_permissions,
)
from warren.metadata.vhosts import VhostMetadata
from warren.replication.raft.change import Configuration
from warren.store.record import encode

_DEFAULTS = frozenset(name for name, _, _ in DEFAULT_EXCHANGES)

R = TypeVar("R")


class SnapshotPlace(Struct, frozen=True, kw_only=True):
    """Where in the log a snapshot is, and what its group had agreed on there."""

    # Index and term of the last entry in it.
    index: int
    term: int
    # The time of that entry (ms since the epoch).
    now: int = 0
    # Term and vote of the node now.
    hard: VoteState
    configuration: Configuration


class SnapshotOrigin(Struct, frozen=True):
    """What identifies a file of the log; the salt is random and part of each checksum in it."""

    log_id: bytes
    generation: int
    salt: bytes


class JournalSnapshot:
    """The metadata at the time of creation, as bytes; `size` is their number after iteration."""

    def __init__(
        self,
        metadata: Metadata,
        place: SnapshotPlace,
        origin: SnapshotOrigin,
        *,
        cipher: Cipher | None = None,
        tail: Sequence[tuple[int, bytes]] = (),
    ) -> None:
        """`tail` has the records of the entries behind `place`, which are not applied."""
        self._cipher = cipher
        head = encode_head(origin.salt)
        self.seed = seed_of(head)
        hard = encode_hard_state(place.hard)
        self._head = (
            head + encode_origin(origin.log_id, origin.generation, self.seed) + encode(HARD, hard, self.seed)
        )
        self._origin = origin
        self._tail = tail
        configuration = place.configuration
        self._end = StateEnd(
            index=place.index,
            term=place.term,
            now=place.now,
            next_number=metadata.next_number,
            next_transient_number=metadata.next_transient_number,
            members=configuration.voters,
            outgoing=configuration.outgoing,
            learners=configuration.learners,
            learners_next=configuration.learners_next,
            auto_leave=configuration.auto_leave,
        )
        self._vhosts = [_TopologySnapshot.of(vhost) for vhost in metadata.vhosts.by_name.values()]
        self._commands = [*_members(metadata), *metadata.applied_proposals.rows()]
        self._commands += [command for vhost in metadata.vhosts.by_name.values() for command in _vhost(vhost)]
        self._commands += _users(metadata)
        self._commands += _removals(metadata)
        self._commands += [
            SetGlobalParameter(name=name, value=value)
            for name, value in metadata.global_parameters.by_name.items()
        ]
        self.size = 0

    def mark(self) -> HighWaterMark:
        """The high-water mark for the time when the snapshot was synced."""
        return HighWaterMark(
            log_id=self._origin.log_id, generation=self._origin.generation, end=self.size,
            index=self._end.index + len(self._tail), number=self._end.next_number - 1 + len(self._tail),
        )  # fmt: skip

    def __iter__(self) -> Iterator[bytes]:
        """The encoded snapshot; the same bytes at each iteration."""
        self.size = 0
        seed = self.seed
        waiting = [self._head]
        size = len(self._head)
        for command in self._entries():
            record = encode(STATE, encode_command(command, self._cipher), seed)
            waiting.append(record)
            size += len(record)
            if size >= JOURNAL_CHUNK_SIZE:
                yield self._piece(waiting)
                # If the piece before is damaged, reading can continue here.
                waiting = [encode(BATCH, b"", seed)]
                size = 0
        waiting.append(encode(STATE_END, encode_state_end(self._end), seed))
        if self._tail:
            # As if each declared a queue: what they do is known when they are applied.
            waiting += encode_batch(self._tail, seed)
        yield self._piece(waiting)

    def _piece(self, records: list[bytes]) -> bytes:
        piece = b"".join(records)
        self.size += len(piece)
        return piece

    def _entries(self) -> Iterator[MetadataCommand]:
        yield from self._commands
        for contents in self._vhosts:
            yield from contents.commands()


class _TopologySnapshot(Struct, frozen=True, kw_only=True):
    """The topology of a vhost at the time of the snapshot."""

    vhost: str
    exchanges: list[ExchangeRecord]
    queues: list[QueueRecord]
    bindings: list[BindingRecord]
    paused: list[str]
    leases: list[LeaseRecord]

    @classmethod
    def of(cls, vhost: VhostMetadata) -> "_TopologySnapshot":
        topology = vhost.topology
        return cls(
            vhost=vhost.name,
            exchanges=list(topology.exchanges.values()),
            queues=list(topology.queues.values()),
            bindings=list(topology.bindings()),
            paused=list(topology.paused),
            leases=list(topology.leases.by_id.values()),
        )

    def commands(self) -> Iterator[MetadataCommand]:
        """The commands that restore the topology."""
        vhost = self.vhost
        declared = [exchange for exchange in self.exchanges if exchange.name not in _DEFAULTS]
        for some_exchanges in _pieces(declared):
            yield RestoreTopology(vhost=vhost, exchanges=some_exchanges)
        for some_queues in _pieces(self.queues):
            yield RestoreTopology(vhost=vhost, queues=some_queues)
        for some_bindings in _pieces(self.bindings):
            yield RestoreTopology(vhost=vhost, bindings=some_bindings)
        for name in self.paused:
            yield PauseQueue(vhost=vhost, name=name)
        for lease in self.leases:
            yield GrantLease(vhost=vhost, lease=lease)


def _pieces(rows: Sequence[R]) -> Iterator[tuple[R, ...]]:
    for at in range(0, len(rows), JOURNAL_ROWS_MAX):
        yield tuple(rows[at : at + JOURNAL_ROWS_MAX])


def _vhost(vhost: VhostMetadata) -> Iterable[MetadataCommand]:
    yield put_vhost(vhost)
    if vhost.limits:
        yield SetVhostLimits(vhost=vhost.name, limits=vhost.limits)
    yield from _policies(vhost.name, vhost.policies, is_operator=False)
    yield from _policies(vhost.name, vhost.operator_policies, is_operator=True)
    for (component, name), value in vhost.parameters.by_key.items():
        user = vhost.parameters.user_of(component, name)
        yield SetParameter(vhost=vhost.name, component=component, name=name, value=value, user=user)


def _policies(vhost: str, policies: Policies, *, is_operator: bool) -> Iterable[MetadataCommand]:
    for policy in policies.by_name.values():
        yield set_policy(vhost, policy, is_operator=is_operator)


def _members(metadata: Metadata) -> Iterable[MetadataCommand]:
    if metadata.members.by_id:
        yield restore_members(metadata.members)


def _removals(metadata: Metadata) -> Iterable[MetadataCommand]:
    """The commands that restore the numbers of deleted objects that may have left files behind."""
    if metadata.vhosts.removed:
        yield RememberRemoved(names=tuple(metadata.vhosts.removed))
    if metadata.in_doubt_numbers.until:
        yield DoubtNumbers(until=metadata.in_doubt_numbers.until)
        yield SettleNumbers(numbers=tuple(sorted(metadata.in_doubt_numbers.settled)))


def _users(metadata: Metadata) -> Iterable[MetadataCommand]:
    for user in metadata.users.by_name.values():
        yield put_user(user)
    permissions = metadata.permissions
    for (name, vhost), permission in permissions.by_user_and_vhost.items():
        yield set_permissions(name, vhost, permission)
    for (name, vhost), topics in permissions.topics_by_user_and_vhost.items():
        for exchange, topic in topics.items():
            yield set_topic_permissions(name, vhost, exchange, topic)
