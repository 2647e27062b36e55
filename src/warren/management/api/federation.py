"""Federation links: their status and restart; upstreams and sets are parameters."""

from typing import Annotated

from aiohttp import web

from warren.management.auth import permitted_vhosts, user_of
from warren.management.listing import Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import ColumnsQuery, ListQuery, doc, documented
from warren.management.replies import done, missing
from warren.management.views.relays import (
    FederationLinkShape,
    federation_link_view,
    link_id,
)
from warren.management.views.stats import SamplesQuery, sample_ranges
from warren.relay.status import LinkKey, LinkKind, LinkState, LinkStatus

_UP = (LinkState.STARTING, LinkState.RUNNING)


class LinksQuery(ListQuery, SamplesQuery, total=False):
    """How a list of federation links is sorted, and of which object they are."""

    exchange: Annotated[str, doc("Only links of the exchange with this name.")]
    queue: Annotated[str, doc("Only links of the queue with this name.")]


class LinkQuery(ColumnsQuery, SamplesQuery, total=False):
    """Which fields of a federation link are returned."""


@documented(query=LinksQuery, response=list[FederationLinkShape])
async def links(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the federation links in the virtual hosts in which the user has permissions."""
    return await _reply(request, node, _visible(request, node))


@documented(query=LinksQuery, response=list[FederationLinkShape])
async def links_down(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the federation links that are neither running nor starting."""
    return await _reply(request, node, _down(_visible(request, node)))


@documented(query=LinksQuery, response=list[FederationLinkShape])
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the federation links of a virtual host."""
    return await _reply(request, node, _of_vhost(request, node))


@documented(query=LinksQuery, response=list[FederationLinkShape])
async def of_vhost_down(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the federation links of a virtual host that are neither running nor starting."""
    return await _reply(request, node, _down(_of_vhost(request, node)))


@documented(query=LinkQuery, response=FederationLinkShape)
async def link(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the status of a federation link."""
    wanted = request.match_info["link"]
    for status in _of_vhost(request, node):
        if link_id(status.key) == wanted:
            return reply_one(request, federation_link_view(node, status, sample_ranges(request, node)))
    raise missing(f"there is no federation link '{wanted}'")


async def restart(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Connect a federation link anew, at once."""
    wanted = request.match_info["link"]
    if request.match_info.get("node", node.node_name) != node.node_name:
        raise missing(f"there is no node '{request.match_info['node']}'")
    for status in _of_vhost(request, node):
        if link_id(status.key) == wanted and node.relays.restart(status.key, user_of(request).name):
            return done()
    raise missing(f"there is no federation link '{wanted}'")


def _down(found: list[LinkStatus]) -> list[LinkStatus]:
    return [status for status in found if status.state not in _UP]


def _visible(request: web.Request, node: ManagedNode) -> list[LinkStatus]:
    vhosts = frozenset(permitted_vhosts(node, user_of(request)))
    found = (node.relays.status(key) for key in node.relays.link_keys() if _is_wanted(request, key))
    return [status for status in found if status is not None and status.key.vhost in vhosts]


def _is_wanted(request: web.Request, key: LinkKey) -> bool:
    """True for a federation link, of the object that the query names."""
    if key.kind is LinkKind.SHOVEL:
        return False
    query = request.query
    wanted = [(kind, query[kind]) for kind in (LinkKind.EXCHANGE, LinkKind.QUEUE) if kind in query]
    return not wanted or (key.kind, key.name) in wanted


def _of_vhost(request: web.Request, node: ManagedNode) -> list[LinkStatus]:
    name = vhost_in_path(request, node).name
    return [status for status in _visible(request, node) if status.key.vhost == name]


async def _reply(request: web.Request, node: ManagedNode, found: list[LinkStatus]) -> web.StreamResponse:
    ranges = sample_ranges(request, node)
    listing = Listing(
        records=found,
        view=lambda status: federation_link_view(node, status, ranges),
        columns={
            "vhost": lambda status: status.key.vhost,
            "type": lambda status: status.key.kind.value,
            "name": lambda status: status.key.name,
            "upstream_name": lambda status: status.key.upstream_name,
            "upstream": lambda status: status.key.upstream,
        },
        # Links have no name in RabbitMQ's fields, whose order then decides: exchanges, then queues.
        sort_keys=("vhost", "type", "name", "upstream_name", "upstream"),
    )
    return await reply_list(request, listing)
