"""Queues: lists, and single queues with their consumers."""

from functools import partial
from typing import Annotated

from aiohttp import web

from warren.management.api.peek import channels_of
from warren.management.auth import login_vhosts, user_of
from warren.management.listing import JsonObject, Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import ColumnsQuery, PageQuery, doc, documented, paged
from warren.management.queue_index import IndexedQueue, find_policies
from warren.management.replies import missing
from warren.management.views.connections import stream_connections
from warren.management.views.consumers import (
    consumer_view,
    consumers_of,
    stream_consumers_on,
    stream_subscriber_view,
)
from warren.management.views.queue_columns import EXACT, FIELDS, queue_columns
from warren.management.views.queues import (
    QueueShape,
    declared_queue_view,
    live_queue,
    queue_view,
    whole_queue_view,
)
from warren.management.views.stats import SamplesQuery, sample_ranges
from warren.queues.local import LocalQueue

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
    sort = request.query.get("sort", "")
    if sort.partition(".")[0] in _OF_POLICIES:
        await find_policies(records, node.metadata, node.queue_index)
    listing: Listing[IndexedQueue] = Listing(
        records=records,
        view=partial(_View(request, node), node),
        columns={},
        bulk_columns=queue_columns(node, sort),
        exact=EXACT if all(vhost.name in node.server.vhost_services for vhost in vhosts) else frozenset(),
        is_paged=True,
        is_sorted=True,
        order="name" if len(vhosts) == 1 else "vhost",
        fields=FIELDS,
        prepare=lambda shown: find_policies(shown, node.metadata, node.queue_index),
    )
    return await reply_list(request, listing)


@documented(query=QueueQuery, response=QueueShape)
def queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a queue with its consumers."""
    vhost = vhost_in_path(request, node)
    record = vhost.topology.queues.get(request.match_info["queue"])
    if record is None:
        raise missing()
    named = IndexedQueue(vhost.name, record)
    if request.query.get("disable_stats") == "true":
        return reply_one(request, declared_queue_view(node, named))
    live = live_queue(node, named)
    consumers = [] if live is None or not live.consumer_count else _consumers_of(node, live)
    return reply_one(request, whole_queue_view(node, named, sample_ranges(request, node), consumers))


class _View:
    """The fields of each queue in a list."""

    def __init__(self, request: web.Request, node: ManagedNode) -> None:
        self._asked = sample_ranges(request, node)
        self._has_stats = request.query.get("disable_stats") != "true"
        self._has_totals = request.query.get("enable_queue_totals") == "true"

    def __call__(self, node: ManagedNode, named: IndexedQueue) -> JsonObject:
        if self._has_stats:
            return queue_view(node, named, self._asked)
        return declared_queue_view(node, named, has_totals=self._has_totals)


def _consumers_of(node: ManagedNode, live: LocalQueue) -> list[JsonObject]:
    """The consumers of the queue `live`, found through the connections."""
    found = [
        consumer_view(node, consuming)
        for opened in channels_of(node, live)
        for consuming in consumers_of(opened)
        if consuming[2].queue is live
    ]
    subscribing = stream_consumers_on(stream_connections(node))
    return found + [stream_subscriber_view(node, one) for one in subscribing if one[1].stream is live]
