"""Limits of connections and queues of a virtual host, and of connections and channels of a user."""

from collections.abc import Mapping
from typing import TypedDict

from aiohttp import web

from warren.management.auth import user_of, visible_vhosts
from warren.management.listing import JsonObject, Listing, reply_list
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose, user_in_path, vhost_in_path
from warren.management.operation import ListQuery, documented
from warren.management.replies import bad_request, done
from warren.management.request_body import read_fields
from warren.metadata.commands import SetUserLimits, SetVhostLimits


class LimitBody(TypedDict):
    """The value of a limit; -1 means no limit."""

    value: int


class VhostLimitsShape(TypedDict):
    """The limits of a virtual host."""

    vhost: str
    value: dict[str, int]


class UserLimitsShape(TypedDict):
    """The limits of a user."""

    user: str
    value: dict[str, int]


@documented(query=ListQuery, response=list[VhostLimitsShape])
async def vhost_limits(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the limits of the virtual hosts that the user may list and that have limits."""
    vhosts = [node.metadata.vhosts.by_name[name] for name in visible_vhosts(node, user_of(request))]
    found = [_facts("vhost", vhost.name, vhost.limits) for vhost in vhosts if vhost.limits]
    return await reply_list(request, _listing(found, "vhost"))


@documented(query=ListQuery, response=list[VhostLimitsShape])
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the limits of a virtual host."""
    vhost = vhost_in_path(request, node)
    found = [_facts("vhost", vhost.name, vhost.limits)] if vhost.limits else []
    return await reply_list(request, _listing(found, "vhost"))


@documented(body=LimitBody, responses={204: None})
async def put_vhost_limit(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set a limit of a virtual host: `max-connections` or `max-queues`."""
    vhost, name = vhost_in_path(request, node), request.match_info["name"]
    value = (await read_fields(request)).get("value")
    await propose(node, SetVhostLimits(vhost=vhost.name, limits={**vhost.limits, name: value}))
    return done()


async def delete_vhost_limit(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Remove a limit of a virtual host."""
    vhost = vhost_in_path(request, node)
    limits = _without(vhost.limits, request.match_info["name"])
    await propose(node, SetVhostLimits(vhost=vhost.name, limits=limits))
    return done()


@documented(query=ListQuery, response=list[UserLimitsShape])
async def user_limits(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the limits of all users that have limits."""
    found = [
        _facts("user", user.name, user.limits) for user in node.metadata.users.by_name.values() if user.limits
    ]
    return await reply_list(request, _listing(found, "user"))


@documented(query=ListQuery, response=list[UserLimitsShape])
async def of_user(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the limits of a user."""
    user = user_in_path(request, node)
    found = [_facts("user", user.name, user.limits)] if user.limits else []
    return await reply_list(request, _listing(found, "user"))


@documented(body=LimitBody, responses={204: None})
async def put_user_limit(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set a limit of a user: `max-connections` or `max-channels`."""
    value = (await read_fields(request)).get("value")
    name = request.match_info["user"]
    user = node.metadata.users.by_name.get(name)
    if user is None:
        raise bad_request(["no_such_user", name])
    limits = {**user.limits, request.match_info["name"]: value}
    await propose(node, SetUserLimits(name=name, limits=limits))
    return done()


async def delete_user_limit(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Remove a limit of a user."""
    user = user_in_path(request, node)
    limits = _without(user.limits, request.match_info["name"])
    await propose(node, SetUserLimits(name=user.name, limits=limits))
    return done()


def _without(limits: Mapping[str, object], name: str) -> dict[str, object]:
    return {known: value for known, value in limits.items() if known != name}


def _facts(kind: str, name: str, limits: Mapping[str, object]) -> JsonObject:
    return {kind: name, "value": dict(limits)}


def _listing(found: list[JsonObject], kind: str) -> Listing[JsonObject]:
    return Listing(
        records=found, view=lambda facts: facts, columns={kind: lambda facts: facts[kind]}, sort_keys=(kind,)
    )
