"""What GETs answer, again and again as it changes: server-sent events, as the WHATWG describes them.

    data: {"path":"/api/overview","status":200,"body":{…}}

Each is asked as the user who is signed in, with every right checked anew; only what has changed is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypedDict

from aiohttp import web
from yarl import URL

from warren.limits import LIVE_PATHS_MAX, LIVE_STREAMS_MAX
from warren.management.describing import Description, described_as
from warren.management.managed import Managed
from warren.management.replies import WHOLE, bad_request, encoded, refused

Ask: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    # A proxy in between is not to wait for more.
    "x-accel-buffering": "no",
}
_API = "/api/"
# Streams are not streamed.
_OURS = "/api/warren/live"
# As often as rates are sampled.
_INTERVAL_S = 5.0
_ASK: web.AppKey[Ask] = web.AppKey("ask")
_STREAMS: web.AppKey[set[object]] = web.AppKey("streams")


class LiveQuery(TypedDict):
    """What is followed."""

    path: list[str]


def allow_live(app: web.Application, ask: Ask) -> None:
    """Have `app` follow what `ask` answers."""
    app[_ASK] = ask
    app[_STREAMS] = set()


@described_as(Description(query=LiveQuery, answers={200: str}, answer_type="text/event-stream"))
async def live(request: web.Request, node: Managed) -> web.StreamResponse:
    """The answers of each `path`, at once and every five seconds, until the client goes."""
    paths = request.query.getall("path", [])
    if not 0 < len(paths) <= LIVE_PATHS_MAX:
        raise bad_request(f"one to {LIVE_PATHS_MAX} paths are wanted, not {len(paths)}")
    for path in paths:
        if not path.startswith(_API) or path.startswith(_OURS):
            raise bad_request(f"'{path}' cannot be followed")
    streams = request.app[_STREAMS]
    if len(streams) >= LIVE_STREAMS_MAX:
        return refused(503, "too_many_streams", f"{LIVE_STREAMS_MAX} streams are followed already")
    response = web.StreamResponse(headers=_HEADERS)
    streams.add(response)
    try:
        await response.prepare(request)
        await _follow(request, response, paths)
    except ConnectionResetError:
        # The client is gone.
        pass
    finally:
        streams.discard(response)
    return response


async def _follow(request: web.Request, response: web.StreamResponse, paths: list[str]) -> None:
    sent: dict[str, bytes] = {}
    while True:
        for path in paths:
            event = await _event(request, path)
            if sent.get(path) != event:
                sent[path] = event
                await response.write(event)
        # A comment, which shows whether the client is there still.
        await response.write(b":\n\n")
        await asyncio.sleep(_INTERVAL_S)


async def _event(request: web.Request, path: str) -> bytes:
    """What a GET of `path` answers whoever made `request`."""
    asked = request.clone(method="GET", rel_url=URL(path, encoded=True))
    asked[WHOLE] = True
    answer = await request.app[_ASK](asked)
    body = answer.body if isinstance(answer, web.Response) else None
    text = body if isinstance(body, bytes) and body else b"null"
    return b'data: {"path":%b,"status":%d,"body":%b}\n\n' % (encoded(path), answer.status, text)
