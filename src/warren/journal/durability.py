"""Determines which effects of a command are durable, and which objects the command reads and writes.

The log is exact only if no outcome in it depends on something that is not durable. So the log does not
contain the requested command but its outcome, which is determined when all earlier commands about the same
objects have been applied. All consequences of a deletion are written explicitly, and replaying deletes
nothing else: an exchange that lost its last durable binding may have had a transient one, and one that was
deleted together with a transient queue would otherwise survive.
"""

from collections.abc import Iterable

from msgspec import Struct

from warren.metadata.bounds import beyond_bounds
from warren.metadata.commands import (
    Bind,
    ClearGlobalParameter,
    ClearParameter,
    ClearPolicy,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteExclusiveQueues,
    DeleteQueue,
    EndLease,
    GrantLease,
    MetadataCommand,
    PauseQueue,
    PermissionCommand,
    PutUser,
    PutVhost,
    RemoveUser,
    RemoveVhost,
    RenewLease,
    SetGlobalParameter,
    SetParameter,
    SetPolicy,
    SetUserLimits,
    SetUserTags,
    SetVhostLimits,
    Unbind,
    VhostCommand,
)
from warren.metadata.declared_topology import DeclaredTopology, binding_of
from warren.metadata.leases import LeaseRecord
from warren.metadata.machine import Metadata
from warren.metadata.parameters import checked_parameter
from warren.metadata.records import BindingRecord

# A kind and names: identifies one object, or all settings of one object.
Name = tuple[object, ...]

# All objects: read by each command.
_EVERYTHING: Name = ("everything",)

TopologyCommand = (
    DeclareExchange
    | DeleteExchange
    | DeclareQueue
    | PauseQueue
    | DeleteQueue
    | DeleteExclusiveQueues
    | Bind
    | Unbind
)

# A tuple, since isinstance is three times as fast with it as with a union.
_OF_TOPOLOGY = (
    DeclareQueue,
    DeclareExchange,
    Bind,
    PauseQueue,
    DeleteQueue,
    DeleteExclusiveQueues,
    DeleteExchange,
    Unbind,
)


# The commands about leases, which remove nothing else.
LeaseCommand = GrantLease | RenewLease | EndLease

# The commands that remove no bindings.
_LEAVING = (DeclareExchange, DeclareQueue, PauseQueue, Bind)


class ReadWriteSet(Struct, frozen=True):
    """The names that a command changes, and the names on which its outcome depends."""

    writes: Iterable[Name]
    reads: Iterable[Name]


class PendingReadWriteSets:
    """The names read and written by commands that wait for the disk."""

    __slots__ = ("_reads", "_writes")

    def __init__(self) -> None:
        self._writes: set[Name] = set()
        self._reads: set[Name] = set()

    def add(self, read_write_set: ReadWriteSet) -> None:
        """Add the names of a command that waits."""
        self._writes.update(read_write_set.writes)
        self._reads.update(read_write_set.reads)

    def conflicts_with(self, read_write_set: ReadWriteSet) -> bool:
        """True if the outcome of a command depends on a waiting command, or the other way round."""
        writes = self._writes
        return not writes.isdisjoint(read_write_set.reads) or any(
            name in writes or name in self._reads for name in read_write_set.writes
        )


def durable_commands(metadata: Metadata, command: MetadataCommand) -> list[MetadataCommand]:
    """The commands to write so that a restart reproduces the effect of `command` on `metadata`."""
    # While the log is replayed, neither the bounds nor the parameters are checked.
    if beyond_bounds(metadata, command) is not None:
        return []
    if isinstance(command, SetParameter):
        return _durable_parameter(metadata, command)
    if isinstance(command, LeaseCommand):
        return [command] if _is_of_durable_queue(metadata, command) else []
    if not isinstance(command, _OF_TOPOLOGY):
        return [command]
    vhost = metadata.vhost(command.vhost)
    if vhost is None:
        return []
    topology = vhost.topology
    match command:
        case DeclareExchange():
            return [command] if command.durable and command.name not in topology.exchanges else []
        case DeclareQueue():
            survives_restart = command.durable and command.owner is None
            return [command] if survives_restart and command.name not in topology.queues else []
        case PauseQueue():
            paused = topology.queues.get(command.name)
            is_other = command.is_paused != (command.name in topology.paused)
            return [command] if paused is not None and paused.survives_restart and is_other else []
        case Bind():
            is_new = _have_both_ends(topology, command) and not topology.has_binding(binding_of(command))
            return [command] if is_new and _is_durable(topology, command) else []
        case DeleteExchange():
            if command.if_unused and topology.has_bindings_from(command.name):
                return []
            record = topology.exchanges.get(command.name)
            own = DeleteExchange(vhost=command.vhost, name=command.name)
            made: list[MetadataCommand] = [own] if record is not None and record.durable else []
        case DeleteQueue():
            queue = topology.queues.get(command.name)
            made = [command] if queue is not None and queue.survives_restart else []
        case DeleteExclusiveQueues():
            made = []
        case Unbind():
            is_there = topology.has_binding(binding_of(command))
            made = [command] if is_there and _is_durable(topology, command) else []
    orphans = topology.orphans(_removed_by(topology, command))
    made += [DeleteExchange(vhost=command.vhost, name=orphan.name) for orphan in orphans if orphan.durable]
    return made


def _durable_parameter(metadata: Metadata, command: SetParameter) -> list[MetadataCommand]:
    vhost = metadata.vhost(command.vhost)
    checked = None if vhost is None else checked_parameter(vhost.parameters, command)
    return [checked] if isinstance(checked, SetParameter) else []


def read_write_set(metadata: Metadata, command: MetadataCommand) -> ReadWriteSet:
    """The names that `command` reads and writes in the current `metadata`."""
    match command:
        case PutVhost() | RemoveVhost():
            return ReadWriteSet([("vhost", command.name)], [_EVERYTHING])
        case PutUser() | RemoveUser() | SetUserTags() | SetUserLimits():
            return ReadWriteSet([("user", command.name)], [_EVERYTHING])
        case PermissionCommand():
            user, vhost = command.user, command.vhost
            return ReadWriteSet(
                [("permission", user, vhost)], [_EVERYTHING, ("user", user), ("vhost", vhost)]
            )
        case SetGlobalParameter() | ClearGlobalParameter():
            return ReadWriteSet([("global", command.name)], [_EVERYTHING])
        case SetVhostLimits() | SetPolicy() | ClearPolicy() | SetParameter() | ClearParameter():
            return ReadWriteSet([("settings", command.vhost)], _reads(command))
        case (
            DeclareExchange()
            | DeleteExchange()
            | DeclareQueue()
            | PauseQueue()
            | DeleteQueue()
            | DeleteExclusiveQueues()
            | Bind()
            | Unbind()
        ):
            return _topology_read_write_set(metadata, command)
        case GrantLease() | RenewLease() | EndLease():
            return _lease_read_write_set(metadata, command)
        case _:
            return ReadWriteSet([_EVERYTHING], [])


def _topology_read_write_set(metadata: Metadata, command: TopologyCommand) -> ReadWriteSet:
    vhost = command.vhost
    reads = _reads(command)
    record = metadata.vhost(vhost)
    writes: list[Name] = []
    match command:
        case DeclareExchange() | DeleteExchange():
            writes.append(("exchange", vhost, command.name))
        case DeclareQueue():
            writes.append(("queue", vhost, command.name))
            if command.owner is not None:
                reads.append(("owner", vhost, command.owner))
        case PauseQueue() | DeleteQueue():
            writes.append(("queue", vhost, command.name))
        case DeleteExclusiveQueues():
            writes.append(("owner", vhost, command.owner))
            if record is not None:
                names, _ = record.topology.exclusive_part(command)
                writes += [("queue", vhost, name) for name in names]
        case Bind() | Unbind():
            writes.append(("binding", vhost, binding_of(command)))
            kind = "queue" if command.is_to_queue else "exchange"
            reads += [("exchange", vhost, command.source), (kind, vhost, command.destination)]
    if record is not None and not isinstance(command, _LEAVING):
        writes += [("exchange", vhost, name) for name in _shaken_by(record.topology, command)]
    return ReadWriteSet(writes, reads)


def _lease_read_write_set(metadata: Metadata, command: LeaseCommand) -> ReadWriteSet:
    lease = _lease_of(metadata, command)
    reads = _reads(command)
    if lease is None:
        return ReadWriteSet([], reads)
    vhost = command.vhost
    reads.append(("queue", vhost, lease.queue))
    return ReadWriteSet(
        [("lease", vhost, lease.id), ("key", vhost, lease.queue, lease.user, lease.key)], reads
    )


def _lease_of(metadata: Metadata, command: LeaseCommand) -> LeaseRecord | None:
    """What `command` is about."""
    if isinstance(command, GrantLease):
        return command.lease
    vhost = metadata.vhost(command.vhost)
    return None if vhost is None else vhost.topology.leases.by_id.get(command.id)


def _is_of_durable_queue(metadata: Metadata, command: LeaseCommand) -> bool:
    """True if `command` concerns a lease of a durable queue, which survives a restart with its leases."""
    vhost, lease = metadata.vhost(command.vhost), _lease_of(metadata, command)
    if vhost is None or lease is None:
        return False
    queue = vhost.topology.queues.get(lease.queue)
    return queue is not None and queue.survives_restart


def _reads(command: VhostCommand) -> list[Name]:
    return [_EVERYTHING, ("vhost", command.vhost)]


def _have_both_ends(topology: DeclaredTopology, command: Bind) -> bool:
    destinations = topology.queues if command.is_to_queue else topology.exchanges
    return command.source in topology.exchanges and command.destination in destinations


def _is_durable(topology: DeclaredTopology, command: Bind | Unbind) -> bool:
    """True if both ends, which are there, survive a restart, and so what is between them."""
    if not topology.exchanges[command.source].durable:
        return False
    if command.is_to_queue:
        return topology.queues[command.destination].survives_restart
    return topology.exchanges[command.destination].durable


def _removed_by(topology: DeclaredTopology, command: TopologyCommand) -> list[BindingRecord]:
    """The bindings that `command` removes, whose auto-delete sources may be deleted as a consequence."""
    match command:
        case DeleteQueue():
            return topology.bindings_to_queue(command.name)
        case DeleteExclusiveQueues():
            _, bindings = topology.exclusive_part(command)
            return bindings
        case DeleteExchange():
            bindings = topology.bindings_to_exchange(command.name)
            return [binding for binding in bindings if binding.source != command.name]
        case Unbind():
            binding = binding_of(command)
            return [binding] if topology.has_binding(binding) else []
        case _:
            return []


def _shaken_by(topology: DeclaredTopology, command: TopologyCommand) -> set[str]:
    """The auto-delete exchanges that lose bindings by `command`, whether they are deleted or not."""
    removed = _removed_by(topology, command)
    for orphan in topology.orphans(removed):
        removed += topology.bindings_to_exchange(orphan.name)
    return {binding.source for binding in removed if topology.exchanges[binding.source].auto_delete}
