"""Audit events of metadata commands, with RabbitMQ's routing keys and headers.

Events about users, policies and parameters are made from the command, which has all facts; those about
queues, exchanges and bindings from the metadata's own events, because one deletion may cause others.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from warren.metadata import commands, member_commands
from warren.metadata.commands import MetadataCommand, Outcome, Reply
from warren.metadata.events import (
    BindingAdded,
    BindingRemoved,
    Event,
    ExchangeDeclared,
    ExchangeDeleted,
    LeaseEnded,
    LeaseGranted,
    PermissionsChanged,
    QueueDeclared,
    QueueDeleted,
    QueueMembersChanged,
    QueuePaused,
)
from warren.metadata.incarnation import serial_of
from warren.metadata.leases import LeaseRecord
from warren.metadata.machine import Metadata
from warren.metadata.parameter_secrets import masked_parameter
from warren.metadata.parameters import OPERATOR_POLICY, VHOST_LIMITS
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.model.erlang_terms import printed_description
from warren.session.events.event_publisher import EventPublisher, printed
from warren.wire.table import Table

AuditEvent = tuple[str, Table]

_LIMITS = "limits"
_GLOBAL = "global"
# Commands whose audit events are made from the metadata's events.
_TOPOLOGY_COMMANDS: frozenset[type[MetadataCommand]] = frozenset((
    commands.DeclareExchange, commands.DeleteExchange, commands.DeclareQueue, commands.DeleteQueue,
    commands.PauseQueue, commands.GrantLease, commands.RenewLease, commands.EndLease,
    commands.DeleteExclusiveQueues, commands.Bind, commands.Unbind, commands.RestoreTopology,
    commands.DeleteEphemeral, commands.ChangeQueueMembers, commands.RemoveReplicas,
    commands.LeadQueue,
    # These concern the store only, and have no audit event.
    commands.RememberRemoved, commands.DoubtNumbers, commands.SettleNumbers,
))  # fmt: skip


def is_topology_command(command: MetadataCommand) -> bool:
    """True if it is about queues, exchanges and bindings, which applications change often."""
    return type(command) in _TOPOLOGY_COMMANDS


class AuditEvents:
    """Makes the audit events of commands."""

    def __init__(self, metadata: Metadata, event_publisher: EventPublisher) -> None:
        self._metadata = metadata
        self._event_publisher = event_publisher

    def audit_events(
        self, command: MetadataCommand, reply: Reply, events: tuple[Event, ...]
    ) -> Iterator[AuditEvent]:
        """The events in order; none if the command was refused or changed nothing."""
        if reply.outcome in (Outcome.REFUSED, Outcome.MISSING):
            return
        if is_topology_command(command):
            for event in events:
                yield from self._topology(event)
            return
        if isinstance(command, commands.PutVhost):
            yield from self._vhost(command, is_new=reply.outcome is Outcome.DONE)
        elif isinstance(command, commands.RemoveVhost):
            for event in events:
                if isinstance(event, PermissionsChanged):
                    yield "permission.deleted", {"vhost": event.vhost, "user": event.user}
            yield "vhost.deleted", {"name": command.name}
        elif isinstance(command, commands.PutUser):
            yield from _user(command, is_new=reply.outcome is Outcome.DONE)
        else:
            yield from _EVENTS_OF_COMMAND[type(command)](command)

    def _vhost(self, command: commands.PutVhost, *, is_new: bool) -> Iterator[AuditEvent]:
        vhost = self._metadata.vhost(command.name)
        assert vhost is not None
        if is_new:
            for exchange in vhost.topology.exchanges.values():
                yield "exchange.created", self._exchange(command.name, exchange)
        facts = {
            "tags": list(command.tags),
            "description": command.description,
            "cluster_state": {self._event_publisher.node_name: "running"},
            "tracing": command.tracing,
            "metadata": printed_description(command.description, command.tags),
            "default_queue_type": command.default_queue_type or "undefined",
            "name": command.name,
        }
        yield "vhost.created" if is_new else "vhost.updated", facts

    def _topology(self, event: Event) -> Iterator[AuditEvent]:
        match event:
            case QueueDeclared(vhost=vhost, queue=queue):
                yield "queue.created", self._queue(vhost, queue)
            case QueueDeleted(vhost=vhost, queue=queue):
                yield "queue.deleted", {"name": queue.name, "vhost": vhost}
            case QueueMembersChanged(vhost=vhost, queue=queue):
                names = [self._name_of(node) for node, _ in queue.replicas]
                yield "queue.members.changed", {"name": queue.name, "vhost": vhost, "members": names}
            case QueuePaused(vhost=vhost, queue=queue, is_paused=is_paused):
                key = "queue.paused" if is_paused else "queue.resumed"
                yield key, {"name": queue.name, "vhost": vhost}
            case LeaseGranted(vhost=vhost, lease=lease):
                yield "lease.granted", _lease(vhost, lease)
            case LeaseEnded(vhost=vhost, lease=lease, state=state):
                yield "lease.ended", _lease(vhost, lease) | {"state": state.value}
            case ExchangeDeclared(vhost=vhost, exchange=exchange):
                yield "exchange.created", self._exchange(vhost, exchange)
            case ExchangeDeleted(vhost=vhost, exchange=exchange):
                yield "exchange.deleted", {"name": exchange.name, "vhost": vhost}
            case BindingAdded(vhost=vhost, binding=binding):
                yield "binding.created", _binding(vhost, binding)
            case BindingRemoved(vhost=vhost, binding=binding):
                yield "binding.deleted", _binding(vhost, binding)
            case _:
                pass

    def _name_of(self, node: int) -> str:
        """The name of a node that is a member of the cluster, or was one."""
        members = self._metadata.members
        return (members.by_id.get(node) or members.removed[node]).name

    def _queue(self, vhost: str, queue: QueueRecord) -> Table:
        owner = queue.owner
        return {
            "exclusive": owner is not None,
            "owner_pid": "" if owner is None else self._event_publisher.pid(serial_of(owner)),
            "arguments": printed(queue.arguments),
            "auto_delete": queue.auto_delete,
            "durable": queue.durable,
            "name": queue.name,
            "vhost": vhost,
        }

    def _exchange(self, vhost: str, exchange: ExchangeRecord) -> Table:
        found = self._metadata.vhost(vhost)
        policy = None if found is None else found.policies_of(exchange.name, "exchange")[0]
        return {
            "policy": "" if policy is None else policy.name,
            "arguments": printed(exchange.arguments),
            "internal": exchange.internal,
            "auto_delete": exchange.auto_delete,
            "durable": exchange.durable,
            "type": exchange.type,
            "name": exchange.name,
            "vhost": vhost,
        }


def _binding(vhost: str, binding: BindingRecord) -> Table:
    return {
        "vhost": vhost,
        "arguments": printed(binding.arguments),
        "routing_key": binding.routing_key,
        "destination_kind": binding.destination_kind,
        "destination_name": binding.destination,
        "source_kind": "exchange",
        "source_name": binding.source,
    }


def _user(command: commands.PutUser, *, is_new: bool) -> Iterator[AuditEvent]:
    yield "user.created" if is_new else "user.password.changed", {"name": command.name}
    if command.tags or not is_new:
        yield "user.tags.set", {"tags": list(command.tags), "name": command.name}


def _limits_of_user(command: commands.SetUserLimits) -> Iterator[AuditEvent]:
    key = "user.limits.set" if command.limits else "user.limits.cleared"
    yield key, {**_plain(command.limits), "username": command.name, "name": _LIMITS}


def _permissions(command: commands.SetPermissions) -> Iterator[AuditEvent]:
    yield (
        "permission.created",
        {
            "read": command.read,
            "write": command.write,
            "configure": command.configure,
            "vhost": command.vhost,
            "user": command.user,
        },
    )


def _topic_permissions(command: commands.SetTopicPermissions) -> Iterator[AuditEvent]:
    yield (
        "topic.permission.created",
        {
            "read": command.read,
            "write": command.write,
            "exchange": command.exchange,
            "vhost": command.vhost,
            "user": command.user,
        },
    )


def _no_topic_permissions(command: commands.ClearTopicPermissions) -> Iterator[AuditEvent]:
    exchange = {} if command.exchange is None else {"exchange": command.exchange}
    yield "topic.permission.deleted", {**exchange, "vhost": command.vhost, "user": command.user}


def _policy(command: commands.SetPolicy) -> Iterator[AuditEvent]:
    facts = _plain(
        {
            "apply-to": command.apply_to,
            "priority": command.priority,
            "definition": command.definition,
            "pattern": command.pattern,
        }
    )
    if command.is_operator:
        yield "parameter.set", _parameter(command.vhost, OPERATOR_POLICY, command.name, facts)
    yield "policy.set", {**facts, "vhost": command.vhost, "name": command.name}


def _no_policy(command: commands.ClearPolicy) -> Iterator[AuditEvent]:
    facts = {"vhost": command.vhost, "name": command.name}
    if command.is_operator:
        yield "parameter.cleared", {"component": OPERATOR_POLICY, **facts}
    yield "operator.policy.cleared" if command.is_operator else "policy.cleared", facts


def _limits_of_vhost(command: commands.SetVhostLimits) -> Iterator[AuditEvent]:
    limits = _plain(command.limits)
    if limits:
        yield "parameter.set", _parameter(command.vhost, VHOST_LIMITS, _LIMITS, limits)
        yield "vhost.limits.set", {**limits, "name": _LIMITS, "vhost": command.vhost}
    else:
        yield "parameter.cleared", {"component": VHOST_LIMITS, "name": _LIMITS, "vhost": command.vhost}
        yield "vhost.limits.cleared", {"name": _LIMITS, "vhost": command.vhost}


def _parameter(vhost: str, component: str, name: str, value: object) -> Table:
    return {"value": value, "name": name, "component": component, "vhost": vhost}


def _cleared(command: commands.ClearParameter) -> Iterator[AuditEvent]:
    yield "parameter.cleared", {
        "name": command.name, "component": command.component, "vhost": command.vhost
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Convert a JSON value to a field-table value: its mappings become tables."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _one(key: str, *names: str) -> Callable[[Any], Iterator[AuditEvent]]:
    """Make an event with the attributes `names` of a command."""

    def tell(command: Any) -> Iterator[AuditEvent]:
        found = {name: getattr(command, name) for name in names}
        yield key, {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    return tell


def _lease(vhost: str, lease: LeaseRecord) -> Table:
    return {
        "lease": lease.id,
        "queue": lease.queue,
        "vhost": vhost,
        "user": lease.user,
        "key": lease.key,
        "messages": lease.messages,
    }


def _set(command: commands.SetParameter) -> Iterator[AuditEvent]:
    value = _plain(masked_parameter(command.component, command.value))
    yield "parameter.set", _parameter(command.vhost, command.component, command.name, value)


def _set_globally(command: commands.SetGlobalParameter) -> Iterator[AuditEvent]:
    yield "parameter.set", {"value": _plain(command.value), "name": command.name, "component": _GLOBAL}


def _cleared_globally(command: commands.ClearGlobalParameter) -> Iterator[AuditEvent]:
    yield "parameter.cleared", {"name": command.name, "component": _GLOBAL}


_EVENTS_OF_COMMAND: dict[type[MetadataCommand], Callable[[Any], Iterator[AuditEvent]]] = {
    commands.RemoveUser: _one("user.deleted", "name"),
    commands.SetUserTags: _one("user.tags.set", "tags", "name"),
    commands.SetUserLimits: _limits_of_user,
    commands.SetPermissions: _permissions,
    commands.ClearPermissions: _one("permission.deleted", "vhost", "user"),
    commands.SetTopicPermissions: _topic_permissions,
    commands.ClearTopicPermissions: _no_topic_permissions,
    commands.SetPolicy: _policy,
    commands.ClearPolicy: _no_policy,
    commands.SetVhostLimits: _limits_of_vhost,
    commands.SetParameter: _set,
    commands.ClearParameter: _cleared,
    commands.SetGlobalParameter: _set_globally,
    commands.ClearGlobalParameter: _cleared_globally,
    member_commands.FormCluster: _one("cluster.formed", "name", "host", "cluster_port"),
    member_commands.AdmitMember: _one("cluster.member.admitted", "name", "host", "cluster_port"),
    member_commands.RemoveMember: _one("cluster.member.removed", "id", "is_forgotten"),
    member_commands.MemberUp: _one("cluster.member.up", "id", "host", "cluster_port"),
    member_commands.MemberDown: _one("cluster.member.down", "id"),
    member_commands.SetMemberDraining: _one("cluster.member.draining", "id", "is_draining"),
    member_commands.RaiseFeatureLevel: _one("cluster.feature_level.raised", "level"),
}
