"""Exports RabbitMQ's definitions document: all metadata, or those of one vhost, as JSON values.

Objects that could not be imported are left out: exclusive queues, and exchanges and queues named `amq.`.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping

from warren.metadata.commands import Json
from warren.metadata.machine import Metadata
from warren.metadata.parameters import OPERATOR_POLICY, POLICY, VHOST_LIMITS, VHOST_LIMITS_NAME
from warren.metadata.policies import Policies, Policy
from warren.metadata.records import QueueRecord
from warren.metadata.users import User
from warren.metadata.vhosts import VhostMetadata
from warren.model.names import RESERVED_PREFIX
from warren.wire.table import Value, type_name

DefinitionObject = dict[str, Json]
Sections = Iterable[tuple[str, Iterable[DefinitionObject]]]


def definition_sections(metadata: Metadata) -> Sections:
    """The sections of the document on everything; each is read when the iterator reaches it."""
    vhosts = list(metadata.vhosts.by_name.values())
    yield "users", list(map(user_entry, metadata.users.by_name.values()))
    yield "vhosts", map(_vhost, vhosts)
    yield "permissions", list(_permissions(metadata))
    yield "topic_permissions", list(_topic_permissions(metadata))
    yield "parameters", [entry for vhost in vhosts for entry in parameter_entries(vhost)]
    yield (
        "global_parameters",
        [{"name": name, "value": value} for name, value in metadata.global_parameters.by_name.items()],
    )
    yield "policies", [entry for vhost in vhosts for entry in _policies(vhost)]
    for name, of_vhost in (("queues", _queues), ("exchanges", _exchanges), ("bindings", _bindings)):
        yield name, ({**entry, "vhost": vhost.name} for vhost in vhosts for entry in of_vhost(vhost))


def vhost_definition_sections(vhost: VhostMetadata) -> Sections:
    """The sections of the document on one vhost."""
    yield "parameters", list(parameter_entries(vhost))
    yield "policies", list(_policies(vhost))
    yield "queues", _queues(vhost)
    yield "exchanges", _exchanges(vhost)
    yield "bindings", _bindings(vhost)


def json_value(value: Value) -> Json:
    """A field-table value as JSON, which knows fewer types."""
    if isinstance(value, Mapping):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and not isinstance(value, bool):
        # A number in one of AMQP's sizes, which JSON does not have.
        return int(value)
    return float(value) if isinstance(value, float) or type_name(value) == "decimal" else value


def policy_entry(vhost: str, policy: Policy) -> DefinitionObject:
    """A policy as in the definitions and in `GET /api/policies`."""
    return {
        "vhost": vhost,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": dict(policy.definition),
        "priority": policy.priority,
    }


def parameter_entries(vhost: VhostMetadata) -> Iterable[DefinitionObject]:
    """Parameters, limits and operator policies as in the definitions and in `GET /api/parameters`."""
    for (component, name), value in vhost.parameters.by_key.items():
        yield {"value": value, "vhost": vhost.name, "component": component, "name": name}
    if vhost.limits:
        yield _parameter(vhost, VHOST_LIMITS, VHOST_LIMITS_NAME, dict(vhost.limits))
    yield from _policies_as_parameters(vhost, OPERATOR_POLICY, vhost.operator_policies)


def policy_parameters(vhost: VhostMetadata) -> Iterable[DefinitionObject]:
    """Policies as in `GET /api/parameters/policy`."""
    return _policies_as_parameters(vhost, POLICY, vhost.policies)


def user_entry(user: User) -> DefinitionObject:
    """A user as in the definitions and in `GET /api/users`."""
    return {
        "name": user.name,
        "password_hash": b64encode(user.password_hash).decode("ascii"),
        "hashing_algorithm": user.hashing_algorithm,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def _permissions(metadata: Metadata) -> Iterable[DefinitionObject]:
    for (user, vhost), permission in metadata.permissions.by_user_and_vhost.items():
        yield {
            "user": user,
            "vhost": vhost,
            "configure": permission.configure,
            "write": permission.write,
            "read": permission.read,
        }


def _topic_permissions(metadata: Metadata) -> Iterable[DefinitionObject]:
    for (user, vhost), topics in metadata.permissions.topics_by_user_and_vhost.items():
        for exchange, permission in topics.items():
            yield {
                "user": user,
                "vhost": vhost,
                "exchange": exchange,
                "write": permission.write,
                "read": permission.read,
            }


def _vhost(vhost: VhostMetadata) -> DefinitionObject:
    metadata: DefinitionObject = {"description": vhost.description, "tags": list(vhost.tags)}
    if vhost.default_queue_type is not None:
        metadata["default_queue_type"] = vhost.default_queue_type
    if vhost.protected_from_deletion:
        metadata["protected_from_deletion"] = True
    entry: DefinitionObject = {"name": vhost.name, "metadata": metadata}
    return {**entry, "tracing": True} if vhost.tracing else entry


def _policies(vhost: VhostMetadata) -> Iterable[DefinitionObject]:
    return (policy_entry(vhost.name, policy) for policy in vhost.policies.by_name.values())


def _policies_as_parameters(
    vhost: VhostMetadata, component: str, policies: Policies
) -> Iterable[DefinitionObject]:
    for policy in policies.by_name.values():
        value = {
            "pattern": policy.pattern,
            "definition": dict(policy.definition),
            "priority": policy.priority,
            "apply-to": policy.apply_to,
        }
        yield _parameter(vhost, component, policy.name, value)


def _parameter(vhost: VhostMetadata, component: str, name: str, value: Json) -> DefinitionObject:
    return {"value": value, "vhost": vhost.name, "component": component, "name": name}


def _queues(vhost: VhostMetadata) -> Iterable[DefinitionObject]:
    for queue in list(vhost.topology.queues.values()):
        if is_exported(queue):
            yield {
                "name": queue.name,
                "durable": queue.durable,
                "auto_delete": queue.auto_delete,
                "arguments": json_value(queue.arguments),
            }


def _exchanges(vhost: VhostMetadata) -> Iterable[DefinitionObject]:
    for exchange in list(vhost.topology.exchanges.values()):
        if exchange.name and not exchange.name.startswith(RESERVED_PREFIX):
            yield {
                "name": exchange.name,
                "type": exchange.type,
                "durable": exchange.durable,
                "auto_delete": exchange.auto_delete,
                "internal": exchange.internal,
                "arguments": json_value(exchange.arguments),
            }


def _bindings(vhost: VhostMetadata) -> Iterable[DefinitionObject]:
    queues = vhost.topology.queues
    for binding in list(vhost.topology.bindings()):
        if not binding.is_to_queue or is_exported(queues.get(binding.destination)):
            yield {
                "source": binding.source,
                "destination": binding.destination,
                "destination_type": binding.destination_kind,
                "routing_key": binding.routing_key,
                "arguments": json_value(binding.arguments),
            }


def is_exported(queue: QueueRecord | None) -> bool:
    """True if the queue can be imported."""
    return queue is not None and queue.owner is None and not queue.name.startswith(RESERVED_PREFIX)
