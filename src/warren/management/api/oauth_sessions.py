"""Logging in to the web interface at an OAuth 2 provider, and with a token that the browser brings from it.

    POST /api/warren/session/provider    the address of the provider, to which the page goes
    GET  /js/oidc-oauth/login-callback.html ?code&state
                                         a session, and a redirection to the page
    POST /login  access_token=…          a session as well, if `idp_initiated` is set

The last two have the paths of RabbitMQ, which providers know. Both answer with a redirection to the page
only, and with a word for a failure, never with text of others.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, TypedDict
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from warren.access.authorization_code import CALLBACK_PATH, CodeRefused, ProviderTokens
from warren.access.tokens import is_like_token
from warren.limits_access import LOGIN_LIFETIME_MS
from warren.management.auth import check_credentials
from warren.management.managed_node import ManagedNode
from warren.management.oauth_logins import ProviderGrant, ProviderUnavailable
from warren.management.operation import ErrorShape, doc, documented
from warren.management.replies import RequestRefused, bad_request, error_reply, missing, reply
from warren.management.request_body import read_fields, read_form
from warren.management.web_interface import PREFIX
from warren.management.web_sessions import UI_HEADER, ProviderLogin, is_same_origin
from warren.metadata.users import User

logger = logging.getLogger("warren.login")

# Holds the sealed login while the browser is at the provider.
LOGIN_COOKIE = "warren_login"
# Why a login failed, in words that the page knows. The last is that of RabbitMQ.
_FAILED, _UNAVAILABLE, _REFUSED = "login_failed", "provider_unavailable", "Not_Authorized"
_HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
_TOKEN = "access_token"


class ProviderBody(TypedDict):
    """The resource server whose provider authenticates the user."""

    resource_server: str


class ProviderLocationShape(TypedDict):
    """Where the page continues."""

    location: Annotated[str, doc("An address of the provider.")]


@documented(
    body=ProviderBody,
    responses={
        200: ProviderLocationShape,
        400: ErrorShape,
        403: ErrorShape,
        404: ErrorShape,
        503: ErrorShape,
    },
)
async def begin_login(request: web.Request, node: ManagedNode) -> web.Response:
    """Begin a login at the provider of a resource server, for a browser with the web interface.

    The response tells where the provider is. A cookie binds the login to the browser.
    """
    if UI_HEADER not in request.headers or not is_same_origin(request):
        return error_reply(403, "forbidden", f"logins are for the web interface, which sends '{UI_HEADER}'")
    fields = await read_fields(request)
    server = node.oauth_logins.settings.servers.get(fields.text("resource_server"))
    if server is None:
        raise missing()
    if server.is_idp_initiated:
        return reply({"location": server.provider_url})
    origin = _origin(request)
    try:
        location, sealed = await node.oauth_logins.begin(server, origin + request.app[PREFIX])
    except ProviderUnavailable:
        reason = f"the provider of '{server.label}' does not answer: see the log of the broker"
        return error_reply(503, "service_unavailable", reason)
    response = reply({"location": location})
    response.set_cookie(
        LOGIN_COOKIE,
        sealed,
        max_age=LOGIN_LIFETIME_MS // 1000,
        httponly=True,
        # The provider returns the browser by a link of another site.
        samesite="Lax",
        secure=_is_https(origin),
        path=_callback_path(request),
    )
    return response


def add_oauth_pages(app: web.Application, node: ManagedNode) -> None:
    """Add the paths to which a provider sends a browser."""

    def handler(
        answer: Callable[[web.Request, ManagedNode], Awaitable[web.Response]],
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def respond(request: web.Request) -> web.Response:
            return await answer(request, node)

        return respond

    prefix = app[PREFIX]
    app.router.add_get(prefix + CALLBACK_PATH, handler(_complete_login), allow_head=False)
    app.router.add_get(f"{prefix}/login", handler(_go_home), allow_head=False)
    app.router.add_post(f"{prefix}/login", handler(_login_with_token))


async def _complete_login(request: web.Request, node: ManagedNode) -> web.Response:
    """Begin the session of a browser that comes back from the provider."""
    logins = node.oauth_logins
    sealed = request.cookies.get(LOGIN_COOKIE, "")
    try:
        token, grant = await logins.complete(sealed, request.query)
        response = await _signed_in(request, node, token, grant)
    except CodeRefused as refusal:
        logger.warning("a login to the web interface failed: %s", refusal)
        response = _home(request, _FAILED)
    except ProviderUnavailable:
        response = _home(request, _UNAVAILABLE)
    response.del_cookie(LOGIN_COOKIE, path=_callback_path(request), httponly=True, samesite="Lax")
    return response


async def _go_home(request: web.Request, node: ManagedNode) -> web.Response:
    """Redirect to the page; a token in an address, where it would be logged, is refused as in RabbitMQ."""
    return web.Response(status=405) if _TOKEN in request.query else _home(request)


async def _login_with_token(request: web.Request, node: ManagedNode) -> web.Response:
    """Begin the session of a browser that brings a token from its provider."""
    token = (await read_form(request)).get(_TOKEN.encode())
    if token is None:
        return _home(request)
    server = node.oauth_logins.settings.idp_server
    if server is None:
        logger.warning("a login with a token was refused: no resource server is idp_initiated")
        return _home(request, _REFUSED)
    text = token.decode("utf-8", "surrogateescape")
    grant = ProviderGrant(server, "", ProviderTokens(text), node.now)
    return await _signed_in(request, node, text, grant)


async def _signed_in(
    request: web.Request, node: ManagedNode, token: str, grant: ProviderGrant
) -> web.Response:
    """A redirection to the page, with a session if `token` is accepted."""
    try:
        user = await _user(request, node, token)
    except RequestRefused:
        return _home(request, _REFUSED)
    response = _home(request)
    login = ProviderLogin(grant, f"{request.app[PREFIX]}/api", grant.is_https)
    node.sessions.begin(user, request, response, login)
    await node.sessions.stored()
    return response


async def _user(request: web.Request, node: ManagedNode, token: str) -> User:
    """The user of `token`; raises RequestRefused."""
    if not is_like_token(token):
        # It may be a secret of the provider, which no other backend may see as a password.
        logger.warning("a login to the web interface failed: the access token is no JSON Web Token")
        raise bad_request(_REFUSED)
    return await check_credentials(request, node, b":" + token.encode("utf-8", "surrogateescape"))


def _home(request: web.Request, error: str = "") -> web.Response:
    query = f"?{urlencode({'error': error})}" if error else ""
    return web.Response(status=302, headers={**_HEADERS, "location": f"{request.app[PREFIX]}/{query}"})


def _callback_path(request: web.Request) -> str:
    return request.app[PREFIX] + CALLBACK_PATH


def _origin(request: web.Request) -> str:
    """The origin of the page, which its browser states; raises RequestRefused without one."""
    origin = request.headers.get("origin", "")
    try:
        parts = urlsplit(origin)
    except ValueError:
        parts = urlsplit("")
    if (
        parts.scheme not in ("http", "https")
        or not parts.netloc
        or origin != f"{parts.scheme}://{parts.netloc}"
    ):
        raise bad_request("the header Origin does not have the address of the web interface")
    return origin


def _is_https(origin: str) -> bool:
    return origin.startswith("https:")
