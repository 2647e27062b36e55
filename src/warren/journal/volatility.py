"""Determines which commands change nothing that survives a restart.

On a node alone such a command need not be synced before it is applied: it is in the log in its place, but its
bytes are written with the next batch. If a crash loses them, it loses everything behind them too, and the
next start would delete what they made.

While refused commands are in doubt, because a write has failed and a crash may apply them, fewer answers are
certain: that a durable queue exists already, or that a queue is gone, is what they could make untrue.
"""

from collections.abc import Iterable

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
    if isinstance(command, DeleteEphemeral):
        return True
    if not isinstance(command, VhostCommand):
        return False
    vhost = metadata.vhost(command.vhost)
    return vhost is None or _is_volatile(vhost.topology, command)


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


def _is_volatile(topology: DeclaredTopology, command: VhostCommand) -> bool:
    match command:
        case DeclareQueue():
            survives_restart = command.durable and command.owner is None
            return not survives_restart or command.name in topology.queues
        case DeclareExchange():
            return not command.durable or command.name in topology.exchanges
        case Bind():
            binding = binding_of(command)
            return not _survives_restart(topology, binding) or topology.has_binding(binding)
        case Unbind():
            binding = binding_of(command)
            if not topology.has_binding(binding):
                return True
            return not _survives_restart(topology, binding) and _leave_volatile(topology, [binding])
        case DeleteQueue():
            queue = topology.queues.get(command.name)
            if queue is None:
                return True
            bindings = topology.bindings_to_queue(command.name)
            return not queue.survives_restart and _leave_volatile(topology, bindings)
        case DeleteExclusiveQueues():
            _, bindings = topology.exclusive_part(command)
            return _leave_volatile(topology, bindings)
        case DeleteExchange():
            return _is_volatile_deletion(topology, command)
        case PauseQueue():
            return _is_of_volatile_queue(topology, command.name)
        case GrantLease():
            return _is_of_volatile_queue(topology, command.lease.queue)
        case RenewLease() | EndLease():
            lease = topology.leases.by_id.get(command.id)
            return lease is None or _is_of_volatile_queue(topology, lease.queue)
        case _:
            return False


def _is_volatile_deletion(topology: DeclaredTopology, command: DeleteExchange) -> bool:
    exchange = topology.exchanges.get(command.name)
    if exchange is None or (command.if_unused and topology.has_bindings_from(command.name)):
        return True
    return not exchange.durable and _leave_volatile(topology, topology.bindings_to_exchange(command.name))


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


def _leave_volatile(topology: DeclaredTopology, bindings: Iterable[BindingRecord]) -> bool:
    """True if no durable auto-delete exchange can be deleted because `bindings` are removed.

    It need not be its last binding: this is not the rule by which exchanges are deleted, which is in one
    place, but a bound on what that can do.
    """
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
