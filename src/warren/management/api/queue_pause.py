"""Pausing and resuming delivery from a queue."""

from typing import TypedDict

from aiohttp import web

from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import run_coroutine
from warren.management.operation import documented
from warren.management.replies import done, put, reply
from warren.management.request_context import request_context


class PauseShape(TypedDict):
    """The state of delivery from a queue."""

    paused: bool


@documented(response=PauseShape)
def pause(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get whether a queue is paused."""
    context = request_context(request, node)
    live = context.services.queue_service.live_queue(context.requester, request.match_info["queue"])
    return reply({"paused": live.is_paused})


async def put_pause(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Pause delivery from a queue; publishing, expiry and acknowledgements continue."""
    return put(is_new=await _paused(request, node, is_paused=True))


async def delete_pause(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Resume delivery from a queue."""
    await _paused(request, node, is_paused=False)
    return done()


async def _paused(request: web.Request, node: ManagedNode, *, is_paused: bool) -> bool:
    context = request_context(request, node)
    name = request.match_info["queue"]
    return await run_coroutine(
        context.services.queue_service.pause_queue(context.requester, name, is_paused=is_paused)
    )
