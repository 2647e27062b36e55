"""The entries of definitions by identity: of a document, from its commands, and of the existing metadata.

Their facts are in the form of the document, in which numbers have no width, and without passwords.
"""

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from warren.metadata.commands import (
    Bind,
    ClearGlobalParameter,
    ClearParameter,
    ClearPermissions,
    ClearTopicPermissions,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    Json,
    MetadataCommand,
    PutUser,
    PutVhost,
    RemoveUser,
    RemoveVhost,
    SetGlobalParameter,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetTopicPermissions,
)
from warren.metadata.declared_topology import unbind_of
from warren.metadata.definitions import is_exported, json_value, parameter_entries
from warren.metadata.machine import Metadata
from warren.metadata.parameters import OPERATOR_POLICY, POLICY, VHOST_LIMITS
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.metadata.users import User
from warren.metadata.vhosts import VhostMetadata
from warren.model.names import RESERVED_PREFIX
from warren.wire.table import Value

Facts = Mapping[str, Json]
_NO_FACTS: Facts = {}


class DefinitionKey(NamedTuple):
    """The identity of an entry."""

    # The name of its section in the document.
    section: str
    vhost: str
    name: str
    # Of a binding: kind of destination, destination, routing key, arguments; of a topic permission: the
    # exchange; of a parameter: its component.
    more: tuple[str, ...] = ()


class DefinitionEntry(NamedTuple):
    """An existing object: its facts, and the command that removes it."""

    facts: Facts
    removal: MetadataCommand


def definition_key_of(command: MetadataCommand) -> DefinitionKey:
    """The key of the entry that `command`, of an import, sets."""
    match command:
        case PutUser(name=name):
            return DefinitionKey("users", "", name)
        case PutVhost(name=name):
            return DefinitionKey("vhosts", "", name)
        case SetPermissions(user=user, vhost=vhost):
            return DefinitionKey("permissions", vhost, user)
        case SetTopicPermissions(user=user, vhost=vhost, exchange=exchange):
            return DefinitionKey("topic_permissions", vhost, user, (exchange,))
        case SetGlobalParameter(name=name):
            return DefinitionKey("global_parameters", "", name)
        case SetPolicy(vhost=vhost, name=name):
            return DefinitionKey("policies", vhost, name)
        case SetParameter(vhost=vhost, name=name, component=component):
            return (
                DefinitionKey("parameters", vhost, name, (component,))
                if component != POLICY
                else DefinitionKey("policies", vhost, name)
            )
        case DeclareExchange(vhost=vhost, name=name):
            return DefinitionKey("exchanges", vhost, name)
        case DeclareQueue(vhost=vhost, name=name):
            return DefinitionKey("queues", vhost, name)
        case Bind(vhost=vhost, source=source, destination=destination):
            kind = "queue" if command.is_to_queue else "exchange"
            more = (kind, destination, command.routing_key, _written(command.arguments))
            return DefinitionKey("bindings", vhost, source, more)
    raise AssertionError(f"{command} is of no document")


_SINGULAR = {
    "users": "user", "vhosts": "virtual host", "global_parameters": "global parameter", "policies": "policy",
    "exchanges": "exchange", "queues": "queue",
}  # fmt: skip


def place_of(key: DefinitionKey) -> str:
    """How a message names the entry with `key`: its type, its name and its virtual host."""
    name = f"'{key.name}'"
    match key.section:
        case "bindings":
            kind, destination, routing_key = key.more[:3]
            text = f"binding from exchange {name} to {kind} '{destination}' with key '{routing_key}'"
        case "permissions":
            text = f"permissions of user {name}"
        case "topic_permissions":
            text = f"topic permissions of user {name} for exchange '{key.more[0]}'"
        case "parameters":
            text = f"parameter {name} of component '{key.more[0]}'"
        case section:
            text = f"{_SINGULAR[section]} {name}"
    return f"{text} in vhost '{key.vhost}'" if key.vhost else text


def facts_of(command: MetadataCommand) -> Facts:
    """The facts of the entry that `command` sets."""
    match command:
        case PutUser():
            return {"tags": list(command.tags), "limits": dict(command.limits or {})}
        case PutVhost():
            return _vhost_facts(command)
        case SetPermissions():
            return {"configure": command.configure, "write": command.write, "read": command.read}
        case SetTopicPermissions():
            return {"write": command.write, "read": command.read}
        case SetGlobalParameter(value=value):
            return {"value": value}
        case SetPolicy():
            return _policy_facts(
                {
                    "pattern": command.pattern,
                    "definition": command.definition,
                    "priority": command.priority,
                    "apply-to": command.apply_to,
                }
            )
        case SetParameter(component=component, value=value):
            return _parameter_facts(component, value)
        case DeclareExchange() | DeclareQueue():
            return _declared_facts(command)
    return _NO_FACTS


def is_empty_setting(command: MetadataCommand) -> bool:
    """True for an entry that equals its absence, such as empty limits of a virtual host."""
    return isinstance(command, SetParameter) and command.component == VHOST_LIMITS and not command.value


def existing_entries(metadata: Metadata, only: str | None) -> Iterator[tuple[DefinitionKey, DefinitionEntry]]:
    """All entries that an export of everything, or of one virtual host, would contain, read as the iterator
    advances.
    """
    if only is None:
        yield from _users(metadata)
    for vhost in list(metadata.vhosts.by_name.values()):
        if only is None:
            yield (
                DefinitionKey("vhosts", "", vhost.name),
                DefinitionEntry(_vhost_facts(vhost), RemoveVhost(name=vhost.name)),
            )
        if only in (None, vhost.name):
            yield from _settings(vhost)
            yield from _topology(vhost)


def _users(metadata: Metadata) -> Iterator[tuple[DefinitionKey, DefinitionEntry]]:
    for user in list(metadata.users.by_name.values()):
        yield (
            DefinitionKey("users", "", user.name),
            DefinitionEntry(_user_facts(user), RemoveUser(name=user.name)),
        )
    permissions = metadata.permissions
    for (user_name, vhost), permission in list(permissions.by_user_and_vhost.items()):
        facts = {"configure": permission.configure, "write": permission.write, "read": permission.read}
        removal: MetadataCommand = ClearPermissions(user=user_name, vhost=vhost)
        yield DefinitionKey("permissions", vhost, user_name), DefinitionEntry(facts, removal)
    for (user_name, vhost), topics in list(permissions.topics_by_user_and_vhost.items()):
        for exchange, topic in list(topics.items()):
            removal = ClearTopicPermissions(user=user_name, vhost=vhost, exchange=exchange)
            key = DefinitionKey("topic_permissions", vhost, user_name, (exchange,))
            yield key, DefinitionEntry({"write": topic.write, "read": topic.read}, removal)
    for name, value in list(metadata.global_parameters.by_name.items()):
        yield (
            DefinitionKey("global_parameters", "", name),
            DefinitionEntry({"value": value}, ClearGlobalParameter(name=name)),
        )


def _settings(vhost: VhostMetadata) -> Iterator[tuple[DefinitionKey, DefinitionEntry]]:
    for policy in list(vhost.policies.by_name.values()):
        facts = _policy_facts(
            {
                "pattern": policy.pattern,
                "definition": policy.definition,
                "priority": policy.priority,
                "apply-to": policy.apply_to,
            }
        )
        removal = ClearParameter(vhost=vhost.name, component=POLICY, name=policy.name)
        yield DefinitionKey("policies", vhost.name, policy.name), DefinitionEntry(facts, removal)
    for entry in list(parameter_entries(vhost)):
        component, name = str(entry["component"]), str(entry["name"])
        removal = ClearParameter(vhost=vhost.name, component=component, name=name)
        facts = _parameter_facts(component, entry["value"])
        yield DefinitionKey("parameters", vhost.name, name, (component,)), DefinitionEntry(facts, removal)


def _topology(vhost: VhostMetadata) -> Iterator[tuple[DefinitionKey, DefinitionEntry]]:
    name, topology = vhost.name, vhost.topology
    for exchange in list(topology.exchanges.values()):
        if exchange.name and not exchange.name.startswith(RESERVED_PREFIX):
            removal: MetadataCommand = DeleteExchange(vhost=name, name=exchange.name)
            yield (
                DefinitionKey("exchanges", name, exchange.name),
                DefinitionEntry(_declared_facts(exchange), removal),
            )
    for queue in list(topology.queues.values()):
        if is_exported(queue):
            removal = DeleteQueue(vhost=name, name=queue.name)
            yield DefinitionKey("queues", name, queue.name), DefinitionEntry(_declared_facts(queue), removal)
    for binding in list(topology.bindings()):
        if not binding.is_to_queue or is_exported(topology.queues.get(binding.destination)):
            yield _binding_key(name, binding), DefinitionEntry(_NO_FACTS, unbind_of(name, binding))


def _binding_key(vhost: str, binding: BindingRecord) -> DefinitionKey:
    arguments = _written(binding.arguments) if binding.arguments_bytes else ""
    more = (binding.destination_kind, binding.destination, binding.routing_key, arguments)
    return DefinitionKey("bindings", vhost, binding.source, more)


def _written(arguments: Mapping[str, Value]) -> str:
    """A text that is equal for arguments that a document cannot distinguish."""
    return json.dumps(json_value(arguments), sort_keys=True) if arguments else ""


def _user_facts(user: User) -> Facts:
    return {"tags": list(user.tags), "limits": dict(user.limits)}


def _vhost_facts(vhost: VhostMetadata | PutVhost) -> Facts:
    return {
        "description": vhost.description,
        "tags": list(vhost.tags),
        "default_queue_type": vhost.default_queue_type,
        "tracing": vhost.tracing,
        "protected_from_deletion": vhost.protected_from_deletion,
    }


def _declared_facts(declared: ExchangeRecord | QueueRecord | DeclareExchange | DeclareQueue) -> Facts:
    facts: dict[str, Json] = {"durable": declared.durable, "auto_delete": declared.auto_delete}
    if isinstance(declared, ExchangeRecord | DeclareExchange):
        facts |= {"type": declared.type, "internal": declared.internal}
    return {**facts, "arguments": json_value(dict(declared.arguments))}


def _policy_facts(value: Mapping[str, Json]) -> Facts:
    """The facts of a policy with default values filled in."""
    definition = value.get("definition")
    return {
        "pattern": value.get("pattern"),
        "definition": dict(definition) if isinstance(definition, Mapping) else definition,
        "priority": value.get("priority") or 0,
        "apply-to": value.get("apply-to") or "all",
    }


def _parameter_facts(component: str, value: Json) -> Facts:
    if component in (POLICY, OPERATOR_POLICY) and isinstance(value, Mapping):
        return _policy_facts(value)
    # RabbitMQ exports limits that were cleared as an empty list.
    return {"value": {} if component == VHOST_LIMITS and value == [] else value}
