"""Requests of RabbitMQ's tools about a node, other than its state and its statistics."""

import asyncio
from base64 import b64encode
from typing import Any, Required, TypedDict

from aiohttp import web

from warren.management.auth import check_credentials
from warren.management.listing import JsonObject, Listing, reply_list
from warren.management.managed_node import ManagedNode
from warren.management.operation import ErrorShape, ListQuery, Operation, documented, documented_as
from warren.management.replies import bad_request, done, missing, reply
from warren.management.request_body import read_fields, read_form
from warren.session.admission_control import AuthAttempts

# Feature flags that tools check before they use a feature, and whether the feature exists here.
_FLAGS = {
    "classic_mirrored_queue_version": ("Classic queues accept the argument x-queue-version", True),
    "drop_unroutable_metric": ("Unroutable messages are counted", True),
    "empty_basic_get_metric": ("Each basic.get of an empty queue is counted", True),
    "implicit_default_bindings": ("Bindings of the default exchange are implicit", True),
    "maintenance_mode_status": ("Nodes have a maintenance mode", True),
    "quorum_queue": ("Queues of type quorum", True),
    "stream_queue": ("Queues of type stream", True),
    "user_limits": ("Users can have limits of connections and channels", True),
    "virtual_host_metadata": ("Virtual hosts have a description and tags", True),
}


class FeatureFlagShape(TypedDict):
    """A feature flag, which tools check before they use a feature."""

    name: str
    desc: str
    doc_url: str
    state: str
    stability: str
    provided_by: str


class ResourceServerShape(TypedDict, total=False):
    """A resource server with which users log in to the web interface, in the fields of RabbitMQ 4."""

    id: Required[str]
    label: str
    oauth_client_id: str
    oauth_provider_url: str
    oauth_metadata_url: str
    oauth_scopes: str
    oauth_response_type: str
    oauth_initiated_logon_type: str
    oauth_authorization_endpoint_params: dict[str, str]
    oauth_token_endpoint_params: dict[str, str]
    end_session_endpoint: str


class AuthSettingsShape(TypedDict, total=False):
    """How a web interface authenticates users, in the fields of RabbitMQ 3.10 and of RabbitMQ 4."""

    oauth_enabled: Required[bool]
    oauth_disable_basic_auth: bool
    oauth_client_id: str
    oauth_provider_url: str
    oauth_metadata_url: str
    oauth_scopes: str
    oauth_response_type: str
    oauth_initiated_logon_type: str
    oauth_authorization_endpoint_params: dict[str, str]
    oauth_token_endpoint_params: dict[str, str]
    oauth_resource_servers: dict[str, ResourceServerShape]
    enable_uaa: Required[bool]
    uaa_client_id: Required[str]
    uaa_location: Required[str]


class PasswordBody(TypedDict):
    """A password."""

    password: str


class PasswordHashShape(TypedDict):
    """The hash of a password, in base64."""

    ok: str


class AuthAttemptsShape(TypedDict, total=False):
    """Numbers of authentication attempts."""

    protocol: str
    auth_attempts: int
    auth_attempts_failed: int
    auth_attempts_succeeded: int


class LoginBody(TypedDict):
    """A login form."""

    username: str
    password: str


@documented(query=ListQuery, response=list[FeatureFlagShape])
async def feature_flags(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the feature flags; a supported feature is always enabled."""
    listing: Listing[str] = Listing(
        records=_FLAGS, view=_flag, columns={"name": lambda name: name}, sort_keys=("name",)
    )
    return await reply_list(request, listing)


@documented(responses={204: None})
def enable_feature_flag(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Enable a feature flag; supported ones are enabled already."""
    name = request.match_info["name"]
    if name not in _FLAGS or not _FLAGS[name][1]:
        raise bad_request("unsupported")
    return done()


@documented(response=list[dict[str, Any]])
def extensions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List extensions of the web interface: none."""
    return reply([{"javascript": "dispatcher.js"}])


@documented(response=AuthSettingsShape)
def auth(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get how users log in to the web interface: with a password, or at OAuth 2 providers."""
    described = node.oauth_logins.settings.described
    return reply({**described, "enable_uaa": False, "uaa_client_id": "", "uaa_location": ""})


@documented(response=PasswordHashShape)
async def hash_password(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Hash a password, for creating users with `password_hash` and no `hashing_algorithm`."""
    hashed = await asyncio.to_thread(node.default_hash, request.match_info["password"])
    return reply({"ok": b64encode(hashed.salted_hash).decode("ascii")})


@documented(body=PasswordBody, response=PasswordHashShape)
async def hash_password_in_body(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Hash a password that is in the body, and so in no log, as RabbitMQ 4.4 does."""
    fields = await read_fields(request)
    fields.require("password")
    password = fields.get("password")
    if not isinstance(password, str):
        raise bad_request("password must be a string")
    hashed = await asyncio.to_thread(node.default_hash, password)
    return reply({"ok": b64encode(hashed.salted_hash).decode("ascii")})


@documented(query=ListQuery, response=list[AuthAttemptsShape])
async def attempts(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the number of authentication attempts by protocol."""
    _check_node(request, node)
    listing: Listing[tuple[str, AuthAttempts]] = Listing(
        records=node.server.admission_control.attempts.items(),
        view=_attempts,
        columns={"protocol": lambda entry: entry[0]},
        sort_keys=("protocol",),
    )
    return await reply_list(request, listing)


@documented(response=list[AuthAttemptsShape])
def attempts_by_source(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get authentication attempts by user and address: empty, as they are not counted separately."""
    _check_node(request, node)
    return reply([])


def forget_attempts(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Reset the number of authentication attempts."""
    _check_node(request, node)
    node.server.admission_control.forget_attempts()
    return done()


def reset(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Reset the statistics database; does nothing on a single node."""
    if request.match_info.get("node", node.node_name) != node.node_name:
        raise missing()
    return done()


@documented_as(
    Operation(
        body=LoginBody,
        body_type="application/x-www-form-urlencoded",
        responses={200: str, 401: ErrorShape},
    )
)
async def login(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Check a user name and password; unlike RabbitMQ, sets no cookie with them."""
    form = await read_form(request)
    name, password = form.get(b"username"), form.get(b"password")
    credentials = None
    if name is not None and password is not None and b":" not in name:
        credentials = name + b":" + password
    await check_credentials(request, node, credentials)
    return reply("ok")


def _check_node(request: web.Request, node: ManagedNode) -> None:
    if request.match_info["node"] != node.node_name:
        raise missing()


def _flag(name: str) -> JsonObject:
    description, is_there = _FLAGS[name]
    return {
        "name": name,
        "desc": description,
        "doc_url": "",
        "state": "enabled" if is_there else "unavailable",
        "stability": "stable",
        "provided_by": "warren",
    }


def _attempts(entry: tuple[str, AuthAttempts]) -> JsonObject:
    protocol, found = entry
    return {
        "protocol": protocol,
        "auth_attempts": found.succeeded + found.failed,
        "auth_attempts_failed": found.failed,
        "auth_attempts_succeeded": found.succeeded,
    }
