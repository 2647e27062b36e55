"""Queues: lists, and single queues with their consumers."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec
from aiohttp import web

from warren.management.api.peek import channels_of
from warren.management.auth import login_vhosts, user_of
from warren.management.carried_request import CARRIED, CarriedRequest, ListPart
from warren.management.cluster_lists import consumers_at, reply_part
from warren.management.cluster_queues import ClusterQueues, own_queues, queue_id, queues_with
from warren.management.listing import JsonObject, Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.node_requests import other_nodes
from warren.management.operation import ColumnsQuery, PageQuery, doc, documented, paged
from warren.management.placement import relay_to_home
from warren.management.queue_index import IndexedQueue, find_policies
from warren.management.replies import missing, reply
from warren.management.views.connections import stream_connections
from warren.management.views.consumers import (
    consumer_view,
    consumers_of,
    stream_consumers_on,
    stream_subscriber_view,
)
from warren.management.views.queue_columns import DECLARED, EXACT, FIELDS, queue_columns
from warren.management.views.queues import (
    QueueShape,
    declared_queue_view,
    is_home_down,
    live_queue,
    queue_view,
    whole_queue_view,
)
from warren.management.views.stats import SamplesQuery, sample_ranges
from warren.queues.vhost_queue import VhostQueue

_OK = 200
_CONSUMERS = "consumer_details"
# Columns whose values each node shows of all queues.
_DECLARED_EXACT = EXACT & DECLARED - {"state"}
# Fields for which the policies of the queue must be found first.
_OF_POLICIES = ("policy", "operator_policy", "effective_policy_definition")


class _Stats(SamplesQuery, total=False):
    disable_stats: Annotated[bool, doc("Return only the declared properties, without statistics.")]


class QueueQuery(ColumnsQuery, _Stats, total=False):
    """Which fields of a queue are returned."""


class QueuesQuery(PageQuery, _Stats, total=False):
    """How a list of queues is sorted, filtered and paged."""

    enable_queue_totals: Annotated[bool, doc("With `disable_stats`: return the numbers of messages also.")]


@documented(query=QueuesQuery, response=paged(QueueShape))
async def of_user(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the queues that a user has declared, of virtual hosts that the user of the request may use."""
    return await queues(request, node)


@documented(query=QueuesQuery, response=paged(QueueShape))
async def queues(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the queues of a virtual host, or of all in which the user has permissions."""
    if "vhost" in request.match_info:
        vhosts = [vhost_in_path(request, node)]
    else:
        vhosts = [node.metadata.vhosts.by_name[name] for name in login_vhosts(node, user_of(request))]
    records: list[IndexedQueue] = []
    for vhost in sorted(vhosts, key=lambda vhost: vhost.name):
        found = node.queue_index.of(vhost)
        records = records + found if records else found
    if "user" in request.match_info:
        records = [queue for queue in records if queue.record.user == request.match_info["user"]]
    asked: CarriedRequest | None = request.get(CARRIED)
    part = ListPart.NONE if asked is None else asked.part
    if asked is not None and part is ListPart.ROWS:
        of_user = {vhost.name for vhost in vhosts}
        records = [named for named in queues_with(node, asked.names) if named.vhost in of_user]
    elif part is ListPart.KEYS:
        records = await own_queues(request, node, records)
    sort = request.query.get("sort", "")
    if sort.partition(".")[0] in _OF_POLICIES:
        await find_policies(records, node.metadata, node.queue_index)
    view = _View(request, node)
    remote = ClusterQueues(request, node, own_view=partial(view, node))
    is_exact = all(vhost.name in node.server.vhost_services for vhost in vhosts)
    exact = EXACT if is_exact else frozenset[str]()

    async def prepare(shown: Sequence[IndexedQueue]) -> None:
        await find_policies(shown, node.metadata, node.queue_index)
        if view.has_live_fields and not remote.is_alone:
            await remote.fetch(shown)

    listing: Listing[IndexedQueue] = Listing(
        records=records,
        view=remote.view if view.has_live_fields else partial(view, node),
        columns={},
        bulk_columns=await remote.columns(queue_columns(node, sort), sort),
        exact=exact if remote.is_alone else exact & _DECLARED_EXACT,
        is_paged=True,
        is_sorted=True,
        order="name" if len(vhosts) == 1 else "vhost",
        fields=FIELDS,
        prepare=prepare,
        identity=queue_id,
    )
    if asked is not None and part is not ListPart.NONE:
        if sort and part is ListPart.KEYS and sort.partition(".")[0] in _OF_POLICIES:
            await find_policies(records, node.metadata, node.queue_index)
        return await reply_part(request, listing, asked)
    return await reply_list(request, listing)


@documented(query=QueueQuery, response=QueueShape)
async def queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a queue with its consumers."""
    vhost = vhost_in_path(request, node)
    record = vhost.topology.queues.get(request.match_info["queue"])
    if record is None:
        raise missing()
    named = IndexedQueue(vhost.name, record)
    if request.query.get("disable_stats") == "true":
        if is_home_down(node, record):
            # The home does not answer, so that the response says that it is down.
            return await relay_to_home(request, node, vhost.name, record)
        return reply_one(request, declared_queue_view(node, named))
    live = live_queue(node, named)
    asked: CarriedRequest | None = request.get(CARRIED)
    if asked is not None and asked.part is ListPart.CONSUMERS:
        return reply([] if live is None else _consumers_of(node, live))
    consumers = [] if live is None or not live.consumer_count else _consumers_of(node, live)
    if asked is not None or node.is_own(node.home_of(record)):
        facts = whole_queue_view(node, named, sample_ranges(request, node), consumers)
        others = other_nodes(request, node)
    else:
        own = [] if live is None else _consumers_of(node, live)
        response = await relay_to_home(request, node, vhost.name, record)
        if response.status != _OK or not isinstance(response, web.Response):
            return response
        assert isinstance(response.body, bytes)
        facts = msgspec.json.decode(response.body)
        consumers = own + facts.get(_CONSUMERS, [])
        others = [member for member in other_nodes(request, node) if member.id != node.home_of(record)]
    if _CONSUMERS in facts:
        facts[_CONSUMERS] = consumers + await consumers_at(request, node, others)
    return reply_one(request, facts)


class _View:
    """The fields of each queue in a list."""

    def __init__(self, request: web.Request, node: ManagedNode) -> None:
        self._asked = sample_ranges(request, node)
        self._has_stats = request.query.get("disable_stats") != "true"
        self._has_totals = request.query.get("enable_queue_totals") == "true"

    @property
    def has_live_fields(self) -> bool:
        """True if it shows more than the metadata have."""
        return self._has_stats or self._has_totals

    def __call__(self, node: ManagedNode, named: IndexedQueue) -> JsonObject:
        if self._has_stats:
            return queue_view(node, named, self._asked)
        return declared_queue_view(node, named, has_totals=self._has_totals)


def _consumers_of(node: ManagedNode, live: VhostQueue) -> list[JsonObject]:
    """The consumers of the queue `live`, found through the connections."""
    found = [
        consumer_view(node, consuming)
        for opened in channels_of(node, live)
        for consuming in consumers_of(opened)
        if consuming[2].queue.led_here() is live
    ]
    subscribing = stream_consumers_on(stream_connections(node))
    return found + [stream_subscriber_view(node, one) for one in subscribing if one[1].stream is live]
