"""The traced route of a message as JSON."""

from typing import Literal, Required, TypeAlias, TypedDict

from warren.limits import TRACED_QUEUES_MAX
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.operation import JsonTable
from warren.management.views.bindings import properties_key
from warren.metadata.definitions import json_value
from warren.metadata.records import BindingRecord, arguments_bytes
from warren.model.message import Message
from warren.queues.capabilities import declared_queue
from warren.queues.publish_forecast import forecast_publish, lifetime_ms
from warren.queues.vhost_queue import VhostQueue
from warren.routing.exchange import BY_CHANCE, BY_KEY, Binding, Exchange
from warren.routing.route_trace import BindingVerdict, ExchangeVisit, ReachedQueue, RouteTrace
from warren.vhost.vhost import VirtualHost

JsonObject: TypeAlias = dict[str, object]

_REPLY = "direct reply"


class BindingMatchShape(TypedDict, total=False):
    """A binding, and whether it matches the message."""

    source: str
    destination: str
    destination_type: Literal["queue", "exchange"]
    binding_key: str
    arguments: JsonTable
    properties_key: str
    routing_key: str
    reason: Required[str]
    probability: Required[float]
    similarity: float


deprecate(BindingMatchShape, chance="probability", nearness="similarity")


class DeadLetterShape(TypedDict):
    """Where messages are dead-lettered; with a null routing key, each message keeps its own."""

    exchange: str
    routing_key: str | None
    exists: bool


class RoutedQueueShape(TypedDict, total=False):
    """A queue that the message would reach, and what the queue would do with it."""

    name: Required[str]
    is_certain: Required[bool]
    matched_bindings: Required[list[BindingMatchShape]]
    bindings: Required[int]
    outcome: Required[Literal["accepted", "refused", "dropped", "expired"]]
    reason: Required[str]
    drops_head: bool
    paused: bool
    expires_after_ms: int | None
    messages_ready: int
    consumers: int
    dead_letter: DeadLetterShape | None


deprecate(RoutedQueueShape, through="matched_bindings", pushes_out="drops_head")


RoutedExchangeShape = TypedDict(
    "RoutedExchangeShape",
    {
        "name": str,
        "type": str,
        "internal": bool,
        "routed_by": Literal["key", "properties", "chance"],
        "bindings": int,
        "matched": int,
        "unmatched": int,
        "from": str | None,
        "is_alternate": bool,
        "alternate": str | None,
        "is_alternate_missing": bool,
    },
)
RoutedExchangeShape.__doc__ = "An exchange that the message reaches, and how many of its bindings match."

deprecate(RoutedExchangeShape, decides_by="routed_by", missed="unmatched")


class TraceShape(TypedDict):
    """The route of a message."""

    refusals: list[str]
    is_topology_changed: bool
    keys: list[str]
    is_routed: bool
    queues: list[RoutedQueueShape]
    queues_total: int
    exchanges: list[RoutedExchangeShape]
    unmatched: list[BindingMatchShape]
    unmatched_total: int


deprecate(TraceShape, is_changed="is_topology_changed", misses="unmatched", misses_total="unmatched_total")


def is_shown(binding: Binding) -> bool:
    """False for a client's direct reply-to queue: its name would let others reply in its place."""
    return isinstance(binding.destination, Exchange) or declared_queue(binding.destination) is not None


def trace_view(vhost: VirtualHost, trace: RouteTrace, message: Message, size: int) -> JsonObject:
    """A trace as JSON, with the first TRACED_QUEUES_MAX queues."""
    reached = list(trace.queues.values())
    return {
        "keys": list(trace.keys),
        "is_routed": bool(reached),
        "queues": [_reached(vhost, one, message, size) for one in reached[:TRACED_QUEUES_MAX]],
        "queues_total": len(reached),
        "exchanges": [_visit(visit) for visit in trace.visits.values()],
        "unmatched": [_judged(miss, miss.verdict.nearness) for miss in trace.misses],
        "unmatched_total": trace.missed,
    }


def _reached(vhost: VirtualHost, reached: ReachedQueue, message: Message, size: int) -> JsonObject:
    facts: JsonObject = {
        "is_certain": reached.is_certain,
        "matched_bindings": [_judged(judged) for judged in reached.through],
        "bindings": reached.count,
    }
    queue = declared_queue(reached.queue)
    if queue is None:
        answered = {"name": _REPLY, "outcome": "accepted", "reason": "a client that waits for a reply"}
        return with_deprecated(RoutedQueueShape, answered | facts)
    expiration = message.properties().expiration
    expiration_ms = int(expiration) if expiration and expiration.isdecimal() else None
    forecast = forecast_publish(queue, size, expiration_ms)
    view = {
        "name": queue.name,
        **facts,
        "outcome": forecast.outcome.value,
        "reason": forecast.reason,
        "drops_head": forecast.pushes_out,
        "paused": queue.is_paused,
        "expires_after_ms": lifetime_ms(queue, expiration_ms),
        "messages_ready": queue.message_count,
        "consumers": queue.consumer_count,
        "dead_letter": _dead_letter(vhost, queue) if forecast.is_dead_lettered else None,
    }
    return with_deprecated(RoutedQueueShape, view)


def _dead_letter(vhost: VirtualHost, queue: VhostQueue) -> JsonObject | None:
    """Where messages of `queue` are dead-lettered; a null routing key means that each keeps its own."""
    settings = queue.settings
    if settings.dead_letter_exchange is None:
        return None
    return {
        "exchange": settings.dead_letter_exchange,
        "routing_key": settings.dead_letter_routing_key,
        "exists": settings.dead_letter_exchange in vhost.router.exchanges,
    }


def _visit(visit: ExchangeVisit) -> JsonObject:
    exchange = visit.exchange
    before = visit.alternate_of or (visit.binding.source if visit.binding is not None else None)
    view = {
        "name": exchange.name,
        "type": exchange.type_name,
        "internal": exchange.settings.internal,
        "routed_by": {BY_KEY: "key", BY_CHANCE: "chance"}.get(exchange.decides, "properties"),
        "bindings": exchange.bindings,
        "matched": visit.matched,
        "unmatched": visit.missed,
        "from": None if before is None else before.name,
        "is_alternate": visit.alternate_of is not None,
        "alternate": visit.alternate,
        "is_alternate_missing": visit.is_alternate_missing,
    }
    return with_deprecated(RoutedExchangeShape, view)


def _judged(judged: BindingVerdict, similarity: float | None = None) -> JsonObject:
    view = _binding_facts(judged)
    view |= {"reason": judged.verdict.reason, "probability": judged.verdict.chance}
    if similarity is not None:
        view["similarity"] = similarity
    return with_deprecated(BindingMatchShape, view)


def _binding_facts(judged: BindingVerdict) -> JsonObject:
    binding = judged.binding
    destination = binding.destination
    if not is_shown(binding):
        # The name of a direct reply-to queue is secret.
        return {}
    name = str(getattr(destination, "name", ""))
    is_to_queue = not isinstance(destination, Exchange)
    # The record in the metadata has the same arguments in encoded form.
    arguments = dict(binding.arguments)
    record = BindingRecord(
        binding.source.name,
        is_to_queue,
        name,
        binding.key,
        arguments_bytes(arguments),
    )
    return {
        "source": record.source,
        "destination": name,
        "destination_type": record.destination_kind,
        "binding_key": record.routing_key,
        "arguments": json_value(arguments),
        "properties_key": properties_key(record),
        "routing_key": judged.routing_key,
    }
