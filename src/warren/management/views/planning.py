"""Items of an import plan as JSON, with what deleting them would lose."""

import json
from collections.abc import Mapping

from warren.management.managed_node import ManagedNode
from warren.metadata.commands import Json
from warren.metadata.definition_entries import DefinitionKey, Facts
from warren.metadata.import_plan import PlanAction, PlanItem
from warren.metadata.parameter_secrets import masked_parameter
from warren.queues.capabilities import live_queue
from warren.queues.vhost_queue import VhostQueue

# The kind of an object by its section, where it is not the section's name without a final "s".
_KINDS = {"policies": "policy"}
# Losses that cannot be restored; whether there are any is part of a plan's fingerprint.
_LOST = ("messages_ready", "messages_unacknowledged", "consumers", "connections")


def plan_item_view(node: ManagedNode, item: PlanItem) -> dict[str, Json]:
    """An item of a plan as JSON."""
    key = item.key
    facts: dict[str, Json] = {
        "action": item.action.value,
        "kind": _KINDS.get(key.section, key.section.removesuffix("s")),
        **({"vhost": key.vhost} if key.vhost else {}),
        "name": key.name,
        **_more(key),
        "before": _shown(key, item.before),
        "after": _shown(key, item.after),
    }
    if item.reason:
        facts["reason"] = item.reason
    losses = losses_of(node, item)
    return facts | {"losses": losses} if losses else facts


def _shown(key: DefinitionKey, facts: Facts | None) -> Facts | None:
    """The facts of an entry, with hidden passwords if it is a parameter."""
    if key.section != "parameters" or facts is None or "value" not in facts:
        return facts
    return {**facts, "value": masked_parameter(key.more[0], facts["value"])}


def losses_of(node: ManagedNode, item: PlanItem) -> Mapping[str, int]:
    """The numbers of objects that are lost with `item` at present; empty unless it is deleted."""
    if item.action is not PlanAction.DELETE:
        return {}
    key = item.key
    match key.section:
        case "queues":
            losses = _of_queues(node, key.vhost, key.name)
        case "exchanges":
            vhost = node.metadata.vhost(key.vhost)
            topology = None if vhost is None else vhost.topology
            bindings = [] if topology is None else topology.bindings_from(key.name)
            others = [] if topology is None else topology.bindings_to_exchange(key.name)
            losses = {"bindings": len(bindings) + len(others)}
        case "vhosts":
            losses = _of_vhost(node, key.name)
        case "users":
            granted = node.metadata.permissions.by_user_and_vhost
            losses = {
                "permissions": sum(user == key.name for user, _ in granted),
                "connections": _connections(node, user=key.name),
            }
        case "permissions":
            losses = {"connections": _connections(node, user=key.name, vhost=key.vhost)}
        case _:
            losses = {}
    return {name: count for name, count in losses.items() if count}


def is_empty(losses: Mapping[str, int]) -> bool:
    """True if no message, consumer or connection is among `losses`."""
    return not any(losses.get(name) for name in _LOST)


def _more(key: DefinitionKey) -> dict[str, Json]:
    """The parts of a key other than the virtual host and the name."""
    match key.section, key.more:
        case "bindings", (kind, destination, routing_key, arguments):
            return {
                "destination_type": kind,
                "destination": destination,
                "routing_key": routing_key,
                "arguments": json.loads(arguments) if arguments else {},
            }
        case "parameters", (component,):
            return {"component": component}
        case "topic_permissions", (exchange,):
            return {"exchange": exchange}
    return {}


def _of_queues(node: ManagedNode, vhost: str, name: str) -> dict[str, int]:
    described = node.metadata.vhost(vhost)
    bindings = [] if described is None else described.topology.bindings_to_queue(name)
    services = node.server.vhost_services.get(vhost)
    live = None if services is None else live_queue(services.vhost.queues.get(name))
    return {**_of_live([] if live is None else [live]), "bindings": len(bindings)}


def _of_vhost(node: ManagedNode, name: str) -> dict[str, int]:
    vhost, services = node.metadata.vhost(name), node.server.vhost_services.get(name)
    if vhost is None:
        return {}
    return {
        **_of_live([] if services is None else [each.led_here() for each in services.vhost.queues.values()]),
        "queues": len(vhost.topology.queues),
        "exchanges": sum(1 for exchange in vhost.topology.exchanges if not exchange.startswith("amq.")) - 1,
        "permissions": sum(of == name for _, of in node.metadata.permissions.by_user_and_vhost),
        "connections": _connections(node, vhost=name),
    }


def _of_live(queues: list[VhostQueue]) -> dict[str, int]:
    return {
        "messages_ready": sum(queue.message_count for queue in queues),
        "messages_unacknowledged": sum(queue.unacked_count for queue in queues),
        "consumers": sum(queue.consumer_count for queue in queues),
    }


def _connections(node: ManagedNode, *, user: str | None = None, vhost: str | None = None) -> int:
    """The number of AMQP connections of `user`, to `vhost`, or both."""
    return sum(
        connection.login is not None
        and connection.services is not None
        and user in (None, connection.login.identity)
        and vhost in (None, connection.services.vhost.name)
        for connection in node.server.connections
    )
