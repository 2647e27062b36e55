"""Replaces metadata by those of a snapshot: through events, so that what is the same in both goes on.

A member of a cluster that was away gets a snapshot of the metadata. Its live queues, exchanges and links
follow events, so the snapshot is reached by commands: first what is gone, then what is new or has changed. A
queue is the same if its record is, apart from its members: one that was deleted and declared again has
another number.

Invariant: afterwards both have the same content in the same order, since the order decides what a command
does first that does a part of its work at once.

It is done at once: metadata that are half replaced are those of no time. 100,000 queues with a binding that
are the same take a third of a second, and as many that are new, with as many that are gone, two.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from warren.metadata.commands import (
    ClearGlobalParameter,
    ClearParameter,
    ClearPermissions,
    ClearPolicy,
    ClearTopicPermissions,
    CommandContext,
    DeleteExchange,
    DeleteQueue,
    EndLease,
    GrantLease,
    MetadataCommand,
    PauseQueue,
    RemoveUser,
    RemoveVhost,
    RenewLease,
    RestoreTopology,
    SetGlobalParameter,
    SetParameter,
    SetVhostLimits,
)
from warren.metadata.declared_topology import DeclaredTopology, unbind_of
from warren.metadata.leases import LeaseState
from warren.metadata.machine import Metadata
from warren.metadata.policies import Policies
from warren.metadata.queue_members import differs_in_members_only
from warren.metadata.records import QueueRecord
from warren.metadata.restoring_commands import (
    put_user,
    put_vhost,
    restore_members,
    set_permissions,
    set_policy,
    set_topic_permissions,
)
from warren.metadata.vhosts import VhostMetadata

K = TypeVar("K")
V = TypeVar("V")


def replace(current: Metadata, target: Metadata, index: int) -> None:
    """Make `current` equal to `target`, whose last command has this index, and tell its listeners.

    `target` is not to be used any more.
    """
    # What is done is in the log of others already, and not to be logged as done by anybody here.
    observer, current.observer = current.observer, None
    current.is_cascading = False
    context = CommandContext(index=index, now=0, is_accepted=True)
    for command in commands_between(current, target):
        current.apply(command, context)
    current.is_cascading = True
    current.observer = observer
    current.index = index
    current.next_number = target.next_number
    current.next_transient_number = target.next_transient_number
    current.in_doubt_numbers.until = target.in_doubt_numbers.until
    current.in_doubt_numbers.settled = set(target.in_doubt_numbers.settled)
    current.applied_proposals.forget_runs()
    for row in target.applied_proposals.rows():
        current.apply(row, context)
    for member in target.members.removed:
        current.applied_proposals.remove(member)
    _reorder(current, target)


def commands_between(current: Metadata, target: Metadata) -> Iterator[MetadataCommand]:
    """The commands that make `current` equal to `target` if each is applied as it comes, without cascades."""
    for name in [name for name in current.vhosts.by_name if name not in target.vhosts.by_name]:
        yield RemoveVhost(name=name)
    for name in [name for name in current.users.by_name if name not in target.users.by_name]:
        yield RemoveUser(name=name)
    for vhost in list(current.vhosts.by_name.values()):
        yield from _removals(vhost, target.vhosts.by_name[vhost.name])
    yield from _permission_removals(current, target)
    for name in _missing(current.global_parameters.by_name, target.global_parameters.by_name):
        yield ClearGlobalParameter(name=name)
    yield from _member_changes(current, target)
    for wanted in target.vhosts.by_name.values():
        known = current.vhosts.by_name.get(wanted.name)
        if known is None or put_vhost(known) != put_vhost(wanted):
            yield put_vhost(wanted)
        yield from _additions(current.vhosts.by_name[wanted.name], wanted)
    yield from _user_changes(current, target)
    for name, value in _changed(current.global_parameters.by_name, target.global_parameters.by_name):
        yield SetGlobalParameter(name=name, value=value)


def _removals(current: VhostMetadata, target: VhostMetadata) -> Iterator[MetadataCommand]:
    """What is not in the virtual host any more."""
    vhost, topology, wanted = current.name, current.topology, target.topology
    yield from _lease_ends(topology, wanted)
    queues = [name for name, queue in topology.queues.items() if not _is_kept(queue, wanted)]
    exchanges = [name for name, one in topology.exchanges.items() if wanted.exchanges.get(name) != one]
    removed_queues, removed_exchanges = set(queues), set(exchanges)
    for binding in list(topology.bindings()):
        ends = removed_queues if binding.is_to_queue else removed_exchanges
        is_removed_with_end = binding.source in removed_exchanges or binding.destination in ends
        if not is_removed_with_end and not wanted.has_binding(binding):
            yield unbind_of(vhost, binding)
    for name in queues:
        yield DeleteQueue(vhost=vhost, name=name)
    for name in exchanges:
        yield DeleteExchange(vhost=vhost, name=name)
    for name in [name for name in topology.paused if name not in wanted.paused]:
        yield PauseQueue(vhost=vhost, name=name, is_paused=False)
    for is_operator, known, others in _policies(current, target):
        for name in _missing(known.by_name, others.by_name):
            yield ClearPolicy(vhost=vhost, name=name, is_operator=is_operator)
    for component, name in _missing(current.parameters.by_key, target.parameters.by_key):
        yield ClearParameter(vhost=vhost, component=component, name=name)


def _is_kept(queue: QueueRecord, wanted: DeclaredTopology) -> bool:
    """True if `queue` is in `wanted`, perhaps with other members if it is a quorum queue."""
    other = wanted.queues.get(queue.name)
    if other is None or other == queue:
        return other is not None
    return queue.is_quorum and differs_in_members_only(queue, other)


def _lease_ends(topology: DeclaredTopology, wanted: DeclaredTopology) -> Iterator[MetadataCommand]:
    """The ends of leases that are active here, as far as their queues are the same."""
    for lease in list(topology.leases.active()):
        ended = wanted.leases.by_id.get(lease.id)
        if ended is None or not ended.is_active:
            # One that is not remembered any more has ended long ago; its messages are as they would be after
            # a restart.
            state = LeaseState.EXPIRED if ended is None else ended.state
            yield EndLease(vhost=topology.vhost, id=lease.id, state=state)


def _additions(current: VhostMetadata, target: VhostMetadata) -> Iterator[MetadataCommand]:
    """What is new in the virtual host, or has changed."""
    vhost, topology, wanted = target.name, current.topology, target.topology
    if current.limits != target.limits:
        yield SetVhostLimits(vhost=vhost, limits=target.limits)
    for is_operator, known, others in _policies(current, target):
        for _, policy in _changed(known.by_name, others.by_name):
            yield set_policy(vhost, policy, is_operator=is_operator)
    for key, value in target.parameters.by_key.items():
        user = target.parameters.user_of(*key)
        known_value = current.parameters.by_key.get(key, _NOTHING)
        if known_value != value or current.parameters.user_of(*key) != user:
            yield SetParameter(vhost=vhost, component=key[0], name=key[1], value=value, user=user)
    yield RestoreTopology(
        vhost=vhost,
        exchanges=tuple(one for one in wanted.exchanges.values() if one.name not in topology.exchanges),
        queues=tuple(one for one in wanted.queues.values() if topology.queues.get(one.name) != one),
        bindings=tuple(one for one in wanted.bindings() if not topology.has_binding(one)),
    )
    for name in [name for name in wanted.paused if name not in topology.paused]:
        yield PauseQueue(vhost=vhost, name=name)
    for lease in list(wanted.leases.active()):
        known_lease = topology.leases.by_id.get(lease.id)
        if known_lease is None:
            yield GrantLease(vhost=vhost, lease=lease)
        elif known_lease.expires_at != lease.expires_at:
            yield RenewLease(vhost=vhost, id=lease.id, expires_at=lease.expires_at)


def _permission_removals(current: Metadata, target: Metadata) -> Iterator[MetadataCommand]:
    """Permissions of users and in virtual hosts that are still there."""
    known, wanted = current.permissions, target.permissions
    for user, vhost in _missing(known.by_user_and_vhost, wanted.by_user_and_vhost):
        yield ClearPermissions(user=user, vhost=vhost)
    for (user, vhost), topics in list(known.topics_by_user_and_vhost.items()):
        for exchange in _missing(topics, wanted.topics_by_user_and_vhost.get((user, vhost), {})):
            yield ClearTopicPermissions(user=user, vhost=vhost, exchange=exchange)


def _user_changes(current: Metadata, target: Metadata) -> Iterator[MetadataCommand]:
    """Users and permissions that are new or have changed."""
    for _, user in _changed(current.users.by_name, target.users.by_name):
        yield put_user(user)
    known, wanted = current.permissions, target.permissions
    for (name, vhost), permission in _changed(known.by_user_and_vhost, wanted.by_user_and_vhost):
        yield set_permissions(name, vhost, permission)
    for (name, vhost), topics in wanted.topics_by_user_and_vhost.items():
        for exchange, topic in _changed(known.topics_by_user_and_vhost.get((name, vhost), {}), topics):
            yield set_topic_permissions(name, vhost, exchange, topic)


def _member_changes(current: Metadata, target: Metadata) -> Iterator[MetadataCommand]:
    """The members of the cluster, unless they are the same."""
    known, wanted = current.members, target.members
    if restore_members(known) != restore_members(wanted):
        yield restore_members(wanted)


_NOTHING: object = object()


def _policies(
    current: VhostMetadata, target: VhostMetadata
) -> tuple[tuple[bool, Policies, Policies], tuple[bool, Policies, Policies]]:
    """Whether they are an operator's, those that are there, and those that are wanted."""
    return (
        (False, current.policies, target.policies),
        (True, current.operator_policies, target.operator_policies),
    )


def _missing(known: Mapping[K, object], wanted: Mapping[K, object]) -> list[K]:
    """The keys that are not wanted."""
    return [key for key in known if key not in wanted]


def _changed(known: Mapping[K, V], wanted: Mapping[K, V]) -> list[tuple[K, V]]:
    """What is wanted and not there, or something else there."""
    return [(key, value) for key, value in wanted.items() if known.get(key, _NOTHING) != value]


def _reorder(current: Metadata, target: Metadata) -> None:
    """Bring everything into the order of `target`."""
    reorder(current.vhosts.by_name, target.vhosts.by_name)
    current.vhosts.removed.clear()
    current.vhosts.removed.update(target.vhosts.removed)
    reorder(current.users.by_name, target.users.by_name)
    reorder(current.global_parameters.by_name, target.global_parameters.by_name)
    reorder(current.permissions.by_user_and_vhost, target.permissions.by_user_and_vhost)
    reorder(current.permissions.topics_by_user_and_vhost, target.permissions.topics_by_user_and_vhost)
    for key, topics in current.permissions.topics_by_user_and_vhost.items():
        reorder(topics, target.permissions.topics_by_user_and_vhost[key])
    for name, vhost in current.vhosts.by_name.items():
        wanted = target.vhosts.by_name[name]
        reorder(vhost.parameters.by_key, wanted.parameters.by_key)
        reorder(vhost.policies.by_name, wanted.policies.by_name)
        reorder(vhost.operator_policies.by_name, wanted.operator_policies.by_name)
        vhost.topology.take_order(wanted.topology)


def reorder(known: dict[K, V], wanted: Mapping[K, object]) -> None:
    """Bring `known` into the order of `wanted`, which has the same keys."""
    assert len(known) == len(wanted), f"{len(known)} where {len(wanted)} are wanted"
    found = {key: known[key] for key in wanted}
    known.clear()
    known.update(found)
