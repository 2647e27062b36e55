"""Stream connections with their publishers and consumers, at the paths of RabbitMQ's stream management."""

from collections.abc import Iterable

from aiohttp import web

from warren.management.api.connections import (
    ConnectionQuery,
    ConnectionsQuery,
    close,
    reply_connections,
    visible_connections,
)
from warren.management.auth import check_owner, check_visible
from warren.management.cluster_lists import reply_cluster_list
from warren.management.listing import Listing, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import ListQuery, documented, paged
from warren.management.replies import done, missing
from warren.management.views.connections import ConnectionShape, connection_view, stream_connections
from warren.management.views.consumers import StreamConsumer, stream_consumers_on
from warren.management.views.stats import sample_ranges
from warren.management.views.stream_clients import (
    StreamConsumerShape,
    StreamPublisherShape,
    stream_consumer_view,
    stream_publisher_view,
)
from warren.management.views.streams import StreamPublisher, stream_publishers_on
from warren.queues.capabilities import stream_queue
from warren.session.streams.connection import StreamConnection

_connections = documented(query=ConnectionsQuery, response=paged(ConnectionShape))
_publishers = documented(query=ListQuery, response=list[StreamPublisherShape])
_consumers = documented(query=ListQuery, response=list[StreamConsumerShape])


@_connections
async def connections(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List stream connections, all or of a virtual host, that the user may see."""
    return await reply_connections(request, node, _seen(request, node))


@documented(query=ConnectionQuery, response=ConnectionShape)
def connection(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a stream connection."""
    found = _visible(request, node)
    return reply_one(request, connection_view(node, found, sample_ranges(request, node), is_alone=True))


def close_connection(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Close a stream connection; the header `x-reason` is the reason sent to the client."""
    found = _named(request, node)
    check_owner(request, found.identity)
    close(request, found)
    return done()


@_publishers
async def publishers(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List stream publishers, all or of a virtual host."""
    return await _reply_publishers(request, node, stream_publishers_on(_seen(request, node)))


@_publishers
async def publishers_of_stream(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the publishers of a stream."""
    seen = _seen(request, node)
    services = node.server.vhost_services.get(request.match_info["vhost"])
    queue = None if services is None else stream_queue(services.vhost.queues.get(request.match_info["queue"]))
    if queue is None:
        raise missing()
    found = [one for one in stream_publishers_on(seen) if one[1].stream is queue]
    return await _reply_publishers(request, node, found)


@_publishers
async def publishers_on(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the publishers of a stream connection."""
    return await _reply_publishers(request, node, stream_publishers_on([_visible(request, node)]))


@_consumers
async def consumers(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List stream consumers, all or of a virtual host."""
    return await _reply_consumers(request, node, stream_consumers_on(_seen(request, node)))


@_consumers
async def consumers_on(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the consumers of a stream connection."""
    return await _reply_consumers(request, node, stream_consumers_on([_visible(request, node)]))


async def _reply_publishers(
    request: web.Request, node: ManagedNode, found: Iterable[StreamPublisher]
) -> web.StreamResponse:
    listing: Listing[StreamPublisher] = Listing(
        records=found,
        view=lambda publishing: stream_publisher_view(node, publishing),
        columns={},
        sort_keys=(),
        identity=lambda one: f"{one[0].peer.name}\0{one[1].number}",
    )
    return await reply_cluster_list(request, node, listing)


async def _reply_consumers(
    request: web.Request, node: ManagedNode, found: Iterable[StreamConsumer]
) -> web.StreamResponse:
    listing: Listing[StreamConsumer] = Listing(
        records=found,
        view=lambda subscribing: stream_consumer_view(node, subscribing),
        columns={},
        sort_keys=(),
        identity=lambda one: f"{one[0].peer.name}\0{one[1].number}",
    )
    return await reply_cluster_list(request, node, listing)


def _seen(request: web.Request, node: ManagedNode) -> list[StreamConnection]:
    """The stream connections that the user may see, of the virtual host in the path if there is one."""
    found = stream_connections(node)
    if "vhost" in request.match_info:
        name = vhost_in_path(request, node).name
        found = [one for one in found if one.vhost_name == name]
    return visible_connections(request, found)


def _visible(request: web.Request, node: ManagedNode) -> StreamConnection:
    found = _named(request, node)
    check_visible(request, found.identity)
    return found


def _named(request: web.Request, node: ManagedNode) -> StreamConnection:
    vhost, name = request.match_info["vhost"], request.match_info["connection"]
    for found in stream_connections(node):
        if found.vhost_name == vhost and found.peer.name == name:
            return found
    raise missing()
