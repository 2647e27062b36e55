"""Declaring and deleting exchanges and queues, with the checks that a channel makes."""

from typing import Annotated, Literal, TypedDict

from aiohttp import web

from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import run_coroutine
from warren.management.operation import Flag, JsonTable, doc, documented
from warren.management.replies import bad_request, done, missing, put
from warren.management.request_body import BodyFields, read_fields
from warren.management.request_context import RequestContext, exchange_in_path, request_context
from warren.metadata.definitions_import import table_value
from warren.model.erlang_terms import printed_text
from warren.routing.types import EXCHANGE_TYPES
from warren.wire import methods
from warren.wire.table import Value

_TRUE = "true"


class ExchangeBody(TypedDict, total=False):
    """The properties of an exchange to declare."""

    type: str
    passive: Flag
    durable: Flag
    auto_delete: Flag
    internal: Flag
    arguments: JsonTable


class QueueBody(TypedDict, total=False):
    """The properties of a queue to declare."""

    node: str | None
    passive: Flag
    durable: Flag
    auto_delete: Flag
    arguments: JsonTable


class ActionBody(TypedDict):
    """An action on a mirrored queue."""

    action: Literal["sync", "cancel_sync"]


DeleteQuery = TypedDict(
    "DeleteQuery", {"if-unused": Annotated[bool, doc("Delete only if there are no bindings.")]}, total=False
)
DeleteQueueQuery = TypedDict(
    "DeleteQueueQuery",
    {
        "if-unused": Annotated[bool, doc("Delete only if there are no consumers.")],
        "if-empty": Annotated[bool, doc("Delete only if there are no messages.")],
    },
    total=False,
)


@documented(body=ExchangeBody)
async def put_exchange(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Declare an exchange."""
    context = request_context(request, node)
    name, fields = exchange_in_path(request, "exchange"), await read_fields(request)
    kind = fields.get("type", "direct")
    if not isinstance(kind, str) or not kind:
        raise bad_request(f"invalid exchange type '{printed_text(kind)}'")
    if kind not in EXCHANGE_TYPES:
        raise bad_request(f"unknown exchange type '{kind}'")
    method = methods.ExchangeDeclare(
        exchange=name,
        type=kind,
        passive=fields.flag("passive"),
        durable=fields.flag("durable"),
        auto_delete=fields.flag("auto_delete"),
        internal=fields.flag("internal"),
        arguments=arguments_of(fields),
    )
    is_new = name not in context.records.exchanges
    await run_coroutine(context.services.exchange_service.declare_exchange(context.requester, method))
    return put(is_new=is_new)


@documented(query=DeleteQuery)
async def delete_exchange(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete an exchange; with `if-unused=true` only if it has no bindings."""
    context = request_context(request, node)
    name = exchange_in_path(request, "exchange")
    if name not in context.records.exchanges:
        raise missing()
    method = methods.ExchangeDelete(exchange=name, if_unused=_query_flag(request, "if-unused"))
    await run_coroutine(context.services.exchange_service.delete_exchange(context.requester, method))
    return done()


@documented(body=QueueBody)
async def put_queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Declare a queue, which is never exclusive."""
    context = request_context(request, node)
    name, fields = request.match_info["queue"], await read_fields(request)
    where = fields.get("node")
    if where not in (None, "", node.node_name):
        raise bad_request(f"Node {where} could not be contacted")
    method = methods.QueueDeclare(
        queue=name,
        passive=fields.flag("passive"),
        durable=fields.flag("durable"),
        auto_delete=fields.flag("auto_delete"),
        arguments=arguments_of(fields),
    )
    is_new = name not in context.records.queues
    await run_coroutine(context.services.queue_service.declare_queue(context.requester, method))
    return put(is_new=is_new)


@documented(query=DeleteQueueQuery)
async def delete_queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete a queue; with `if-empty=true` or `if-unused=true` only if it is empty or has no consumers."""
    context = _queue_context(request, node)
    method = methods.QueueDelete(
        queue=request.match_info["queue"],
        if_unused=_query_flag(request, "if-unused"),
        if_empty=_query_flag(request, "if-empty"),
    )
    await run_coroutine(context.services.queue_service.delete_queue(context.requester, method))
    return done()


async def purge_queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Purge a queue: delete its ready messages."""
    context = _queue_context(request, node)
    method = methods.QueuePurge(queue=request.match_info["queue"])
    await run_coroutine(context.services.queue_service.purge_queue(context.requester, method))
    return done()


@documented(body=ActionBody)
async def act_on_queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Accept `sync` and `cancel_sync` of mirrored queues, which do nothing on a single node."""
    _queue_context(request, node)
    action = (await read_fields(request)).get("action")
    if action not in ("sync", "cancel_sync"):
        raise bad_request(["unknown", action])
    return done()


def arguments_of(fields: BodyFields) -> dict[str, Value]:
    """The field `arguments` as a field table."""
    try:
        return {key: table_value(value) for key, value in fields.table("arguments").items()}
    except TypeError as error:
        raise bad_request(str(error)) from None


def _queue_context(request: web.Request, node: ManagedNode) -> RequestContext:
    context = request_context(request, node)
    if request.match_info["queue"] not in context.records.queues:
        raise missing()
    return context


def _query_flag(request: web.Request, name: str) -> bool:
    return request.query.get(name, "") == _TRUE
