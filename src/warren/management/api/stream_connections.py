"""Connections of the stream protocol with their publishers and consumers, at RabbitMQ's paths for these."""

from collections.abc import Iterable

from aiohttp import web

from warren.management.api.connections import (
    OpenedQuery,
    PagedQuery,
    close,
    reply_connections,
    seen_of,
)
from warren.management.auth import check_owner, check_visible
from warren.management.describing import ListQuery, described, paged
from warren.management.listing import Listing, reply_list, reply_one
from warren.management.managed import Managed
from warren.management.proposing import vhost_of
from warren.management.replies import done, missing
from warren.management.views.connections import ConnectionShape, connection_facts, stream_connections
from warren.management.views.consumers import Subscribing, subscribing_on
from warren.management.views.stats import asked
from warren.management.views.stream_clients import (
    StreamConsumerShape,
    StreamPublisherShape,
    publisher_facts,
    subscription_facts,
)
from warren.management.views.streams import Publishing, publishing_on
from warren.queues.stream import StreamQueue
from warren.session.streaming.connection import StreamConnection

_connections = described(query=PagedQuery, gives=paged(ConnectionShape))
_publishers = described(query=ListQuery, gives=list[StreamPublisherShape])
_consumers = described(query=ListQuery, gives=list[StreamConsumerShape])


@_connections
async def connections(request: web.Request, node: Managed) -> web.StreamResponse:
    """Every connection of the stream protocol, or those to a virtual host, that one may see."""
    return await reply_connections(request, node, _seen(request, node))


@described(query=OpenedQuery, gives=ConnectionShape)
def connection(request: web.Request, node: Managed) -> web.StreamResponse:
    """One of them."""
    found = _visible(request, node)
    return reply_one(request, connection_facts(node, found, asked(request, node), is_alone=True))


def close_connection(request: web.Request, node: Managed) -> web.StreamResponse:
    """Disconnect a client; the header `x-reason` says why."""
    found = _named(request, node)
    check_owner(request, found.user)
    close(request, found)
    return done()


@_publishers
async def publishers(request: web.Request, node: Managed) -> web.StreamResponse:
    """Every publisher of the stream protocol, or those in a virtual host."""
    return await _reply_publishers(request, node, publishing_on(_seen(request, node)))


@_publishers
async def publishers_of_stream(request: web.Request, node: Managed) -> web.StreamResponse:
    """The publishers of a stream."""
    seen = _seen(request, node)
    domain = node.server.domains.get(request.match_info["vhost"])
    queue = None if domain is None else domain.vhost.queues.get(request.match_info["queue"])
    if not isinstance(queue, StreamQueue):
        raise missing()
    found = [one for one in publishing_on(seen) if one[1].stream is queue]
    return await _reply_publishers(request, node, found)


@_publishers
async def publishers_on(request: web.Request, node: Managed) -> web.StreamResponse:
    """The publishers on a connection."""
    return await _reply_publishers(request, node, publishing_on([_visible(request, node)]))


@_consumers
async def consumers(request: web.Request, node: Managed) -> web.StreamResponse:
    """Every consumer of the stream protocol, or those in a virtual host."""
    return await _reply_consumers(request, node, subscribing_on(_seen(request, node)))


@_consumers
async def consumers_on(request: web.Request, node: Managed) -> web.StreamResponse:
    """The consumers on a connection."""
    return await _reply_consumers(request, node, subscribing_on([_visible(request, node)]))


async def _reply_publishers(
    request: web.Request, node: Managed, found: Iterable[Publishing]
) -> web.StreamResponse:
    listing: Listing[Publishing] = Listing(
        records=found,
        view=lambda publishing: publisher_facts(node, publishing),
        columns={},
        sorts=(),
    )
    return await reply_list(request, listing)


async def _reply_consumers(
    request: web.Request, node: Managed, found: Iterable[Subscribing]
) -> web.StreamResponse:
    listing: Listing[Subscribing] = Listing(
        records=found,
        view=lambda subscribing: subscription_facts(node, subscribing),
        columns={},
        sorts=(),
    )
    return await reply_list(request, listing)


def _seen(request: web.Request, node: Managed) -> list[StreamConnection]:
    """Those that the user may see, to the virtual host that the path names, if it does."""
    found = stream_connections(node)
    if "vhost" in request.match_info:
        name = vhost_of(request, node).name
        found = [one for one in found if one.vhost == name]
    return seen_of(request, found)


def _visible(request: web.Request, node: Managed) -> StreamConnection:
    found = _named(request, node)
    check_visible(request, found.user)
    return found


def _named(request: web.Request, node: Managed) -> StreamConnection:
    vhost, name = request.match_info["vhost"], request.match_info["connection"]
    for found in stream_connections(node):
        if found.vhost == vhost and found.peer.name == name:
            return found
    raise missing()
