"""The replicas of one quorum queue: their state, and changes of the nodes that have one."""

from typing import Any, NotRequired, TypedDict

import msgspec
from aiohttp import web

from warren.management.carried_request import CARRIED
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose
from warren.management.operation import documented
from warren.management.placement import OTHER_ANSWERS
from warren.management.replies import bad_request, done, missing, reply
from warren.management.request_body import read_fields
from warren.management.request_context import request_context
from warren.metadata.commands import ChangeQueueMembers, Outcome
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.records import QueueRecord
from warren.queues.replication_status import ReplicationStatus

# The names of RabbitMQ's command `quorum_status`, which its HTTP API has too.
ReplicaStatusShape = TypedDict(
    "ReplicaStatusShape",
    {
        "Node Name": str,
        "Raft State": str,
        "Membership": str,
        "Last Log Index": int | str,
        "Last Written": int | str,
        "Last Applied": int | str,
        "Commit Index": int | str,
        "Snapshot Index": int | str | None,
        "Term": int | str,
    },
)
ReplicaStatusShape.__doc__ = (
    "The replica of a quorum queue on one node; all but the name and the state are empty if the node has not "
    "answered."
)
_NODE_NAME = "Node Name"
_OK = 200


class ReplicaBody(TypedDict):
    """The node of a replica that is added or deleted."""

    node: str
    # Of RabbitMQ 4: `voter`, or `promotable`, which becomes one as every new replica does.
    membership: NotRequired[str]


@documented(response=list[ReplicaStatusShape])
def status(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the replicas of a quorum queue, with their places in the log of the queue."""
    vhost, record = _queue(request, node)
    if not record.is_quorum:
        raise bad_request(f"Cannot get quorum status of a {record.kind} queue")
    own = node.groups.own_replica(vhost, record)
    rows = {} if own is None else {node.node_name: _status(node.node_name, own)}
    for answer in request.get(OTHER_ANSWERS, ()):
        if answer.head.status == _OK:
            rows |= {row[_NODE_NAME]: row for row in msgspec.json.decode(answer.body)}
    if CARRIED not in request:
        members = {node.name_of(member.node): member.node for member in record.replicas}
        absent = {
            name: _absent(name, "noproc" if node.is_up(id) else "nodedown") for name, id in members.items()
        }
        # Those that are still in the group, and are not to be, come last.
        rows = absent | rows
    return reply(list(rows.values()))


@documented(body=ReplicaBody)
async def add_replica(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Add a node to those that have a replica of a quorum queue; one that has one already is no error.

    The replica votes when it has all messages.
    """
    vhost, record, name = await _asked(request, node)
    id = running_node(node, name)
    if not record.replica_on(id):
        await change_members(node, vhost, record, added=id)
    return done()


@documented(body=ReplicaBody)
async def delete_replica(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete a replica of a quorum queue, except the last one; a node without one is no error.

    Refused while most nodes with a replica are down: the others could not agree that it is deleted.
    """
    vhost, record, name = await _asked(request, node)
    id = node_named(node, name)
    if id is not None and record.replica_on(id):
        refusal = refusal_of_deletion(node, record)
        if refusal:
            raise bad_request("last_node" if len(record.replicas) == 1 else "no_majority", message=refusal)
        await change_members(node, vhost, record, removed=id)
    return done()


def refusal_of_deletion(node: ManagedNode, record: QueueRecord) -> str:
    """Why no replica of a queue can be deleted now; empty if one can be.

    A change of the voters is agreed on by those that vote before it. If they could not, nobody would lead the
    queue any more, also when the nodes are back: those would have no replica then.
    """
    down = [member.node for member in record.replicas if not node.is_up(member.node)]
    if len(record.replicas) == 1:
        return (
            f"queue '{record.name}' has no replica on another node: add one there first, with 'warren queues "
            "add-member', or delete the queue"
        )
    if 2 * len(down) >= len(record.replicas):
        names = ", ".join(sorted(node.name_of(id) for id in down))
        return (
            f"the replicas of queue '{record.name}' have no majority to agree on it: first start one of the "
            f"nodes that are down, which are {names}"
        )
    return ""


async def change_members(
    node: ManagedNode, vhost: str, record: QueueRecord, *, added: int = 0, removed: int = 0
) -> None:
    """Have a node added to or removed from the members of a queue. Raises RequestRefused."""
    command = ChangeQueueMembers(
        vhost=vhost,
        queue=record.name,
        number=record.number,
        added=(added,) if added else (),
        removed=(removed,) if removed else (),
    )
    if (await propose(node, command)).outcome is Outcome.MISSING:
        raise missing(f"queue '{record.name}' in vhost '{vhost}' was deleted meanwhile")


def node_named(node: ManagedNode, name: str) -> int | None:
    """The number of the node `name` of the cluster, or of a former one; raises RequestRefused for others."""
    members = node.metadata.members
    found = members.named(name)
    if found is not None:
        return found.id
    if not members.by_id and name == node.node_name:
        return NODE_ALONE
    if any(removed.name == name for removed in members.removed.values()):
        return None
    raise bad_request("node_not_running", message=_unknown(node, name))


def running_node(node: ManagedNode, name: str) -> int:
    """The number of the node `name`, which is up; raises RequestRefused for others."""
    id = node_named(node, name)
    if id is None:
        raise bad_request("node_not_running", message=_unknown(node, name))
    if not node.is_up(id):
        raise bad_request(
            "node_not_running", message=f"node '{name}' is down: start it first, or choose another one"
        )
    return id


def _unknown(node: ManagedNode, name: str) -> str:
    members = [member.name for member in node.metadata.members.by_id.values()] or [node.node_name]
    return f"the cluster has no node '{name}': its nodes are {', '.join(sorted(members))}"


async def _asked(request: web.Request, node: ManagedNode) -> tuple[str, QueueRecord, str]:
    """The queue, with its virtual host, and the node named by the body; refuses other types of queues."""
    fields = await read_fields(request, "node")
    vhost, record = _queue(request, node)
    if not record.is_quorum:
        # RabbitMQ says so when a member is deleted, too.
        raise bad_request(f"Cannot add members to a {record.kind} queue")
    return vhost, record, fields.text("node")


def _queue(request: web.Request, node: ManagedNode) -> tuple[str, QueueRecord]:
    """The queue in the path, with its virtual host; the user must be allowed to read it."""
    context = request_context(request, node)
    name = request.match_info["queue"]
    context.services.queue_service.live_queue(context.requester, name)
    return context.services.vhost.name, context.records.queues[name]


def _status(name: str, found: ReplicationStatus) -> dict[str, Any]:
    return {
        _NODE_NAME: name,
        "Raft State": found.role,
        "Membership": "voter" if found.is_voter else "non_voter",
        "Last Log Index": found.last_index,
        "Last Written": found.written_index,
        "Last Applied": found.applied_index,
        "Commit Index": found.commit_index,
        "Snapshot Index": found.snapshot_index or None,
        "Term": found.term,
    }


def _absent(name: str, state: str) -> dict[str, Any]:
    """The replica on a node that has not answered, as RabbitMQ shows it."""
    return dict.fromkeys(ReplicaStatusShape.__annotations__, "") | {_NODE_NAME: name, "Raft State": state}
