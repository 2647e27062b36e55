"""Queues that hand nothing out for as long as somebody says so."""

from typing import TypedDict

from aiohttp import web

from warren.management.asking import asking
from warren.management.describing import described
from warren.management.managed import Managed
from warren.management.proposing import ended
from warren.management.replies import done, put, reply


class PauseShape(TypedDict):
    """Whether a queue is paused."""

    paused: bool


@described(gives=PauseShape)
def pause(request: web.Request, node: Managed) -> web.StreamResponse:
    """Whether a queue is paused."""
    asks = asking(request, node)
    live = asks.domain.declaring.live_queue(asks.requester, request.match_info["queue"])
    return reply({"paused": live.is_paused})


async def put_pause(request: web.Request, node: Managed) -> web.StreamResponse:
    """Pause a queue: nobody is handed messages, which go on to come, to expire and to be settled."""
    return put(is_new=await _paused(request, node, is_paused=True))


async def delete_pause(request: web.Request, node: Managed) -> web.StreamResponse:
    """Let a queue go on."""
    await _paused(request, node, is_paused=False)
    return done()


async def _paused(request: web.Request, node: Managed, *, is_paused: bool) -> bool:
    asks = asking(request, node)
    name = request.match_info["queue"]
    return await ended(asks.domain.declaring.pause_queue(asks.requester, name, is_paused=is_paused))
