"""Tracing the route of a message without publishing it: the queues it would reach, and why no others."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NotRequired, TypedDict

from aiohttp import web

from warren.errors import AmqpError, Undecided
from warren.limits import MESSAGE_SIZE_MAX, NAME_SIZE_MAX, TRACED_MISSES_MAX
from warren.management.api.messages import properties_of
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable, doc, documented
from warren.management.replies import bad_request, missing, reply
from warren.management.request_body import BodyFields, read_fields
from warren.management.request_context import exchange_in_path, request_context
from warren.management.views.traces import TraceShape, is_shown, trace_view
from warren.model.message import encode_address
from warren.routing.copies import addresses_of, carbon_copies
from warren.routing.route_trace import RouteTrace
from warren.session.direct_publish import compose_message

_MISSES = 50


class TraceBody(TypedDict):
    """A message whose route is traced; it is not published."""

    routing_key: str
    properties: NotRequired[JsonTable | list[Any]]
    payload_bytes: NotRequired[int]
    unmatched: NotRequired[
        Annotated[int, doc("Number of bindings that do not match to return; 50 by default.")]
    ]


deprecate(TraceBody, misses="unmatched")


@documented(body=TraceBody, response=TraceShape)
async def trace_route(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Trace the route of a message that is not published: queues, their actions, and near misses."""
    context = request_context(request, node)
    fields = await read_fields(request)
    key, properties = fields.text("routing_key"), properties_of(fields)
    if len(key.encode("utf-8", "surrogateescape")) > NAME_SIZE_MAX:
        raise bad_request("routing_key_too_long")
    size = _number(fields, "payload_bytes", 0, MESSAGE_SIZE_MAX)
    misses = _number(fields, "unmatched", _MISSES, TRACED_MISSES_MAX)
    vhost = context.services.vhost
    exchange = vhost.router.exchanges.get(exchange_in_path(request, "exchange"))
    if exchange is None:
        raise missing()
    message = compose_message(encode_address(exchange.name, key), properties, b"", node.now())
    rules = context.rules
    copies: list[str] = []
    refusals = [
        *_refusal(lambda: rules.admit(message.address)),
        *_refusal(lambda: rules.check_properties(message)),
        *_refusal(lambda: copies.extend(carbon_copies(message.headers()))),
    ]
    if not refusals:
        for address in addresses_of(message)[1:]:
            refusals += _refusal(partial(rules.admit, address))
    trace = RouteTrace(vhost.router.exchanges, [key, *copies], message, misses_max=misses, is_shown=is_shown)
    generation = vhost.router.generation
    for _ in trace.steps(exchange):
        await asyncio.sleep(0)
    # The topology may have changed during the turns in which bindings were examined.
    facts = {"refusals": refusals, "is_topology_changed": vhost.router.generation != generation}
    return reply(with_deprecated(TraceShape, facts | trace_view(vhost, trace, message, size)))


def _refusal(check: Callable[[], object]) -> list[str]:
    """The error with which a publish would be refused, in a list; empty if `check` accepts it."""
    try:
        check()
    except Undecided:
        raise
    except AmqpError as error:
        return [f"{error.code} {error.reply_text}"]
    return []


def _number(fields: BodyFields, name: str, default: int, most: int) -> int:
    number = fields.integer(name) if name in fields else default
    if not 0 <= number <= most:
        raise bad_request(f"{name} must be a number up to {most}, not {number}")
    return number
