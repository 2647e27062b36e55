"""Changes of the replicas of many quorum queues: all that a node is to have, and where the leaders are."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal, NotRequired, TypedDict

from aiohttp import web

from warren.cluster.membership.leader_balance import leader_transfers
from warren.limits import IMPORTED_AT_ONCE, NAMES_PER_TURN
from warren.limits_cluster import GROUP_CHANGES_MAX
from warren.management.api.replication import node_named, refusal_of_deletion, running_node
from warren.management.listing import next_turn, pieces_of
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose_all
from warren.management.name_filters import NameFilter, PatternError, name_filter
from warren.management.operation import documented
from warren.management.queue_index import IndexedQueue
from warren.management.replies import bad_request, done, reply
from warren.management.request_body import BodyFields, read_fields
from warren.metadata.commands import ChangeQueueMembers, Outcome, Reply
from warren.model.arguments import QUORUM

_OK = "ok"
_EVERYTHING = ".*"
_STRATEGIES = ("all", "even")


class GrowBody(TypedDict):
    """Which queues get a replica on a node; patterns are regular expressions, by default for all names."""

    strategy: Literal["all", "even"]
    vhost_pattern: NotRequired[str]
    queue_pattern: NotRequired[str]


class ShrinkBody(TypedDict, total=False):
    """Which queues have no replica on a node any more; patterns are as for growing."""

    vhost_pattern: str
    queue_pattern: str


class RebalanceBody(TypedDict, total=False):
    """Which leaders move; patterns are regular expressions, by default for all names."""

    vhost_pattern: str
    queue_pattern: str


class MemberChangeShape(TypedDict):
    """What became of one queue: its number of replicas afterwards, and `ok` or the reason."""

    vhost: str
    name: str
    size: int
    result: str


@documented(body=GrowBody, response=list[MemberChangeShape])
async def grow(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Give quorum queues a replica on a node: all, or those with an even number of replicas."""
    fields = await read_fields(request, "strategy")
    strategy = fields.get("strategy")
    if strategy not in _STRATEGIES:
        raise bad_request(
            f"strategy '{strategy}' is not recognised.", message="the strategy is 'all' or 'even'"
        )
    id = running_node(node, request.match_info["node"])
    growing = [
        one
        for one in await _chosen(request, node, fields)
        if not one.record.replica_on(id) and (strategy == "all" or len(one.record.replicas) % 2 == 0)
    ]
    return reply(await _change(node, growing, added=id))


@documented(body=ShrinkBody, response=list[MemberChangeShape])
async def shrink(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Remove the replicas of quorum queues from a node, except of those that have no other one.

    Those stay, too, of queues that could not agree on it since most of their replicas are down.
    """
    fields = await read_fields(request)
    id = node_named(node, request.match_info["node"])
    chosen = [] if id is None else await _chosen(request, node, fields)
    shrinking = [one for one in chosen if one.record.replica_on(id or 0)]
    return reply(await _change(node, shrinking, removed=id or 0))


@documented(body=RebalanceBody)
async def rebalance(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Spread the leaders of quorum queues over the nodes that have replicas of them; other queues stay."""
    fields = await read_fields(request)
    queues = {one.record.number: one for one in await _chosen(request, node, fields)}
    leaders = {number: node.groups.leader_of(one.record) for number, one in queues.items()}
    members = node.metadata.members.by_id
    takes = {id for id, member in members.items() if member.takes_queues}
    moves = leader_transfers(
        {number: leader for number, leader in leaders.items() if leader is not None},
        {number: [id for id, _ in one.record.replicas if id in takes] for number, one in queues.items()},
    )
    for piece in pieces_of(moves, GROUP_CHANGES_MAX):
        await asyncio.gather(
            *(node.groups.transfer(queues[queue].vhost, queues[queue].record, to) for queue, to in piece)
        )
    return done()


async def _chosen(request: web.Request, node: ManagedNode, fields: BodyFields) -> list[IndexedQueue]:
    """The quorum queues whose names, and those of their virtual hosts, match the patterns in `fields`."""
    by_vhost = _pattern(fields, "vhost_pattern")
    by_name = _pattern(fields, "queue_pattern")
    found: list[IndexedQueue] = []
    try:
        vhosts = list(node.metadata.vhosts.by_name)
        fitting = [vhost for vhost, fits in zip(vhosts, by_vhost.fits(vhosts), strict=True) if fits]
        for vhost in fitting:
            for piece in pieces_of(node.queue_index.of_kind(vhost, QUORUM), NAMES_PER_TURN):
                fits = by_name.fits([one.record.name for one in piece])
                found += [one for one, is_fitting in zip(piece, fits, strict=True) if is_fitting]
                await next_turn(request)
    except PatternError as error:
        raise bad_request(str(error)) from None
    return found


def _pattern(fields: BodyFields, name: str) -> NameFilter:
    try:
        return name_filter(fields.text(name, _EVERYTHING), is_pattern=True)
    except PatternError as error:
        raise bad_request(str(error)) from None


async def _change(
    node: ManagedNode, queues: Sequence[IndexedQueue], *, added: int = 0, removed: int = 0
) -> list[MemberChangeShape]:
    """Have the members of `queues` changed, some at a time; return what became of each."""
    results: list[MemberChangeShape] = []
    for piece in pieces_of(queues, IMPORTED_AT_ONCE):
        refusals = [refusal_of_deletion(node, one.record) if removed else "" for one in piece]
        changed = [one for one, refusal in zip(piece, refusals, strict=True) if not refusal]
        replies = iter(await propose_all(node, _commands(changed, added, removed)))
        for one, refusal in zip(piece, refusals, strict=True):
            size = len(one.record.replicas)
            result = refusal or _result(next(replies))
            if result == _OK:
                size += 1 if added else -1
            results.append({"vhost": one.vhost, "name": one.record.name, "size": size, "result": result})
    return results


def _commands(queues: Sequence[IndexedQueue], added: int, removed: int) -> Iterator[ChangeQueueMembers]:
    for one in queues:
        yield ChangeQueueMembers(
            vhost=one.vhost,
            queue=one.record.name,
            number=one.record.number,
            added=(added,) if added else (),
            removed=(removed,) if removed else (),
        )


def _result(found: Reply | BaseException) -> str:
    if isinstance(found, BaseException):
        return str(found)
    if found.outcome is Outcome.DONE:
        return _OK
    return found.text or "the queue was deleted meanwhile"
