"""Federation links: their status and restart; upstreams and sets are parameters."""

from typing import Annotated

from aiohttp import web

from warren.management.auth import permitted_vhosts, user_of
from warren.management.cluster_lists import reply_cluster_list
from warren.management.listing import Listing, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import ColumnsQuery, PageQuery, doc, documented
from warren.management.replies import done, missing
from warren.management.views.relays import (
    FederationLinkShape,
    federation_link_view,
    link_id,
    link_identity,
)
from warren.management.views.stats import SampleRanges, SamplesQuery, sample_ranges
from warren.relay.status import LinkKey, LinkKind, LinkState

_UP = (LinkState.STARTING, LinkState.RUNNING)


class LinksQuery(PageQuery, SamplesQuery, total=False):
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
    return await _reply(request, node, _down(node, _visible(request, node)))


@documented(query=LinksQuery, response=list[FederationLinkShape])
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the federation links of a virtual host."""
    return await _reply(request, node, _of_vhost(request, node))


@documented(query=LinksQuery, response=list[FederationLinkShape])
async def of_vhost_down(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the federation links of a virtual host that are neither running nor starting."""
    return await _reply(request, node, _down(node, _of_vhost(request, node)))


@documented(query=LinkQuery, response=FederationLinkShape)
async def link(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the status of a federation link."""
    wanted = request.match_info["link"]
    for key in _of_vhost(request, node):
        if link_id(key) == wanted:
            return reply_one(request, _view(node, key, sample_ranges(request, node)))
    raise missing(f"there is no federation link '{wanted}'")


async def restart(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Connect a federation link anew, at once."""
    wanted = request.match_info["link"]
    if request.match_info.get("node", node.node_name) != node.node_name:
        raise missing(f"there is no node '{request.match_info['node']}'")
    for key in _of_vhost(request, node):
        if link_id(key) == wanted and node.relays.restart(key, user_of(request).name):
            return done()
    raise missing(f"there is no federation link '{wanted}'")


def _down(node: ManagedNode, found: list[LinkKey]) -> list[LinkKey]:
    return [key for key in found if node.relays.state(key) not in _UP]


def _visible(request: web.Request, node: ManagedNode) -> list[LinkKey]:
    vhosts = frozenset(permitted_vhosts(node, user_of(request)))
    return [key for key in node.relays.link_keys() if _is_wanted(request, key) and key.vhost in vhosts]


def _view(node: ManagedNode, key: LinkKey, ranges: SampleRanges) -> dict[str, object]:
    """The link as JSON; only what identifies it, if it has ended during the request."""
    status = node.relays.status(key)
    if status is None:
        return {**link_identity(node.metadata, key)}
    return federation_link_view(node, status, ranges)


def _is_wanted(request: web.Request, key: LinkKey) -> bool:
    """True for a federation link, of the object that the query names."""
    if key.kind is LinkKind.SHOVEL:
        return False
    query = request.query
    wanted = [(kind, query[kind]) for kind in (LinkKind.EXCHANGE, LinkKind.QUEUE) if kind in query]
    return not wanted or (key.kind, key.name) in wanted


def _of_vhost(request: web.Request, node: ManagedNode) -> list[LinkKey]:
    name = vhost_in_path(request, node).name
    return [key for key in _visible(request, node) if key.vhost == name]


async def _reply(request: web.Request, node: ManagedNode, found: list[LinkKey]) -> web.StreamResponse:
    ranges = sample_ranges(request, node)
    listing = Listing(
        records=found,
        view=lambda key: _view(node, key, ranges),
        columns={
            "vhost": lambda key: key.vhost,
            "type": lambda key: key.kind.value,
            "name": lambda key: key.name,
            "upstream_name": lambda key: key.upstream_name,
            "upstream": lambda key: key.upstream,
        },
        # Links have no name in RabbitMQ's fields, whose order then decides: exchanges, then queues.
        sort_keys=("vhost", "type", "name", "upstream_name", "upstream"),
        is_paged=True,
        has_view=lambda key: node.relays.state(key) is not None,
        identity=lambda key: "\0".join((key.vhost, link_id(key))),
    )
    return await reply_cluster_list(request, node, listing)
