"""Determines which commands change nothing that survives a restart.

On a node alone such a command need not be synced before it is applied: it is in the log in its place, but its
bytes are written with the next batch. If a crash loses them, it loses everything behind them too, and the
next start would delete what they made.

While refused commands are in doubt, because a write has failed and a crash may apply them, fewer answers are
certain: that a durable queue exists already, or that a queue is gone, is what they could make untrue.
"""

from collections.abc import Callable, Sequence
from typing import Any

from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteExchange,
    DeleteExclusiveQueues,
    DeleteQueue,
    EndLease,
    GrantLease,
    MetadataCommand,
    PauseQueue,
    RenewLease,
    Unbind,
    VhostCommand,
)
from warren.metadata.declared_topology import DeclaredTopology, binding_of
from warren.metadata.machine import Metadata
from warren.metadata.records import BindingRecord


def is_volatile(metadata: Metadata, command: MetadataCommand) -> bool:
    """True if `command`, applied to `metadata`, certainly changes nothing that survives a restart."""
    if len(metadata.members.by_id) > 1:
        # What a run of another node has made is not deleted by a start of this one.
        return False
    if not isinstance(command, VhostCommand):
        return isinstance(command, DeleteEphemeral)
    vhost = metadata.vhosts.by_name.get(command.vhost)
    if vhost is None:
        return True
    check = _CHECKS.get(type(command))
    return check is not None and check(vhost.topology, command)


def is_certain(metadata: Metadata, command: MetadataCommand) -> bool:
    """True if the answer to the volatile `command` stays true, whatever a crash applies or loses."""
    vhost = metadata.vhost(command.vhost) if isinstance(command, VhostCommand) else None
    return vhost is None or _is_certain(vhost.topology, command)


def _is_certain(topology: DeclaredTopology, command: MetadataCommand) -> bool:
    match command:
        case DeclareQueue():
            return not command.durable or command.owner is not None
        case DeclareExchange():
            return not command.durable
        case Bind() | Unbind():
            return not _survives_restart(topology, binding_of(command))
        case DeleteQueue():
            return command.name in topology.queues
        case DeleteExchange():
            return command.name in topology.exchanges
        case _:
            return True


def _declares_queue(topology: DeclaredTopology, command: DeclareQueue) -> bool:
    survives_restart = command.durable and command.owner is None
    return not survives_restart or command.name in topology.queues


def _declares_exchange(topology: DeclaredTopology, command: DeclareExchange) -> bool:
    return not command.durable or command.name in topology.exchanges


def _binds(topology: DeclaredTopology, command: Bind) -> bool:
    binding = binding_of(command)
    return not _survives_restart(topology, binding) or topology.has_binding(binding)


def _unbinds(topology: DeclaredTopology, command: Unbind) -> bool:
    binding = binding_of(command)
    if not topology.has_binding(binding):
        return True
    return not _survives_restart(topology, binding) and _leave_volatile(topology, [binding])


def _deletes_queue(topology: DeclaredTopology, command: DeleteQueue) -> bool:
    queue = topology.queues.get(command.name)
    if queue is None:
        return True
    return not queue.survives_restart and _leave_volatile(topology, topology.bindings_to_queue(command.name))


def _deletes_exclusive_queues(topology: DeclaredTopology, command: DeleteExclusiveQueues) -> bool:
    _, bindings = topology.exclusive_part(command)
    return _leave_volatile(topology, bindings)


def _deletes_exchange(topology: DeclaredTopology, command: DeleteExchange) -> bool:
    exchange = topology.exchanges.get(command.name)
    if exchange is None or (command.if_unused and topology.has_bindings_from(command.name)):
        return True
    return not exchange.durable and _leave_volatile(topology, topology.bindings_to_exchange(command.name))


def _changes_lease(topology: DeclaredTopology, command: RenewLease | EndLease) -> bool:
    lease = topology.leases.by_id.get(command.id)
    return lease is None or _is_of_volatile_queue(topology, lease.queue)


def _is_of_volatile_queue(topology: DeclaredTopology, name: str) -> bool:
    queue = topology.queues.get(name)
    return queue is None or not queue.survives_restart


def _survives_restart(topology: DeclaredTopology, binding: BindingRecord) -> bool:
    """True if both ends of `binding` exist and survive a restart, and so does what is between them."""
    source = topology.exchanges.get(binding.source)
    if source is None or not source.durable:
        return False
    if binding.is_to_queue:
        queue = topology.queues.get(binding.destination)
        return queue is not None and queue.survives_restart
    destination = topology.exchanges.get(binding.destination)
    return destination is not None and destination.durable


def _leave_volatile(topology: DeclaredTopology, bindings: Sequence[BindingRecord]) -> bool:
    """True if no durable auto-delete exchange can be deleted because `bindings` are removed.

    It need not be its last binding: this is not the rule by which exchanges are deleted, which is in one
    place, but a bound on what that can do.
    """
    if not bindings:
        return True
    waiting = list(bindings)
    seen: set[str] = set()
    while waiting:
        source = topology.exchanges[waiting.pop().source]
        if not source.auto_delete or source.name in seen:
            continue
        if source.durable:
            return False
        seen.add(source.name)
        waiting += topology.bindings_to_exchange(source.name)
    return True


# Of a command that is not here, anything may survive a restart.
_CHECKS: dict[type[VhostCommand], Callable[[DeclaredTopology, Any], bool]] = {
    DeclareQueue: _declares_queue,
    DeclareExchange: _declares_exchange,
    Bind: _binds,
    Unbind: _unbinds,
    DeleteQueue: _deletes_queue,
    DeleteExclusiveQueues: _deletes_exclusive_queues,
    DeleteExchange: _deletes_exchange,
    PauseQueue: lambda topology, command: _is_of_volatile_queue(topology, command.name),
    GrantLease: lambda topology, command: _is_of_volatile_queue(topology, command.lease.queue),
    RenewLease: _changes_lease,
    EndLease: _changes_lease,
}
