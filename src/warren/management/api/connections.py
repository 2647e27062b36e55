"""Connections and channels: listed, with their consumers, and closed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from aiohttp import web

from warren.management.auth import check_owner, check_visible, is_monitor, user_of, visible_vhosts
from warren.management.cluster_lists import reply_cluster_list
from warren.management.listing import JsonObject, Listing, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import ColumnsQuery, ListQuery, PageQuery, documented, paged
from warren.management.replies import done, missing
from warren.management.views.channels import ChannelShape, channel_view
from warren.management.views.connections import (
    ConnectionShape,
    connection_view,
)
from warren.management.views.consumers import (
    ConsumerShape,
    OpenChannel,
    channel_name,
    consumer_view,
    consumers_of,
    stream_consumers_on,
    stream_subscriber_view,
)
from warren.management.views.stats import SamplesQuery, sample_ranges
from warren.metadata.users import User
from warren.session.any_connection import AnyConnection
from warren.session.streams.connection import StreamConnection

C = TypeVar("C", bound=AnyConnection)

_SEPARATOR = "\0"
# The reason sent to a client whose connection is closed here, unless the request gives another.
_CLOSED = "Closed via management plugin"


class ConnectionsQuery(PageQuery, SamplesQuery, total=False):
    """How a list of connections or channels is sorted, filtered and paged."""


class ChannelsQuery(ListQuery, SamplesQuery, total=False):
    """How the list of channels of a connection is sorted and filtered."""


class ConnectionQuery(ColumnsQuery, SamplesQuery, total=False):
    """Which fields of a connection or channel are returned."""


_connections = documented(query=ConnectionsQuery, response=paged(ConnectionShape))
_channels = documented(query=ConnectionsQuery, response=paged(ChannelShape))


@_connections
async def connections(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List open connections; users without the tag monitoring see their own."""
    return await reply_connections(request, node, _seen(request, node))


@_connections
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the connections to a virtual host."""
    name = vhost_in_path(request, node).name
    found = [connection for connection in _seen(request, node) if connection.vhost_name == name]
    return await reply_connections(request, node, found)


@_connections
async def of_user(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the connections of a user."""
    return await reply_connections(request, node, _of_user(request, node))


@documented(query=ConnectionQuery, response=ConnectionShape)
def connection(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a connection."""
    found = _named(request, node)
    check_visible(request, found.identity)
    return reply_one(request, connection_view(node, found, sample_ranges(request, node), is_alone=True))


def close_connection(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Close a connection; the header `x-reason` is the reason sent to the client."""
    found = _named(request, node)
    check_owner(request, found.identity)
    close(request, found)
    return done()


def close_connections(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Close all connections of a user; the header `x-reason` is the reason sent to the clients."""
    user, name = user_of(request), request.match_info["user"]
    check_owner(request, user.identity if user.name == name else name)
    for found in _of_user(request, node):
        close(request, found)
    return done()


@_channels
async def channels(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List open channels; users without the tag monitoring see their own."""
    return await _reply_channels(request, node, _channels_of(_seen(request, node)), is_paged=True)


@_channels
async def channels_of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the channels in a virtual host."""
    name = vhost_in_path(request, node).name
    found = [connection for connection in _seen(request, node) if connection.vhost_name == name]
    return await _reply_channels(request, node, _channels_of(found), is_paged=True)


@documented(query=ChannelsQuery, response=list[ChannelShape])
async def channels_of_connection(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the channels of a connection."""
    found = _named(request, node)
    check_visible(request, found.identity)
    return await _reply_channels(request, node, _channels_of([found]))


@documented(query=ConnectionQuery, response=ChannelShape)
def channel(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a channel with its consumers."""
    name = request.match_info["channel"]
    for opened in _channels_of(node.server.all_connections()):
        if channel_name(*opened) == name:
            check_visible(request, opened[0].identity)
            return reply_one(request, channel_view(node, opened, sample_ranges(request, node), is_alone=True))
    raise missing()


@documented(query=ListQuery, response=list[ConsumerShape])
async def consumers(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the consumers in a virtual host, or in all that the user may list."""
    if "vhost" in request.match_info:
        vhosts = {vhost_in_path(request, node).name}
    else:
        vhosts = set(visible_vhosts(node, user_of(request)))
    seen = [connection for connection in _seen(request, node) if connection.vhost_name in vhosts]
    found = [one for opened in _channels_of(seen) for one in consumers_of(opened)]
    reading = stream_consumers_on(one for one in seen if isinstance(one, StreamConnection))
    listing: Listing[Callable[[], JsonObject]] = Listing(
        records=[
            *(partial(consumer_view, node, one) for one in found),
            *(partial(stream_subscriber_view, node, one) for one in reading),
        ],
        view=lambda facts: facts(),
        columns={},
        sort_keys=(),
        identity=lambda facts: consumer_id(facts()),
    )
    return await reply_cluster_list(request, node, listing)


async def reply_connections(
    request: web.Request, node: ManagedNode, found: Iterable[AnyConnection]
) -> web.StreamResponse:
    """The list response of the connections `found`."""
    wanted = sample_ranges(request, node)

    def view(connection: AnyConnection) -> JsonObject:
        return connection_view(node, connection, wanted, is_alone=False)

    listing: Listing[AnyConnection] = Listing(
        records=found,
        view=view,
        columns={
            "vhost": lambda connection: connection.vhost_name,
            "name": lambda connection: connection.peer.name,
            "user": lambda connection: connection.user,
            "recv_oct": lambda connection: connection.bytes_received,
            "send_oct": lambda connection: connection.outbox.total,
            "channels": lambda connection: len(connection.channels),
            "connected_at": lambda connection: connection.connected_at,
            "peer_host": lambda connection: connection.peer.host,
        },
        is_paged=True,
        identity=lambda connection: connection.peer.name,
    )
    return await reply_cluster_list(request, node, listing)


def visible_connections(request: web.Request, found: Sequence[C]) -> list[C]:
    """The connections of `found` that the user may see."""
    user: User = user_of(request)
    return list(found) if is_monitor(user) else [one for one in found if one.identity == user.identity]


def close(request: web.Request, connection: AnyConnection) -> None:
    """Close the connection of a client with the reason in the header `x-reason`."""
    connection.disconnect(request.headers.get("x-reason") or _CLOSED)


async def _reply_channels(
    request: web.Request, node: ManagedNode, found: Iterable[OpenChannel], *, is_paged: bool = False
) -> web.StreamResponse:
    wanted = sample_ranges(request, node)

    def view(opened: OpenChannel) -> JsonObject:
        return channel_view(node, opened, wanted, is_alone=False)

    listing: Listing[OpenChannel] = Listing(
        records=found,
        view=view,
        columns={
            "vhost": lambda opened: opened[0].vhost_name,
            "name": lambda opened: channel_name(*opened),
            "user": lambda opened: opened[0].user,
            "number": lambda opened: opened[1].number,
            "messages_unacknowledged": lambda opened: opened[1].subscriber.unacked.count,
        },
        is_paged=is_paged,
        identity=lambda opened: channel_name(*opened),
    )
    return await reply_cluster_list(request, node, listing)


def consumer_id(facts: JsonObject) -> str:
    """The id of a consumer that is shown by `facts`, by which nodes name it to each other."""
    channel = facts["channel_details"]
    assert isinstance(channel, dict)
    return f"{channel['connection_name']}{_SEPARATOR}{channel['name']}{_SEPARATOR}{facts['consumer_tag']}"


def _seen(request: web.Request, node: ManagedNode) -> list[AnyConnection]:
    """The connections that the user may see."""
    return visible_connections(request, node.server.all_connections())


def _of_user(request: web.Request, node: ManagedNode) -> list[AnyConnection]:
    """The connections of the user in the path that the user of the request may see."""
    user, name = user_of(request), request.match_info["user"]
    check_visible(request, user.identity if user.name == name else name)
    return [
        found for found in visible_connections(request, node.server.all_connections()) if found.user == name
    ]


def _channels_of(connections: Iterable[AnyConnection]) -> Iterator[OpenChannel]:
    return ((found, channel) for found in connections for channel in list(found.channels.values()))


def _named(request: web.Request, node: ManagedNode) -> AnyConnection:
    name = request.match_info["connection"]
    for found in node.server.all_connections():
        if found.peer.name == name:
            return found
    raise missing()
