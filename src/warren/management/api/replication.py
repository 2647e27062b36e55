"""The replicas of quorum queues: their state, and changes of the members, of which a single node has none."""

from typing import Any, TypedDict

from aiohttp import web

from warren.management.managed_node import ManagedNode
from warren.management.operation import documented
from warren.management.replies import bad_request, done, reply
from warren.management.request_body import read_fields
from warren.management.request_context import request_context
from warren.queues.local import LocalQueue
from warren.queues.replication_status import ReplicationStatus

# The names of RabbitMQ's command `quorum_status`, which its HTTP API has too.
ReplicaStatusShape = TypedDict(
    "ReplicaStatusShape",
    {
        "Node Name": str,
        "Raft State": str,
        "Membership": str,
        "Last Log Index": int,
        "Last Written": int,
        "Last Applied": int,
        "Commit Index": int,
        "Snapshot Index": int | None,
        "Term": int,
    },
)
ReplicaStatusShape.__doc__ = "The replica of a quorum queue on one node."


class ReplicaBody(TypedDict):
    """The node of a replica that is added or deleted."""

    node: str


@documented(response=list[ReplicaStatusShape])
def status(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the replicas of a quorum queue, with their places in the log of the queue."""
    queue = _queue(request, node)
    found = queue.replication_status()
    if found is None:
        raise bad_request(f"Cannot get quorum status of a {queue.settings.kind} queue")
    return reply([_status(node, found)])


@documented(body=ReplicaBody)
async def add_replica(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Add a replica to a quorum queue; the only node has one already, and others do not run."""
    if await _node_of(request, node) != node.node_name:
        raise bad_request("node_not_running")
    return done()


@documented(body=ReplicaBody)
async def delete_replica(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete a replica of a quorum queue, except the last one; a node without one is no error."""
    if await _node_of(request, node) == node.node_name:
        raise bad_request("last_node")
    return done()


async def _node_of(request: web.Request, node: ManagedNode) -> Any:
    """The node named by the body; refuses a queue that is not replicated."""
    fields = await read_fields(request, "node")
    queue = _queue(request, node)
    if queue.replication_status() is None:
        # RabbitMQ says so when a member is deleted, too.
        raise bad_request(f"Cannot add members to a {queue.settings.kind} queue")
    return fields.get("node")


def _queue(request: web.Request, node: ManagedNode) -> LocalQueue:
    context = request_context(request, node)
    return context.services.queue_service.live_queue(context.requester, request.match_info["queue"])


def _status(node: ManagedNode, found: ReplicationStatus) -> dict[str, object]:
    return {
        "Node Name": node.node_name,
        "Raft State": found.role,
        "Membership": "voter" if found.is_voter else "non_voter",
        "Last Log Index": found.last_index,
        "Last Written": found.written_index,
        "Last Applied": found.applied_index,
        "Commit Index": found.commit_index,
        "Snapshot Index": found.snapshot_index or None,
        "Term": found.term,
    }
