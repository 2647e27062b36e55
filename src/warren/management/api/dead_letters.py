"""Dead letters over HTTP: which queues may hold some, and the causes of those in a queue."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, TypedDict

from aiohttp import web

from warren.errors import AccessRefused, Undecided
from warren.limits import DEAD_LETTERS_EXAMINED_MAX, DEAD_LETTERS_PER_QUEUE_MAX, SCANNED_PER_TURN
from warren.limits_http import (
    PEEKED_PER_REQUEST_MAX,
)
from warren.management.api.messages import readable_queue, restored
from warren.management.api.peek import query_number
from warren.management.auth import login_vhosts, user_of
from warren.management.cluster_lists import reply_cluster_list
from warren.management.listing import JsonObject, Listing, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import PageQuery, doc, documented, paged
from warren.management.request_context import request_context
from warren.management.views.dead_letters import DeadLetterQueueShape, DeadLettersShape, dead_letters_view
from warren.queues.local import LocalQueue
from warren.vhost.dead_letter_summary import DeadLetterSummary, reachable, scan_dead_letters

FromQuery = TypedDict(
    "FromQuery",
    {
        "from": Annotated[int, doc("Position from which to list: `next` of the previous response.")],
        "columns": Annotated[str, doc("Fields to return, separated by commas: `name,groups`.")],
    },
    total=False,
)


@documented(query=PageQuery, response=paged(DeadLetterQueueShape))
async def dead_letters(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the queues with dead letters, each with causes of death sampled from its messages."""
    if "vhost" in request.match_info:
        vhosts = [vhost_in_path(request, node).name]
    else:
        vhosts = login_vhosts(node, user_of(request))
    found: dict[LocalQueue, DeadLetterSummary] = {}

    async def look(queues: Sequence[LocalQueue]) -> None:
        left = DEAD_LETTERS_EXAMINED_MAX
        for queue in queues:
            found[queue] = await _looked(queue, 0, min(left, DEAD_LETTERS_PER_QUEUE_MAX))
            left -= found[queue].examined

    def view(queue: LocalQueue) -> JsonObject:
        return {
            "name": queue.name,
            "vhost": queue.vhost_name,
            "messages": queue.total_count,
            "messages_ready": queue.message_count,
            "messages_unacknowledged": queue.unacked_count,
            **dead_letters_view(found[queue]),
        }

    listing: Listing[LocalQueue] = Listing(
        records=[queue for vhost in vhosts for queue in await _reachable(request, node, vhost)],
        view=view,
        columns={
            "vhost": lambda queue: queue.vhost_name,
            "name": lambda queue: queue.name,
            "messages": lambda queue: queue.total_count,
            "messages_ready": lambda queue: queue.message_count,
        },
        is_paged=True,
        prepare=look,
        identity=lambda queue: f"{queue.vhost_name}\0{queue.name}",
    )
    return await reply_cluster_list(request, node, listing)


@documented(query=FromQuery, response=DeadLettersShape)
async def dead_letters_of_queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List dead letters of a queue from a position; `next` is where to continue, null at the end."""
    queue = await restored(readable_queue(request_context(request, node), request.match_info["queue"]))
    found = await _looked(queue, query_number(request, "from", 0, 1 << 62), PEEKED_PER_REQUEST_MAX)
    return reply_one(request, {"name": queue.name, "vhost": queue.vhost_name, **dead_letters_view(found)})


async def _reachable(request: web.Request, node: ManagedNode, vhost: str) -> list[LocalQueue]:
    """The queues of a running virtual host that hold messages and that the user may read."""
    services = node.server.vhost_services.get(vhost)
    if services is None:
        return []
    queues: dict[LocalQueue, None] = {}
    for piece in reachable(services.vhost):
        queues.update(piece)
        await asyncio.sleep(0)
    authorizer = services.authorizer(user_of(request))

    def is_readable(queue: LocalQueue) -> bool:
        try:
            authorizer.check_read_queue(queue.name)
        except Undecided:
            raise
        except AccessRefused:
            return False
        return True

    return [
        queue
        for queue in queues
        if (queue.message_count or queue.unacked_count)
        and queue.owner is None
        and not queue.is_deleted
        and is_readable(queue)
    ]


async def _looked(queue: LocalQueue, place: int, examined_max: int) -> DeadLetterSummary:
    found = DeadLetterSummary(place=place)
    for _ in scan_dead_letters(queue, found, examined_max, SCANNED_PER_TURN):
        await asyncio.sleep(0)
    return found
