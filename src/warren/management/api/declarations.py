"""Making and deleting exchanges and queues, checked as on a channel."""

from typing import Literal, TypedDict

from aiohttp import web

from warren.management.asking import Asking, asking, name_of
from warren.management.bodies import Fields, read_fields
from warren.management.describing import Flag, Table, described
from warren.management.managed import Managed
from warren.management.proposing import ended
from warren.management.replies import bad_request, done, missing, put
from warren.metadata.definitions_import import table_value
from warren.model.terms import printed_text
from warren.routing.types import EXCHANGE_TYPES
from warren.wire import methods
from warren.wire.table import Value

_TRUE = "true"


class ExchangeBody(TypedDict, total=False):
    """What an exchange is to be."""

    type: str
    passive: Flag
    durable: Flag
    auto_delete: Flag
    internal: Flag
    arguments: Table


class QueueBody(TypedDict, total=False):
    """What a queue is to be."""

    node: str | None
    passive: Flag
    durable: Flag
    auto_delete: Flag
    arguments: Table


class ActionBody(TypedDict):
    """What a mirrored queue is to do."""

    action: Literal["sync", "cancel_sync"]


DeleteQuery = TypedDict("DeleteQuery", {"if-unused": bool}, total=False)
DeleteQueueQuery = TypedDict("DeleteQueueQuery", {"if-unused": bool, "if-empty": bool}, total=False)


@described(body=ExchangeBody)
async def put_exchange(request: web.Request, node: Managed) -> web.StreamResponse:
    """Make sure that an exchange exists."""
    asks = asking(request, node)
    name, fields = name_of(request, "exchange"), await read_fields(request)
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
    is_new = name not in asks.records.exchanges
    await ended(asks.domain.wiring.declare_exchange(asks.requester, method))
    return put(is_new=is_new)


@described(query=DeleteQuery)
async def delete_exchange(request: web.Request, node: Managed) -> web.StreamResponse:
    """Delete an exchange, perhaps only if nothing is bound to it."""
    asks = asking(request, node)
    name = name_of(request, "exchange")
    if name not in asks.records.exchanges:
        raise missing()
    method = methods.ExchangeDelete(exchange=name, if_unused=_is_asked(request, "if-unused"))
    await ended(asks.domain.wiring.delete_exchange(asks.requester, method))
    return done()


@described(body=QueueBody)
async def put_queue(request: web.Request, node: Managed) -> web.StreamResponse:
    """Make sure that a queue exists; never an exclusive one, as no connection would own it."""
    asks = asking(request, node)
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
    is_new = name not in asks.records.queues
    await ended(asks.domain.declaring.declare_queue(asks.requester, method))
    return put(is_new=is_new)


@described(query=DeleteQueueQuery)
async def delete_queue(request: web.Request, node: Managed) -> web.StreamResponse:
    """Delete a queue, perhaps only if it is empty, or nobody consumes from it."""
    asks = _asking_of_queue(request, node)
    method = methods.QueueDelete(
        queue=request.match_info["queue"],
        if_unused=_is_asked(request, "if-unused"),
        if_empty=_is_asked(request, "if-empty"),
    )
    await ended(asks.domain.declaring.delete_queue(asks.requester, method))
    return done()


async def purge_queue(request: web.Request, node: Managed) -> web.StreamResponse:
    """Throw away what is ready in a queue."""
    asks = _asking_of_queue(request, node)
    method = methods.QueuePurge(queue=request.match_info["queue"])
    await ended(asks.domain.declaring.purge_queue(asks.requester, method))
    return done()


@described(body=ActionBody)
async def act_on_queue(request: web.Request, node: Managed) -> web.StreamResponse:
    """What mirrored queues were told to do: nothing is left to be done."""
    _asking_of_queue(request, node)
    action = (await read_fields(request)).get("action")
    if action not in ("sync", "cancel_sync"):
        raise bad_request(["unknown", action])
    return done()


def arguments_of(fields: Fields) -> dict[str, Value]:
    """The field `arguments`, as a field table."""
    try:
        return {key: table_value(value) for key, value in fields.table("arguments").items()}
    except TypeError as error:
        raise bad_request(str(error)) from None


def _asking_of_queue(request: web.Request, node: Managed) -> Asking:
    asks = asking(request, node)
    if request.match_info["queue"] not in asks.records.queues:
        raise missing()
    return asks


def _is_asked(request: web.Request, name: str) -> bool:
    return request.query.get(name, "") == _TRUE
