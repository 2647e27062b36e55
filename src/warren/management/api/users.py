"""Users: their passwords, tags and permissions."""

import asyncio
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Required, TypedDict

from aiohttp import web

from warren.access.passwords import ALGORITHMS, is_affordable
from warren.management.api.permissions import (
    PermissionBody,
    PermissionShape,
    TopicPermissionShape,
    permissions_command,
    permissions_of,
    topic_permissions_of,
)
from warren.management.listing import JsonObject, Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose, user_in_path
from warren.management.operation import ColumnsQuery, ListQuery, documented
from warren.management.replies import bad_request, done, put
from warren.management.request_body import BodyFields, read_fields
from warren.metadata.commands import PutUser, RemoveUser, SetPermissions
from warren.metadata.definitions import user_entry
from warren.metadata.definitions_import import DEFAULT_HASHING
from warren.metadata.users import PasswordHash, User


class UserBody(TypedDict, total=False):
    """The properties of a user; without a password or its hash the user cannot log in with a password."""

    tags: str | list[str]
    administrator: bool
    permissions: dict[str, PermissionBody]
    limits: dict[str, int]
    password: str
    password_hash: str
    hashing_algorithm: str


class UsersBody(TypedDict):
    """Names of users."""

    users: list[str]


class UserShape(TypedDict, total=False):
    """A user; it has either `password_hash` or, if hashes are hidden, `has_password`."""

    name: Required[str]
    password_hash: str
    has_password: bool
    hashing_algorithm: Required[str]
    tags: Required[list[str]]
    limits: Required[dict[str, int]]


_users = documented(query=ListQuery, response=list[UserShape])


@_users
async def users(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List all users."""
    return await reply_list(request, _listing(list(node.metadata.users.by_name.values()), node))


@_users
async def without_permissions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List users without permissions in any virtual host."""
    permitted = {user for user, _ in node.metadata.permissions.by_user_and_vhost}
    found = [user for user in node.metadata.users.by_name.values() if user.name not in permitted]
    return await reply_list(request, _listing(found, node))


@documented(query=ColumnsQuery, response=UserShape)
def user(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a user."""
    return reply_one(request, _view(user_in_path(request, node), node))


@documented(body=UserBody)
async def put_user(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Create a user, or set its password and tags, and permissions and limits if given."""
    name = request.match_info["user"]
    fields = await read_fields(request, is_checked=False)
    tags = _tags(fields)
    permissions = _permissions(name, fields, node)
    limits = _limits(name, fields, node)
    if "password" in fields and "password_hash" in fields:
        raise bad_request("both_password_and_password_hash_are_provided")
    known = node.metadata.users.by_name.get(name)
    is_new = known is None
    if known is not None and node.has_hidden_password_hashes and not _has_secret(fields):
        # Clients cannot send back what they are not shown.
        hashed = PasswordHash(known.password_hash, known.hashing_algorithm)
    else:
        hashed = await _hashed(fields, node)
    await propose(
        node,
        PutUser(
            name=name,
            password_hash=hashed.salted_hash,
            hashing_algorithm=hashed.algorithm,
            tags=tags,
            limits=limits,
        ),
    )
    for command in permissions:
        await propose(node, command)
    return put(is_new=is_new)


async def delete_user(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete a user and its permissions; its connections are closed."""
    await propose(node, RemoveUser(name=user_in_path(request, node).name))
    return done()


@documented(body=UsersBody)
async def delete_users(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete users by name; existing ones are deleted even if others do not exist."""
    fields = await read_fields(request)
    names = fields.get("users")
    if not isinstance(names, list):
        raise bad_request(["not_list", names])
    absent: object = None
    for name in names:
        if isinstance(name, str) and name in node.metadata.users.by_name:
            await propose(node, RemoveUser(name=name))
        elif absent is None:
            absent = name
    if absent is not None:
        raise bad_request(["no_such_user", absent])
    return done()


@documented(query=ListQuery, response=list[PermissionShape])
async def permissions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the permissions of a user."""
    name = user_in_path(request, node).name
    return await permissions_of(request, node, lambda user, _: user == name)


@documented(query=ListQuery, response=list[TopicPermissionShape])
async def topic_permissions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the topic permissions of a user."""
    name = user_in_path(request, node).name
    return await topic_permissions_of(request, node, lambda user, _: user == name)


def tags_of(fields: BodyFields) -> tuple[str, ...]:
    """The field `tags`: a list, or a string separated by commas."""
    value = fields.get("tags", "")
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise bad_request(["not_tags", value])
    return tuple(filter(None, (word.strip() for word in words)))


async def _hashed(fields: BodyFields, node: ManagedNode) -> PasswordHash:
    """The password hash to store and its algorithm; an empty hash matches no password."""
    if "password" in fields:
        return await asyncio.to_thread(node.hash_password, fields.text("password"))
    algorithm = fields.text("hashing_algorithm", DEFAULT_HASHING)
    if algorithm not in ALGORITHMS:
        raise bad_request(["unknown_hashing_algorithm", algorithm])
    written = fields.text("password_hash", "")
    try:
        hashed = PasswordHash(b64decode(written, validate=True), algorithm)
    except (Base64Error, ValueError):
        raise bad_request(["not_base64", written]) from None
    if not is_affordable(hashed):
        raise bad_request(["not_affordable", written])
    return hashed


def _tags(fields: BodyFields) -> tuple[str, ...]:
    """The field `tags`, or the older field `administrator`."""
    if "tags" in fields:
        return tags_of(fields)
    if "administrator" in fields:
        return ("administrator",) if fields.flag("administrator") else ()
    raise bad_request("tags_not_present")


def _permissions(user: str, fields: BodyFields, node: ManagedNode) -> list[SetPermissions]:
    """The permissions of `user` in the request, checked before anything is changed."""
    by_vhost = fields.get("permissions")
    if by_vhost is None:
        return []
    if not isinstance(by_vhost, dict):
        raise bad_request(["not_object", by_vhost])
    absent = next((vhost for vhost in by_vhost if vhost not in node.metadata.vhosts.by_name), None)
    if absent is not None:
        raise bad_request(["no_such_vhost", absent])
    return [permissions_command(user, vhost, entry) for vhost, entry in by_vhost.items()]


def _limits(user: str, fields: BodyFields, node: ManagedNode) -> dict[str, object] | None:
    """The limits of `user` with those in the request; None if the request has none."""
    if "limits" not in fields:
        return None
    limits = fields.get("limits")
    if not isinstance(limits, dict):
        raise bad_request(["not_object", limits])
    known = node.metadata.users.by_name.get(user)
    return limits if known is None else {**known.limits, **limits}


def _listing(found: list[User], node: ManagedNode) -> Listing[User]:
    return Listing(
        records=found,
        view=lambda user: _view(user, node),
        columns={"name": lambda user: user.name},
        sort_keys=("name",),
    )


def _view(user: User, node: ManagedNode) -> JsonObject:
    """A user as JSON, without the hash of its password if hashes are hidden."""
    found = user_entry(user)
    if node.has_hidden_password_hashes:
        del found["password_hash"]
        found["has_password"] = bool(user.password_hash)
    return found


def _has_secret(fields: BodyFields) -> bool:
    return "password" in fields or "password_hash" in fields
