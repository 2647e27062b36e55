"""What GETs answer, again and again as it changes: server-sent events, as the WHATWG describes them.

    data: {"path":"/api/overview","status":200,"body":{…}}

Each is asked as the user who is signed in, whose rights are looked at anew each time; only what has changed
is sent. What can be followed is what the table of routes answers a GET with JSON: nothing that is a stream.
"""

import asyncio
import socket
from contextlib import suppress
from hashlib import blake2b
from typing import TypedDict

from aiohttp import web
from yarl import URL

from warren.limits_http import (
    LIVE_PATHS_MAX,
    LIVE_SOCKET_SIZE,
)
from warren.management.auth import authenticate, user_of
from warren.management.describing import JSON, Description, described_as, description_of
from warren.management.following import Ask, Following, asking, event_of
from warren.management.interface import PREFIX
from warren.management.managed import Managed
from warren.management.protocol import HttpProtocol
from warren.management.replies import Refused, bad_request

_HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    # A proxy in between is not to wait for more.
    "x-accel-buffering": "no",
}
_API = "/api/"
# As often as rates are sampled, and all streams at the same moments.
_INTERVAL_S = 5.0
_FOLLOWING: web.AppKey[Following] = web.AppKey("following", Following)
# Where a responder keeps the handler of a GET.
GETS = "gets"


class LiveQuery(TypedDict):
    """What is followed."""

    path: list[str]


def allow_live(app: web.Application, ask: Ask) -> None:
    """Have `app` follow what `ask` answers."""
    app[_FOLLOWING] = Following(ask)


@described_as(Description(query=LiveQuery, answers={200: str}, answer_type="text/event-stream"))
async def live(request: web.Request, node: Managed) -> web.StreamResponse:
    """The answers of each `path`, at once and every five seconds, until the client goes.

    A client that does not read what it is sent is let go of.
    """
    paths = request.query.getall("path", [])
    if not 0 < len(paths) <= LIVE_PATHS_MAX:
        raise bad_request(f"one to {LIVE_PATHS_MAX} paths are wanted, not {len(paths)}")
    for path in paths:
        if not await _can_be_followed(request, path):
            raise bad_request(f"'{path}' cannot be followed")
    following, user = request.app[_FOLLOWING], user_of(request)
    with following.stream_of(user.name):
        response = web.StreamResponse(headers=_HEADERS)
        # Who is let go of connects anew.
        response.force_close()
        try:
            await response.prepare(request)
            _narrow(request)
            await _Stream(request, node, response, following).follow(paths)
        except ConnectionResetError:
            # The client is gone.
            pass
        return response


def _narrow(request: web.Request) -> None:
    """Have the kernel hold little for a client that does not read: what waits is to be seen, and counted."""
    connected = request.transport.get_extra_info("socket") if request.transport is not None else None
    if connected is not None:
        with suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LIVE_SOCKET_SIZE)


async def _can_be_followed(request: web.Request, path: str) -> bool:
    """Whether `path`, decoded by the router, leads to a GET of the table that answers with JSON."""
    if not path.startswith(request.app[PREFIX] + _API) or "#" in path:
        return False
    try:
        URL(path, encoded=True)
        found = await request.app.router.resolve(asking(request, path))
    except ValueError:
        return False
    handler = getattr(found.handler, GETS, None)
    return handler is not None and description_of(handler).answer_type == JSON


class _Stream:
    """One client."""

    def __init__(
        self, request: web.Request, node: Managed, response: web.StreamResponse, following: Following
    ) -> None:
        self._request = request
        self._node = node
        self._response = response
        self._following = following
        self._name = user_of(request).name
        # By path, the digest of what was sent last.
        self._sent: dict[str, bytes] = {}

    async def follow(self, paths: list[str]) -> None:
        """Send what `paths` answer until the client goes, or does not read."""
        loop = asyncio.get_running_loop()
        protocol = self._request.protocol
        assert isinstance(protocol, HttpProtocol)
        while not protocol.lost.done():
            for path in paths:
                if not await self._send(path):
                    return
            # A comment, which shows whether the client is there still.
            await self._response.write(b":\n\n")
            await asyncio.wait({protocol.lost}, timeout=_INTERVAL_S - loop.time() % _INTERVAL_S)

    async def _send(self, path: str) -> bool:
        event = await self._event(path)
        digest = blake2b(event, digest_size=16).digest()
        if self._sent.get(path) == digest:
            return True
        with self._following.sending(self._name, len(event)) as may_be_sent:
            if may_be_sent:
                self._sent[path] = digest
                await self._response.write(event)
        return may_be_sent

    async def _event(self, path: str) -> bytes:
        try:
            user = await authenticate(self._request, self._node)
        except Refused as refusal:
            body = refusal.response.body
            text = body if isinstance(body, bytes) and body else b"null"
            return event_of(path, refusal.response.status, text)
        return await self._following.event(self._request, user, path)
