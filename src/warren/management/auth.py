"""Authentication of HTTP requests against the broker's users, and authorization by route.

Rights and texts are RabbitMQ's. An unsupported method is refused before authentication; whether an object
exists is only revealed to users who may see it.
"""

import base64
import binascii
from collections.abc import Callable
from enum import Enum

from aiohttp import web

from warren.access.grants import ExternalUser, grants_of
from warren.access.web_grants import for_request
from warren.errors import AmqpError, ResourceError
from warren.limits import TOKEN_SIZE_MAX
from warren.management.carried_request import CARRIED, requester_of
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import ACTING_USER
from warren.management.replies import RequestRefused, error_reply, not_authorised
from warren.metadata.refusal_check import RefusalCheck
from warren.metadata.users import User
from warren.model.decided import decided
from warren.session.peer import Peer

ADMINISTRATOR = "administrator"
MONITORING = "monitoring"
POLICYMAKER = "policymaker"
MANAGEMENT = "management"

# Users with one of these tags may use the management API, as in RabbitMQ.
_TAGS = frozenset({ADMINISTRATOR, MONITORING, POLICYMAKER, MANAGEMENT})
# Tags whose users see the objects of all users, and tags whose users set policies.
_MONITOR_TAGS = frozenset({ADMINISTRATOR, MONITORING})
_POLICY_TAGS = frozenset({ADMINISTRATOR, POLICYMAKER})
_CHALLENGE = {"www-authenticate": 'Basic realm="RabbitMQ Management"'}
_CREDENTIALS_SIZE_MAX = 4 * TOKEN_SIZE_MAX // 3 + 1024

_NOT_OF_VHOST = "User not authorised to access virtual host"
_NOT_OF_OBJECT = "User not authorised to access object"


class Right(Enum):
    """The right that a route requires."""

    # No authentication.
    ANYBODY = "anybody"
    # Any user who may use the management API.
    USER = "user"
    MONITOR = "monitor"
    ADMINISTRATOR = "administrator"
    # Permissions in the route's virtual host, or the tag administrator (also monitoring if visible).
    VHOST = "vhost"
    VISIBLE_VHOST = "visible vhost"
    # The tag policymaker or administrator, for the route's virtual host or for the whole broker.
    POLICIES = "policies"
    GLOBAL_PARAMETERS = "global parameters"


def check_scheme(request: web.Request, node: ManagedNode) -> None:
    """Raise RequestRefused for basic authentication if `management.disable_basic_auth` is set."""
    scheme = request.headers.get("authorization", "").partition(" ")[0]
    if node.is_basic_auth_refused and scheme.lower() == "basic":
        raise not_authorised("HTTP access denied: basic auth disabled")


async def authorize(request: web.Request, node: ManagedNode, right: Right) -> None:
    """Set `request["user"]` to the authenticated user; raises RequestRefused if `right` is missing."""
    if right is Right.ANYBODY:
        return
    user = for_request(await authenticate(request, node))
    user = await decided(
        lambda: _checked(node, user, lambda current: _check_right(request, node, current, right))
    )
    request["user"] = user
    ACTING_USER.set(user.identity)


def _check_right(request: web.Request, node: ManagedNode, user: User, right: Right) -> None:
    """Raise RequestRefused unless `user` has `right`."""
    vhost = request.match_info.get("vhost")
    match right:
        case Right.USER:
            return
        case Right.MONITOR:
            _check(is_monitor(user), "Not monitor user")
        case Right.ADMINISTRATOR:
            _check(is_administrator(user), "Not administrator user")
        case Right.VHOST:
            _check(is_administrator(user) or _is_of_vhost(node, user, vhost), _NOT_OF_VHOST)
        case Right.VISIBLE_VHOST:
            _check(is_monitor(user) or _is_of_vhost(node, user, vhost), _NOT_OF_VHOST)
        case Right.POLICIES:
            is_of_vhost = is_administrator(user) or _is_of_vhost(node, user, vhost)
            _check(is_policymaker(user) and is_of_vhost, _NOT_OF_OBJECT)
        case Right.GLOBAL_PARAMETERS:
            _check(is_policymaker(user), _NOT_OF_OBJECT)


async def authenticate(request: web.Request, node: ManagedNode) -> User:
    """The user of the request; raises RequestRefused if they may not use the management API."""
    carried = request.get(CARRIED)
    if carried is not None:
        # The node that the client is connected to has authenticated the user; the rights are checked again.
        ask = node.server.admission_control.ask_web_server
        requester = requester_of(carried.user, node.metadata, ask)
        if requester is None and await RefusalCheck(node.metadata, node.proposals).is_outdated(0):
            requester = requester_of(carried.user, node.metadata, ask)
        if requester is None:
            raise not_authorised("Not management user")
        return await _checked(node, requester, _check_tags)
    header = request.headers.get("authorization")
    if header is None:
        await node.sessions.renew(request, node.server.admission_control.renewed)
        user = node.sessions.user_of(request, node.metadata.users.by_name)
        if user is None:
            raise _unauthenticated(request, node)
        return await _checked(node, user, _check_tags)
    return await check_credentials(request, node, _credentials(header))


async def check_credentials(request: web.Request, node: ManagedNode, credentials: bytes | None) -> User:
    """The user with the credentials `name:password`; raises RequestRefused if they are not accepted."""
    if credentials is None:
        raise _login_failed()
    try:
        user = await node.server.admission_control.authenticate(
            "PLAIN",
            b"\x00" + credentials.replace(b":", b"\x00", 1),
            peer_of(request),
            protocol="http",
        )
    except ResourceError:
        raise RequestRefused(error_reply(503, "service_unavailable", "too many logins at once")) from None
    except AmqpError:
        raise _login_failed() from None
    return await _checked(node, user, _check_tags)


def user_of(request: web.Request) -> User:
    """The authenticated user of the request; only after `authorize`."""
    user: User = request["user"]
    return user


def is_administrator(user: User) -> bool:
    """True if `user` has the tag administrator."""
    return ADMINISTRATOR in user.tags


def is_monitor(user: User) -> bool:
    """True if `user` may see objects of other users: tag monitoring or administrator."""
    return bool(_MONITOR_TAGS.intersection(user.tags))


def is_policymaker(user: User) -> bool:
    """True if `user` may set policies and parameters: tag policymaker or administrator."""
    return bool(_POLICY_TAGS.intersection(user.tags))


def check_owner(request: web.Request, owner: str) -> None:
    """Raise RequestRefused unless the user has the identity `owner` or is an administrator."""
    user = user_of(request)
    _check(is_administrator(user) or user.identity == owner, _NOT_OF_OBJECT)


def check_visible(request: web.Request, owner: str) -> None:
    """Raise RequestRefused unless the user has the identity `owner` or may see objects of other users."""
    user = user_of(request)
    _check(is_monitor(user) or user.identity == owner, _NOT_OF_OBJECT)


def login_vhosts(node: ManagedNode, user: User) -> list[str]:
    """The virtual hosts in which `user` has permissions; all of them for administrators."""
    return list(node.metadata.vhosts.by_name) if is_administrator(user) else permitted_vhosts(node, user)


def permitted_vhosts(node: ManagedNode, user: User) -> list[str]:
    """The virtual hosts in which `user` has permissions, and could open connections."""
    granted = grants_of(node.metadata, user)
    return [name for name in node.metadata.vhosts.by_name if granted.permission(name) is not None]


def visible_vhosts(node: ManagedNode, user: User) -> list[str]:
    """The virtual hosts that `user` may list."""
    return list(node.metadata.vhosts.by_name) if is_monitor(user) else login_vhosts(node, user)


def _is_of_vhost(node: ManagedNode, user: User, vhost: str | None) -> bool:
    """True if `user` has permissions in `vhost`, or if `vhost` does not exist (404 follows)."""
    if vhost is None or vhost not in node.metadata.vhosts.by_name:
        return True
    return grants_of(node.metadata, user).permission(vhost) is not None


def _check(is_allowed: bool, reason: str) -> None:
    if not is_allowed:
        raise not_authorised(reason)


async def _checked(node: ManagedNode, user: User, check: Callable[[User], None]) -> User:
    """`user` if `check` raises no RequestRefused; another node may have just given the right to do it."""
    index = node.metadata.index
    try:
        check(user)
    except RequestRefused:
        is_outdated = await RefusalCheck(node.metadata, node.proposals).is_outdated(index)
        # What a token or a directory grants is not in the metadata.
        known = user if isinstance(user, ExternalUser) else node.metadata.users.by_name.get(user.name)
        if known is None or not is_outdated:
            raise
        user = known
        check(user)
    return user


def _check_tags(user: User) -> None:
    """Raise RequestRefused without a tag of the management API."""
    _check(bool(_TAGS.intersection(user.tags)), "Not management user")


def _unauthenticated(request: web.Request, node: ManagedNode) -> RequestRefused:
    """The reply without credentials; scripts get no challenge, for which browsers open a dialog."""
    if node.is_basic_auth_refused:
        return not_authorised("HTTP access denied: no credentials")
    if request.headers.get("sec-fetch-dest") == "empty":
        return not_authorised("no user is signed in")
    return RequestRefused(web.Response(status=401, headers=_CHALLENGE))


def _login_failed() -> RequestRefused:
    response = error_reply(401, "not_authorized", "Login failed")
    response.headers.update(_CHALLENGE)
    return RequestRefused(response)


def _credentials(header: str) -> bytes | None:
    """`user:password` of a Basic header; of a Bearer header, the token as password of an empty name."""
    scheme, _, encoded = header.partition(" ")
    if len(encoded) > _CREDENTIALS_SIZE_MAX:
        return None
    if scheme.lower() == "bearer":
        return b":" + encoded.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() != "basic":
        return None
    try:
        credentials = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return credentials if b":" in credentials and b"\x00" not in credentials else None


def peer_of(request: web.Request) -> Peer:
    """The addresses and ports of both ends of the connection of `request`."""
    transport = request.transport
    client = transport.get_extra_info("peername") if transport else None
    server = transport.get_extra_info("sockname") if transport else None
    client, server = client or ("0.0.0.0", 0), server or ("0.0.0.0", 0)
    return Peer(host=client[0], port=client[1], server_host=server[0], server_port=server[1])
