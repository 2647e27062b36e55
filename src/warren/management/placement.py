"""Which node of the cluster handles a request: this one, or the one that has the object it is about.

Lists of what all nodes have are made here from their parts, see `cluster_lists`.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from inspect import isawaitable
from typing import TypeAlias

from aiohttp import web

from warren.management.cluster_nodes import NodeNotAnswering
from warren.management.managed_node import ManagedNode
from warren.management.node_requests import (
    NodeAnswer,
    carried,
    fetch,
    gather_answers,
    not_answering,
    other_nodes,
    relay,
    respond,
)
from warren.management.replies import RequestRefused, error_reply, not_found
from warren.metadata.records import MemberRecord, QueueRecord
from warren.metadata.vhosts import VhostMetadata

Handler: TypeAlias = Callable[[web.Request, ManagedNode], web.StreamResponse | Awaitable[web.StreamResponse]]

_NOT_FOUND = 404
# The answers of a node that has no part of an object: it is another user's, does not exist, or cannot exist.
_WITHOUT_PART = (403, _NOT_FOUND, 501)
# The answers of the other nodes to a request that all nodes handle, for its handler.
OTHER_ANSWERS = "other_answers"
_ALIVENESS_QUEUE = "aliveness-test"


class Place(Enum):
    """Where a request is handled."""

    # At this node: what it is about is in the metadata, or the handler asks the other nodes itself.
    HERE = "here"
    # At the home of the queue in the path, or at the node that leads its replicas.
    QUEUE = "queue"
    # At the home of the queue of the lease in the path.
    LEASE = "lease"
    # At the home of the queue that tests whether a virtual host is alive.
    ALIVENESS = "aliveness"
    # At the node that is named in the path.
    NODE = "node"
    # At the node that knows the object in the path: one of which only that node has heard.
    HOLDER = "holder"
    # At all nodes, since each may have objects that are in the path together.
    ALL = "all"
    # At all nodes, of which some have a part of the object, and the others refuse it.
    PARTS = "parts"


async def handle_at(
    place: Place, request: web.Request, node: ManagedNode, handler: Handler
) -> web.StreamResponse:
    """The response to `request`, which `handler` makes at the node where it belongs."""
    others = [] if place is Place.HERE else other_nodes(request, node)
    if not others:
        return await _here(request, node, handler)
    match place:
        case Place.HOLDER:
            return await _at_holder(request, node, handler, others)
        case Place.ALL:
            request[OTHER_ANSWERS] = await _at_all(request, node, others)
            return await _here(request, node, handler)
        case Place.PARTS:
            return await _at_parts(request, node, handler, others)
        case Place.NODE:
            named = [member for member in others if member.name == request.match_info.get("node")]
            if not named or not named[0].is_up:
                return await _here(request, node, handler)
            return await _at(request, node, named[0])
        case _:
            found = _queue_of(place, request, node)
            if (
                found is None
                or node.is_own(node.home_of(found[1]))
                or _is_deleting_lost(request, node, found[1])
            ):
                return await _here(request, node, handler)
            return await relay_to_home(request, node, *found)


def _is_deleting_lost(request: web.Request, node: ManagedNode, record: QueueRecord) -> bool:
    """True if a queue is to be deleted whose home was forgotten: any node can do that."""
    return request.method == "DELETE" and record.home in node.metadata.members.removed


async def _here(request: web.Request, node: ManagedNode, handler: Handler) -> web.StreamResponse:
    answer = handler(request, node)
    return await answer if isawaitable(answer) else answer


async def _at(request: web.Request, node: ManagedNode, to: MemberRecord) -> web.StreamResponse:
    try:
        return await relay(request, node, to)
    except NodeNotAnswering as error:
        return not_answering(error)


async def relay_to_home(
    request: web.Request, node: ManagedNode, vhost: str, record: QueueRecord
) -> web.StreamResponse:
    """The response of the home of a queue to `request`; 404 if it is not there."""
    home = node.metadata.members.by_id.get(node.home_of(record))
    try:
        if home is not None:
            return await relay(request, node, home)
    except NodeNotAnswering as error:
        if not error.is_away:
            return not_answering(error)
    return _queue_down(request, node, vhost, record)


def _queue_down(request: web.Request, node: ManagedNode, vhost: str, record: QueueRecord) -> web.Response:
    """The response to a request for a queue whose home is not there, as RabbitMQ 3.10.8 makes it."""
    home = node.name_of(record.home)
    text = f"home node '{home}' of durable queue '{record.name}' in vhost '{vhost}' is down or inaccessible"
    if request.method == "POST":
        return error_reply(_NOT_FOUND, "not_found", f"NOT_FOUND - {text}")
    return not_found(text)


async def _at_holder(
    request: web.Request, node: ManagedNode, handler: Handler, others: Sequence[MemberRecord]
) -> web.StreamResponse:
    """The response of the node that knows the object; 404 if none does."""
    try:
        here = await _here(request, node, handler)
    except RequestRefused as refusal:
        here = refusal.response
    if here.status != _NOT_FOUND:
        return here
    asked = carried(request, node)
    answers = await gather_answers(request, others, [fetch(node, to, asked) for to in others])
    found = [answer for _, answer in answers if answer.head.status != _NOT_FOUND]
    return respond(found[0]) if found else here


async def _at_all(
    request: web.Request, node: ManagedNode, others: Sequence[MemberRecord]
) -> list[NodeAnswer]:
    """Have all other nodes handle the request as well; return their answers."""
    asked = carried(request, node)
    answers = await gather_answers(request, others, [fetch(node, to, asked) for to in others])
    return [answer for _, answer in answers]


async def _at_parts(
    request: web.Request, node: ManagedNode, handler: Handler, others: Sequence[MemberRecord]
) -> web.StreamResponse:
    """The response of a node that could not handle its part; else of one that could, else of this one."""
    answers: list[web.StreamResponse] = [respond(answer) for answer in await _at_all(request, node, others)]
    try:
        here = await _here(request, node, handler)
    except RequestRefused as refusal:
        here = refusal.response
    having = [answer for answer in (here, *answers) if answer.status not in _WITHOUT_PART]
    return max(having, key=lambda answer: answer.status, default=here)


def _queue_of(place: Place, request: web.Request, node: ManagedNode) -> tuple[str, QueueRecord] | None:
    """The queue at whose home the request is handled, with its virtual host; None if there is none."""
    if place is Place.LEASE:
        for vhost in node.metadata.vhosts.by_name.values():
            lease = vhost.topology.leases.by_id.get(request.match_info["lease"])
            if lease is not None:
                return _queue_named(vhost, lease.queue)
        return None
    found = node.metadata.vhost(request.match_info["vhost"])
    if found is None:
        return None
    return _queue_named(found, _ALIVENESS_QUEUE if place is Place.ALIVENESS else request.match_info["queue"])


def _queue_named(vhost: VhostMetadata, name: str) -> tuple[str, QueueRecord] | None:
    record = vhost.topology.queues.get(name)
    return None if record is None else (vhost.name, record)
