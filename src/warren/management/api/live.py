"""Responses of GET requests as a stream of server-sent events (WHATWG HTML), sent when they change.

    data: {"path":"/api/overview","status":200,"body":{…}}
    data: {"path":"/api/overview","status":200,"nodes_missing":["second@host"],"body":{…}}

The second form is that of a response without nodes that have not answered.
Each request is made as the signed-in user, whose rights are checked again each time; a response is sent only
if it differs from the last one of its path. A path can be followed if its GET returns JSON.
"""

import asyncio
import socket
from contextlib import suppress
from hashlib import blake2b
from typing import Annotated, TypedDict

from aiohttp import web
from yarl import URL

from warren.limits_http import (
    LIVE_PATHS_MAX,
    LIVE_SOCKET_SIZE,
)
from warren.management.auth import authenticate, user_of
from warren.management.event_streams import EventStreams, Fetch, format_event, get_request
from warren.management.http_protocol import HttpProtocol
from warren.management.managed_node import ManagedNode
from warren.management.operation import JSON, Operation, doc, documented_as, operation_of
from warren.management.replies import RequestRefused, bad_request
from warren.management.web_interface import PREFIX

_HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    # Tells a reverse proxy not to buffer events.
    "x-accel-buffering": "no",
}
_API = "/api/"
# The interval at which rates are sampled; all streams send at the same moments.
_INTERVAL_S = 5.0
_EVENT_STREAMS: web.AppKey[EventStreams] = web.AppKey("following", EventStreams)
# The attribute of a responder that holds its handler of GET.
GETS = "gets"


class LiveQuery(TypedDict):
    """The paths whose responses are streamed."""

    path: Annotated[list[str], doc("A path of this API with its query; may be repeated.")]


def add_live(app: web.Application, ask: Fetch) -> None:
    """Make `app` stream the responses that `ask` returns."""
    app[_EVENT_STREAMS] = EventStreams(ask)


@documented_as(Operation(query=LiveQuery, responses={200: str}, response_type="text/event-stream"))
async def live(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Stream the responses of each `path` as server-sent events, at once and every five seconds.

    A client that does not read its events is disconnected.
    """
    paths = request.query.getall("path", [])
    if not 0 < len(paths) <= LIVE_PATHS_MAX:
        raise bad_request(f"give 1 to {LIVE_PATHS_MAX} parameters path, not {len(paths)}")
    for path in paths:
        if not await _is_followable(request, path):
            raise bad_request(f"'{path}' cannot be streamed: give a path of a GET request that returns JSON")
    event_streams, user = request.app[_EVENT_STREAMS], user_of(request)
    with event_streams.open_stream(user.identity):
        response = web.StreamResponse(headers=_HEADERS)
        # A client that is disconnected because it does not read has to open a new connection.
        response.force_close()
        try:
            await response.prepare(request)
            _shrink_send_buffer(request)
            await _EventStream(request, node, response, event_streams).follow(paths)
        except ConnectionResetError:
            # The client has disconnected.
            pass
        return response


def _shrink_send_buffer(request: web.Request) -> None:
    """Limit the kernel's send buffer, so that unread events of a client are visible and counted."""
    connected = request.transport.get_extra_info("socket") if request.transport is not None else None
    if connected is not None:
        with suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LIVE_SOCKET_SIZE)


async def _is_followable(request: web.Request, path: str) -> bool:
    """True if `path` matches a GET route that returns JSON."""
    if not path.startswith(request.app[PREFIX] + _API) or "#" in path:
        return False
    try:
        URL(path, encoded=True)
        found = await request.app.router.resolve(get_request(request, path))
    except ValueError:
        return False
    handler = getattr(found.handler, GETS, None)
    return handler is not None and operation_of(handler).response_type == JSON


class _EventStream:
    """The event stream of one client."""

    def __init__(
        self,
        request: web.Request,
        node: ManagedNode,
        response: web.StreamResponse,
        event_streams: EventStreams,
    ) -> None:
        self._request = request
        self._node = node
        self._response = response
        self._following = event_streams
        self._identity = user_of(request).identity
        # The digest of the last event sent, by path.
        self._sent: dict[str, bytes] = {}

    async def follow(self, paths: list[str]) -> None:
        """Send the responses of `paths` until the client disconnects or stops reading."""
        loop = asyncio.get_running_loop()
        protocol = self._request.protocol
        assert isinstance(protocol, HttpProtocol)
        while not protocol.lost.done():
            for path in paths:
                if not await self._send(path):
                    return
            # Writing a comment line detects a client that has disconnected.
            await self._response.write(b":\n\n")
            await asyncio.wait({protocol.lost}, timeout=_INTERVAL_S - loop.time() % _INTERVAL_S)

    async def _send(self, path: str) -> bool:
        event = await self._event(path)
        digest = blake2b(event, digest_size=16).digest()
        if self._sent.get(path) == digest:
            return True
        with self._following.reserve(self._identity, len(event)) as may_be_sent:
            if may_be_sent:
                self._sent[path] = digest
                await self._response.write(event)
        return may_be_sent

    async def _event(self, path: str) -> bytes:
        try:
            user = await authenticate(self._request, self._node)
        except RequestRefused as refusal:
            body = refusal.response.body
            text = body if isinstance(body, bytes) and body else b"null"
            return format_event(path, refusal.response.status, text)
        return await self._following.event(self._request, user, path)
