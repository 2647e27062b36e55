"""Releasing and removing the messages of a quorum queue that exceeded its delivery limit.

They are listed by peeking at the messages in state `quarantined`.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, TypedDict

from aiohttp import web

from warren.limits_http import LISTED_PER_TURN, RETURNED_PER_REQUEST_MAX
from warren.management.api.messages import queue_here, restored
from warren.management.managed_node import ManagedNode
from warren.management.operation import Flag, doc, documented
from warren.management.replies import bad_request, reply
from warren.management.request_body import BodyFields, read_fields
from warren.management.request_context import request_context
from warren.model.arguments import QUORUM
from warren.queues.local import LocalQueue

_POSITION_MAX = (1 << 64) - 1


class QuarantinedBody(TypedDict, total=False):
    """Which quarantined messages: named ones, or all of the queue."""

    positions: Annotated[list[int], doc("Positions as in the response of peeking at quarantined messages.")]
    all: Annotated[Flag, doc("All quarantined messages of the queue; required without `positions`.")]


class ReleasedShape(TypedDict):
    """How many messages were released."""

    released: int
    remaining: Annotated[int, doc("Number of messages that remain, since the queue is full without them.")]
    missing: Annotated[int, doc("Number of `positions` without a quarantined message.")]


class RemovedShape(TypedDict):
    """How many messages were removed."""

    removed: int
    missing: Annotated[int, doc("Number of `positions` without a quarantined message.")]


@documented(body=QuarantinedBody, response=ReleasedShape)
async def release(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Release quarantined messages: they return to their positions, marked as redelivered.

    Each can be delivered again as often as the delivery limit says. A queue that rejects publishes takes no
    more of them than its limits allow.
    """
    queue, positions = await _chosen(request, node)
    released = await _each(queue, positions, queue.release_quarantined)
    remaining = len({*positions}.intersection(queue.quarantined_places()))
    return reply(
        {"released": released, "remaining": remaining, "missing": len(positions) - released - remaining}
    )


@documented(body=QuarantinedBody, response=RemovedShape)
async def remove(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Remove quarantined messages for good."""
    queue, positions = await _chosen(request, node)
    removed = await _each(queue, positions, queue.remove_quarantined)
    return reply({"removed": removed, "missing": len(positions) - removed})


async def _chosen(request: web.Request, node: ManagedNode) -> tuple[LocalQueue, Sequence[int]]:
    """The queue, and the positions of the messages that were asked for."""
    context = request_context(request, node)
    fields = await read_fields(request)
    name = request.match_info["queue"]
    queue = queue_here(context.services.queue_service.configurable_queue(context.requester, name))
    if queue.settings.kind != QUORUM:
        raise bad_request(f"queue '{queue.name}' is not a quorum queue: it has no quarantined messages")
    if "positions" in fields:
        if fields.flag("all"):
            raise bad_request("give either positions or all, not both")
        return await restored(queue), _positions(fields)
    if not fields.flag("all"):
        raise bad_request("give positions or all")
    return queue, (await restored(queue)).quarantined_places()


def _positions(fields: BodyFields) -> list[int]:
    named = fields.get("positions")
    if not isinstance(named, list):
        raise bad_request("positions must be a list of numbers")
    if len(named) > RETURNED_PER_REQUEST_MAX:
        raise bad_request(f"{len(named)} positions are too many: at most {RETURNED_PER_REQUEST_MAX}")
    for each in named:
        if not isinstance(each, int) or isinstance(each, bool) or not 0 <= each <= _POSITION_MAX:
            raise bad_request(f"each of positions must be a number up to {_POSITION_MAX}, not {each!r:.40}")
    return sorted({*named})


async def _each(queue: LocalQueue, positions: Sequence[int], change: Callable[[int], bool]) -> int:
    """Have `change` called for each position, in parts; returns how many there were."""
    done = 0
    for at in range(0, len(positions), LISTED_PER_TURN):
        if queue.is_deleted:
            break
        done += sum(map(change, positions[at : at + LISTED_PER_TURN]))
        queue.pump()
        await asyncio.sleep(0)
    return done
