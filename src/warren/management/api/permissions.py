"""Permissions of users in virtual hosts, and their topic permissions."""

from collections.abc import Callable
from typing import NotRequired, TypedDict

from aiohttp import web

from warren.management.listing import JsonObject, Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import check_pattern, propose, user_in_path, vhost_in_path
from warren.management.operation import ColumnsQuery, ListQuery, documented
from warren.management.replies import bad_request, done, missing, put
from warren.management.request_body import BodyFields, read_fields
from warren.metadata.commands import (
    ClearPermissions,
    ClearTopicPermissions,
    MetadataCommand,
    Outcome,
    SetPermissions,
    SetTopicPermissions,
)
from warren.metadata.permissions import Permission, TopicPermission
from warren.model.patterns import TOO_SLOW, is_suspended

# True for a user and a virtual host that the response includes.
PermissionFilter = Callable[[str, str], bool]

_PATTERNS = ("configure", "write", "read")
_Topic = tuple[str, str, str, TopicPermission]


class PermissionBody(TypedDict):
    """Regular expressions for the names of objects that may be configured, written to and read from."""

    configure: str
    write: str
    read: str


class TopicPermissionBody(TypedDict):
    """Regular expressions for the routing keys of publishes and bindings on an exchange."""

    exchange: str
    write: str
    read: str


class PermissionShape(TypedDict):
    """The permissions of a user in a virtual host."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str
    suspended: NotRequired[str]


class TopicPermissionShape(TypedDict):
    """The topic permissions of a user on an exchange."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str
    suspended: NotRequired[str]


_permissions = documented(query=ListQuery, response=list[PermissionShape])
_topics = documented(query=ListQuery, response=list[TopicPermissionShape])


@_permissions
async def permissions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the permissions of all users in all virtual hosts."""
    return await permissions_of(request, node, _any)


@_permissions
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the permissions of all users in a virtual host."""
    name = vhost_in_path(request, node).name
    return await permissions_of(request, node, lambda _, vhost: vhost == name)


@_topics
async def topics_of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the topic permissions of all users in a virtual host."""
    name = vhost_in_path(request, node).name
    return await topic_permissions_of(request, node, lambda _, vhost: vhost == name)


@documented(query=ColumnsQuery, response=PermissionShape)
def permission(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the permissions of a user in a virtual host."""
    key = _key(request, node)
    found = node.metadata.permissions.by_user_and_vhost.get(key)
    if found is None:
        raise missing()
    return reply_one(request, _permission((key, found)))


@documented(body=PermissionBody)
async def put_permission(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set the permissions of a user in a virtual host."""
    user, vhost = request.match_info["user"], request.match_info["vhost"]
    _check_both(node, user, vhost)
    fields = await read_fields(request)
    command = permissions_command(user, vhost, fields.by_name)
    is_new = (user, vhost) not in node.metadata.permissions.by_user_and_vhost
    await _set(node, command, user, vhost)
    return put(is_new=is_new)


async def delete_permission(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete the permissions of a user in a virtual host."""
    user, vhost = key = _key(request, node)
    if key not in node.metadata.permissions.by_user_and_vhost:
        raise missing()
    await propose(node, ClearPermissions(user=user, vhost=vhost))
    return done()


@_topics
async def topic_permissions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the topic permissions of all users in all virtual hosts."""
    return await topic_permissions_of(request, node, _any)


@_topics
async def topic_permission(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the topic permissions of a user in a virtual host, of all exchanges (as in RabbitMQ)."""
    key = _key(request, node)
    if key not in node.metadata.permissions.topics_by_user_and_vhost:
        raise missing()
    return await topic_permissions_of(request, node, lambda *found: found == key)


@documented(body=TopicPermissionBody)
async def put_topic_permission(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set the topic permissions of a user on an exchange."""
    user, vhost = request.match_info["user"], request.match_info["vhost"]
    _check_both(node, user, vhost)
    fields = await read_fields(request)
    patterns = {name: fields.text(name) for name in ("write", "read")}
    for pattern in patterns.values():
        check_pattern(pattern, is_topic=True)
    is_new = (user, vhost) not in node.metadata.permissions.topics_by_user_and_vhost
    command = SetTopicPermissions(user=user, vhost=vhost, exchange=fields.text("exchange"), **patterns)
    await _set(node, command, user, vhost)
    return put(is_new=is_new)


async def delete_topic_permission(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete the topic permissions of a user on an exchange, or on all of a virtual host."""
    user, vhost = key = _key(request, node)
    if key not in node.metadata.permissions.topics_by_user_and_vhost:
        raise missing()
    exchange = request.match_info.get("exchange")
    await propose(node, ClearTopicPermissions(user=user, vhost=vhost, exchange=exchange))
    return done()


async def permissions_of(
    request: web.Request, node: ManagedNode, is_chosen: PermissionFilter
) -> web.StreamResponse:
    """The permissions of the users and virtual hosts for which `is_chosen` is true."""
    found = [entry for entry in node.metadata.permissions.by_user_and_vhost.items() if is_chosen(*entry[0])]
    columns = {"user": lambda entry: entry[0][0], "vhost": lambda entry: entry[0][1]}
    listing: Listing[tuple[tuple[str, str], Permission]] = Listing(
        records=found, view=_permission, columns=columns, sort_keys=("vhost", "user")
    )
    return await reply_list(request, listing)


async def topic_permissions_of(
    request: web.Request, node: ManagedNode, is_chosen: PermissionFilter
) -> web.StreamResponse:
    """The topic permissions of the users and virtual hosts for which `is_chosen` is true."""
    found = [
        (user, vhost, exchange, topic)
        for (user, vhost), topics in node.metadata.permissions.topics_by_user_and_vhost.items()
        if is_chosen(user, vhost)
        for exchange, topic in topics.items()
    ]
    columns = {
        "user": lambda entry: entry[0],
        "vhost": lambda entry: entry[1],
        "exchange": lambda entry: entry[2],
    }
    listing: Listing[_Topic] = Listing(
        records=found, view=_topic, columns=columns, sort_keys=("vhost", "user", "exchange")
    )
    return await reply_list(request, listing)


def permissions_command(user: str, vhost: str, entry: object) -> SetPermissions:
    """The command that grants `user` the patterns in `entry`; raises RequestRefused for an invalid one."""
    if not isinstance(entry, dict):
        raise bad_request(["not_object", entry])
    fields = BodyFields(entry)
    fields.require(*_PATTERNS)
    patterns = {name: fields.text(name) for name in _PATTERNS}
    for pattern in patterns.values():
        check_pattern(pattern)
    return SetPermissions(user=user, vhost=vhost, **patterns)


async def _set(node: ManagedNode, command: MetadataCommand, user: str, vhost: str) -> None:
    if (await propose(node, command)).outcome is Outcome.MISSING:
        _check_both(node, user, vhost)


def _check_both(node: ManagedNode, user: str, vhost: str) -> None:
    """Raise RequestRefused unless `user` and `vhost` exist."""
    has_user = user in node.metadata.users.by_name
    if has_user and vhost in node.metadata.vhosts.by_name:
        return
    message = f"there is no virtual host '{vhost}'" if has_user else f"there is no user '{user}'"
    raise bad_request("vhost_or_user_not_found", message=message)


def _key(request: web.Request, node: ManagedNode) -> tuple[str, str]:
    return user_in_path(request, node).name, vhost_in_path(request, node).name


def _permission(entry: tuple[tuple[str, str], Permission]) -> JsonObject:
    (user, vhost), found = entry
    return {
        "user": user,
        "vhost": vhost,
        "configure": found.configure,
        "write": found.write,
        "read": found.read,
        **_suspended(found.configure, found.write, found.read),
    }


def _suspended(*patterns: str) -> JsonObject:
    """The field `suspended` with a warning if a pattern is too slow to match, else no field."""
    return {"suspended": TOO_SLOW} if any(map(is_suspended, patterns)) else {}


def _topic(entry: _Topic) -> JsonObject:
    user, vhost, exchange, found = entry
    return {
        "user": user,
        "vhost": vhost,
        "exchange": exchange,
        "write": found.write,
        "read": found.read,
        **_suspended(found.write, found.read),
    }


def _any(_: str, __: str) -> bool:
    return True
