"""Shovels: their status, restart and deletion; they are made and changed as parameters."""

from aiohttp import web

from warren.management.auth import is_administrator, permitted_vhosts, user_of
from warren.management.cluster_lists import reply_cluster_list
from warren.management.listing import Listing, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose_checked, vhost_in_path
from warren.management.operation import ColumnsQuery, ListQuery, documented
from warren.management.replies import RequestRefused, done, error_reply, missing
from warren.management.views.relays import (
    ShovelParameterShape,
    ShovelShape,
    is_static,
    shovel_definition,
    shovel_parameter,
    shovel_view,
    shovels,
)
from warren.management.views.stats import SamplesQuery, sample_ranges
from warren.metadata.commands import ClearParameter
from warren.metadata.shovel_definition import SHOVEL
from warren.relay.status import LinkKey, LinkKind, LinkStatus


class ShovelsQuery(ListQuery, SamplesQuery, total=False):
    """How a list of shovels is sorted."""


class ShovelQuery(ColumnsQuery, SamplesQuery, total=False):
    """Which fields of a shovel are returned."""


@documented(query=ShovelsQuery, response=list[ShovelShape])
async def all_shovels(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the shovels in the virtual hosts in which the user has permissions.

    Static shovels belong to no virtual host, and are listed for administrators.
    """
    return await _reply(request, node, _visible(request, node))


@documented(query=ShovelsQuery, response=list[ShovelShape])
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the shovels of a virtual host."""
    name = vhost_in_path(request, node).name
    return await _reply(request, node, [one for one in _visible(request, node) if one.key.vhost == name])


@documented(query=ShovelQuery, response=ShovelParameterShape)
async def shovel(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the status and the definition of a dynamic shovel."""
    key = _key(request, node)
    found = _found(request, node, key)
    if found is None:
        raise _no_shovel(key)
    return found


@documented(query=ShovelQuery, response=ShovelShape)
async def static_shovel(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the status of a shovel of the configuration."""
    name = request.match_info["name"]
    found = _found(request, node, LinkKey(LinkKind.SHOVEL, "", name))
    if found is None:
        raise missing(f"there is no shovel '{name}' in the configuration")
    return found


async def delete_shovel(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Stop a dynamic shovel and delete it, unless its definition says that it is internal."""
    key = _key(request, node)
    vhost = vhost_in_path(request, node)
    if (SHOVEL, key.name) not in vhost.parameters.by_key:
        raise _no_shovel(key)
    if shovel_definition(node, key).get("internal") is True:
        reason = f"shovel '{key.name}' is protected: it goes when its parameter is deleted"
        raise RequestRefused(error_reply(405, "method_not_allowed", reason))
    await propose_checked(node, ClearParameter(vhost=key.vhost, component=SHOVEL, name=key.name))
    return done()


async def restart(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Connect a dynamic shovel anew, at once."""
    key = _key(request, node)
    if not node.relays.restart(key, user_of(request).name):
        raise _no_shovel(key)
    return done()


def _key(request: web.Request, node: ManagedNode) -> LinkKey:
    return LinkKey(LinkKind.SHOVEL, vhost_in_path(request, node).name, request.match_info["name"])


def _no_shovel(key: LinkKey) -> Exception:
    return missing(f"there is no shovel '{key.name}' in vhost '{key.vhost}'")


def _visible(request: web.Request, node: ManagedNode) -> list[LinkStatus]:
    user = user_of(request)
    vhosts = frozenset(permitted_vhosts(node, user))
    sees_static = is_administrator(user)
    return [one for one in shovels(node) if (sees_static if is_static(one.key) else one.key.vhost in vhosts)]


def _found(request: web.Request, node: ManagedNode, key: LinkKey) -> web.StreamResponse | None:
    """The answer with the shovel `key`; None if the user sees none."""
    for status in _visible(request, node):
        if status.key == key:
            shown = shovel_view(node, status, sample_ranges(request, node))
            return reply_one(request, shown if is_static(key) else shown | shovel_parameter(node, key))
    return None


async def _reply(request: web.Request, node: ManagedNode, found: list[LinkStatus]) -> web.StreamResponse:
    ranges = sample_ranges(request, node)
    listing = Listing(
        records=found,
        view=lambda status: shovel_view(node, status, ranges),
        columns={"vhost": lambda status: status.key.vhost, "name": lambda status: status.key.name},
        identity=lambda status: f"{status.key.vhost}\0{status.key.name}",
    )
    return await reply_cluster_list(request, node, listing)
