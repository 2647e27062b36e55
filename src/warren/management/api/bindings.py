"""Bindings: listed by source or destination, and addressed by `properties_key`."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import TypedDict
from urllib.parse import quote

from aiohttp import web

from warren.limits import NAMES_PER_TURN
from warren.management.api.declarations import arguments_of
from warren.management.auth import login_vhosts, user_of
from warren.management.listing import Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import run_coroutine, vhost_in_path
from warren.management.operation import ColumnsQuery, JsonTable, ListQuery, documented
from warren.management.replies import created, done, missing
from warren.management.request_body import read_fields
from warren.management.request_context import exchange_in_path, request_context
from warren.management.views.bindings import BindingShape, VhostBinding, binding_view, properties_key
from warren.metadata.records import BindingRecord, arguments_bytes
from warren.metadata.vhosts import VhostMetadata
from warren.wire import methods

_KINDS = {"q": True, "e": False}


class BindingBody(TypedDict, total=False):
    """The routing key and the arguments of a binding."""

    routing_key: str | None
    arguments: JsonTable


@documented(query=ListQuery, response=list[BindingShape])
async def bindings(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the bindings in all virtual hosts in which the user has permissions."""
    vhosts = [node.metadata.vhosts.by_name[name] for name in login_vhosts(node, user_of(request))]
    found: list[VhostBinding] = []
    for vhost in vhosts:
        more = await _all(vhost)
        found = found + more if found else more
    return await _reply(request, found)


@documented(query=ListQuery, response=list[BindingShape])
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the bindings in a virtual host."""
    return await _reply(request, await _all(vhost_in_path(request, node)))


@documented(query=ListQuery, response=list[BindingShape])
async def to_queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the bindings of a queue."""
    vhost, queue = vhost_in_path(request, node), request.match_info["queue"]
    if queue not in vhost.topology.queues:
        raise missing()
    found = [_implicit(queue), *vhost.topology.bindings_to_queue(queue)]
    return await _reply(request, _bound(vhost, found))


@documented(query=ListQuery, response=list[BindingShape])
async def from_exchange(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the bindings whose source is the exchange."""
    vhost, name = vhost_in_path(request, node), exchange_in_path(request, "exchange")
    if name not in vhost.topology.exchanges:
        raise missing()
    found = map(_implicit, vhost.topology.queues) if not name else vhost.topology.bindings_from(name)
    return await _reply(request, _bound(vhost, found))


@documented(query=ListQuery, response=list[BindingShape])
async def to_exchange(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the bindings whose destination is the exchange."""
    vhost, name = vhost_in_path(request, node), exchange_in_path(request, "exchange")
    if name not in vhost.topology.exchanges:
        raise missing()
    return await _reply(request, _bound(vhost, vhost.topology.bindings_to_exchange(name)))


@documented(query=ListQuery, response=list[BindingShape])
async def between(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the bindings between an exchange and a queue (`q`) or another exchange (`e`)."""
    vhost = vhost_in_path(request, node)
    return await _reply(request, _bound(vhost, _between(request, vhost)))


@documented(body=BindingBody, responses={201: None})
async def bind(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Bind a queue (`q`) or exchange (`e`) to an exchange; the header `location` has its properties key."""
    context = request_context(request, node)
    fields = await read_fields(request)
    # As in RabbitMQ, null is the atom of this name, which becomes a string.
    is_null = "routing_key" in fields and fields.get("routing_key") is None
    key, arguments = "null" if is_null else fields.text("routing_key", ""), arguments_of(fields)
    source, destination, is_to_queue = _ends(request)
    if is_to_queue:
        await run_coroutine(
            context.services.exchange_service.bind_queue(
                context.requester,
                methods.QueueBind(queue=destination, exchange=source, routing_key=key, arguments=arguments),
            )
        )
    else:
        await run_coroutine(
            context.services.exchange_service.bind_exchange(
                context.requester,
                methods.ExchangeBind(
                    destination=destination, source=source, routing_key=key, arguments=arguments
                ),
            )
        )
    record = BindingRecord(source, is_to_queue, destination, key, arguments_bytes(arguments))
    return created(f"{quote(destination, safe='')}/{quote(properties_key(record), safe='~')}")


@documented(query=ColumnsQuery, response=BindingShape)
def binding(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a binding by its `properties_key`."""
    vhost = vhost_in_path(request, node)
    return reply_one(request, binding_view((vhost.name, _found(request, vhost))))


async def unbind(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete a binding by its `properties_key`."""
    record = _found(request, vhost_in_path(request, node))
    context = request_context(request, node)
    key, arguments = record.routing_key, dict(record.arguments)
    if record.is_to_queue:
        await run_coroutine(
            context.services.exchange_service.unbind_queue(
                context.requester,
                methods.QueueUnbind(
                    queue=record.destination, exchange=record.source, routing_key=key, arguments=arguments
                ),
            )
        )
    else:
        await run_coroutine(
            context.services.exchange_service.unbind_exchange(
                context.requester,
                methods.ExchangeUnbind(
                    destination=record.destination,
                    source=record.source,
                    routing_key=key,
                    arguments=arguments,
                ),
            )
        )
    return done()


async def _reply(request: web.Request, found: Iterable[VhostBinding]) -> web.StreamResponse:
    columns = {
        "source": lambda bound: bound[1].source,
        "vhost": lambda bound: bound[0],
        "destination": lambda bound: bound[1].destination,
        "destination_type": lambda bound: bound[1].destination_kind,
        "routing_key": lambda bound: bound[1].routing_key,
        "properties_key": lambda bound: properties_key(bound[1]),
    }
    listing: Listing[VhostBinding] = Listing(
        records=found,
        view=binding_view,
        columns=columns,
        sort_keys=("vhost", "source", "destination_type", "destination", "routing_key"),
    )
    return await reply_list(request, listing)


async def _all(vhost: VhostMetadata) -> list[VhostBinding]:
    """All bindings of `vhost`, with the implicit ones of its queues to the default exchange."""
    names = list(vhost.topology.queues)
    found: list[VhostBinding] = []
    for at in range(0, len(names), NAMES_PER_TURN):
        found += _bound(vhost, map(_implicit, names[at : at + NAMES_PER_TURN]))
        await asyncio.sleep(0)
    records = list(vhost.topology.bindings())
    for at in range(0, len(records), NAMES_PER_TURN):
        found += _bound(vhost, records[at : at + NAMES_PER_TURN])
        await asyncio.sleep(0)
    return found


def _bound(vhost: VhostMetadata, found: Iterable[BindingRecord]) -> Iterator[VhostBinding]:
    return ((vhost.name, record) for record in found)


def _implicit(queue: str) -> BindingRecord:
    """The implicit binding of a queue to the default exchange."""
    return BindingRecord("", True, queue, queue, b"")


def _ends(request: web.Request) -> tuple[str, str, bool]:
    """The source, the destination and whether the destination is a queue, from the path of the request."""
    is_to_queue = _KINDS.get(request.match_info["kind"])
    if is_to_queue is None:
        raise missing()
    destination = request.match_info["destination"]
    return (
        exchange_in_path(request, "source"),
        destination if is_to_queue else exchange_in_path(request, "destination"),
        is_to_queue,
    )


def _between(request: web.Request, vhost: VhostMetadata) -> list[BindingRecord]:
    source, destination, is_to_queue = _ends(request)
    if not source:
        return [_implicit(destination)] if is_to_queue and destination in vhost.topology.queues else []
    to = vhost.topology.bindings_to_queue if is_to_queue else vhost.topology.bindings_to_exchange
    return [record for record in to(destination) if record.source == source]


def _found(request: web.Request, vhost: VhostMetadata) -> BindingRecord:
    """The binding with the properties key of the path, which may be percent-encoded once or twice."""
    asked = request.match_info["properties"]
    records = {properties_key(record): record for record in _between(request, vhost)}
    record = records.get(asked) or records.get(quote(asked, safe="").replace("%20", "+"))
    if record is None:
        raise missing()
    return record
