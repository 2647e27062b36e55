"""Signing in to the web interface and out of it."""

from typing import TypedDict

from aiohttp import web

from warren.management.api.oauth_sessions import ProviderLocationShape
from warren.management.auth import check_credentials
from warren.management.managed_node import ManagedNode
from warren.management.operation import ErrorShape, documented
from warren.management.replies import RequestRefused, done, error_reply, reply
from warren.management.request_body import read_fields
from warren.management.web_sessions import UI_HEADER


class SignInBody(TypedDict):
    """The credentials of a user."""

    username: str
    password: str


@documented(body=SignInBody, responses={204: None, 401: ErrorShape, 403: ErrorShape})
async def sign_in(request: web.Request, node: ManagedNode) -> web.Response:
    """Sign in: create a session of the web interface for a user name and password."""
    if node.oauth_logins.settings.is_password_refused:
        return error_reply(403, "forbidden", "users log in to the web interface with OAuth 2")
    if node.is_basic_auth_refused:
        return error_reply(403, "forbidden", "HTTP access denied: basic auth disabled")
    if UI_HEADER not in request.headers:
        # Without this check a form of another site could sign a user in as another user.
        return error_reply(403, "forbidden", f"sessions are for the web interface, which sends '{UI_HEADER}'")
    fields = await read_fields(request)
    credentials = f"{fields.text('username')}:{fields.text('password')}"
    try:
        user = await check_credentials(request, node, credentials.encode("utf-8", "surrogatepass"))
    except RequestRefused as refusal:
        # With a challenge the browser would open its own dialog for a password.
        refusal.response.headers.pop("www-authenticate", None)
        raise
    response = done()
    node.sessions.begin(user, request, response)
    await node.sessions.stored()
    return response


@documented(responses={200: ProviderLocationShape, 204: None})
async def sign_out(request: web.Request, node: ManagedNode) -> web.Response:
    """Sign out: end the session of the request, if there is one, durably.

    If the user has logged in at a provider, the response tells where the session there ends.
    """
    response = done()
    grant = node.sessions.end(request, response)
    await node.sessions.stored()
    location = "" if grant is None else await grant.end_url()
    if location:
        told = reply({"location": location})
        told.cookies.update(response.cookies)
        return told
    return response
