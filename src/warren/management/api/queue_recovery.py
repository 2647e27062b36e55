"""Recovering a quorum queue whose data on disk may be incomplete, or that has lost its majority for good."""

from typing import Annotated, Literal, NotRequired, TypedDict

from aiohttp import web
from msgspec.structs import asdict

from warren.management.api.losses import LossShape
from warren.management.api.messages import queue_here, restored
from warren.management.managed_node import ManagedNode
from warren.management.operation import Flag, doc, documented
from warren.management.replies import bad_request, reply
from warren.management.request_body import read_fields
from warren.management.request_context import request_context
from warren.model.arguments import QUORUM
from warren.queues.vhost_queue import VhostQueue

_LEFT_ALONE = "half of the nodes with a replica, or more, were removed from the cluster: it has no majority"


class RecoveryShape(TypedDict):
    """What is readable of a quorum queue, and what is missing."""

    state: Annotated[
        Literal["running", "down", "minority"],
        doc("`minority`: too many nodes with a replica were removed from the cluster."),
    ]
    reason: NotRequired[Annotated[str, doc("Why it does not run, as far as it does not.")]]
    messages: Annotated[int, doc("Ready messages; of a queue that does not run, those that are here.")]
    message_bytes: int
    term: int
    last_index: Annotated[int, doc("The last entry of its log that is readable.")]
    commit_index: int
    losses: Annotated[list[LossShape], doc("Losses of its virtual host that may concern it.")]


class RecoveryBody(TypedDict):
    """Accepts the loss."""

    accept_loss: Annotated[
        Flag, doc("Must be true: messages that are not here, or not readable, are given up.")
    ]


@documented(response=RecoveryShape)
def recoverable(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Show what is readable of a quorum queue, and what may be missing."""
    return reply(_report(node, _queue(request, node)))


@documented(body=RecoveryBody, response=RecoveryShape)
async def recover(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Recover a quorum queue that is down, or whose majority was removed: it continues with what is here.

    All of its messages are marked as redelivered. The answer follows when the queue is running.
    """
    fields = await read_fields(request, "accept_loss")
    queue = _queue(request, node)
    if not fields.flag("accept_loss"):
        raise bad_request(
            "accept_loss must be true: messages that are not here, or not readable, are given up"
        )
    queue.recover()
    return reply(_report(node, await restored(queue_here(queue))))


def _queue(request: web.Request, node: ManagedNode) -> VhostQueue:
    context = request_context(request, node)
    queue = context.services.queue_service.configurable_queue(context.requester, request.match_info["queue"])
    if queue.settings.kind != QUORUM:
        raise bad_request(f"queue '{queue.name}' is not a quorum queue: it is served around damage")
    return queue


def _report(node: ManagedNode, queue: VhostQueue) -> dict[str, object]:
    status = queue.replication_status()
    assert status is not None
    losses = [
        loss
        for loss in node.losses()
        if loss.vhost == queue.vhost_name and (not loss.queues or queue.name in loss.queues)
    ]
    state, reason = "down" if queue.is_down else "running", status.untrusted
    if queue.is_left_alone:
        state, reason = "minority", _LEFT_ALONE
    return {
        "state": state,
        **({"reason": reason} if reason else {}),
        "messages": queue.message_count if state == "running" else status.readable_count,
        "message_bytes": queue.ready_bytes if state == "running" else status.readable_bytes,
        "term": status.term,
        "last_index": status.last_index,
        "commit_index": status.commit_index,
        "losses": [asdict(loss) for loss in losses],
    }
