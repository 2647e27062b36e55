"""Queues as they are: lists of them, and one with who consumes from it."""

from functools import partial

from aiohttp import web

from warren.management.auth import login_vhosts, user_of
from warren.management.listing import Facts, Listing, reply_list, reply_one
from warren.management.managed import Managed
from warren.management.proposing import vhost_of
from warren.management.replies import missing
from warren.management.samples import queue_row
from warren.management.views.consumers import Consuming, consumers_of
from warren.management.views.queues import (
    Named,
    declared_facts,
    live_queue,
    queue_facts,
    whole_queue_facts,
)
from warren.management.views.stats import asked
from warren.queues.classic import ClassicQueue


async def queues(request: web.Request, node: Managed) -> web.StreamResponse:
    """The queues of all virtual hosts that the user may work in, or of one."""
    if "vhost" in request.match_info:
        vhosts = [vhost_of(request, node)]
    else:
        vhosts = [node.metadata.vhosts.by_name[name] for name in login_vhosts(node, user_of(request))]
    listing: Listing[Named] = Listing(
        records=[(vhost.name, record) for vhost in vhosts for record in vhost.topology.queues.values()],
        view=partial(_facts(request, node), node),
        columns={
            "vhost": lambda named: named[0],
            "name": lambda named: named[1].name,
            "durable": lambda named: named[1].durable,
            "messages": lambda named: _length(node, named, 0),
            "messages_ready": lambda named: _length(node, named, 1),
            "messages_unacknowledged": lambda named: _length(node, named, 2),
            "consumers": lambda named: _consumer_count(node, named),
            "type": lambda named: named[1].kind,
            "state": lambda _: "running",
        },
        is_paged=True,
    )
    return await reply_list(request, listing)


def queue(request: web.Request, node: Managed) -> web.StreamResponse:
    """One of them."""
    vhost = vhost_of(request, node)
    record = vhost.topology.queues.get(request.match_info["queue"])
    if record is None:
        raise missing()
    named = vhost.name, record
    if request.query.get("disable_stats") == "true":
        return reply_one(request, declared_facts(node, named))
    live = live_queue(node, named)
    consumers = [] if live is None or not live.consumer_count else _consumers_of(node, live)
    return reply_one(request, whole_queue_facts(node, named, asked(request, node), consumers))


class _View:
    """How each queue of a list is shown."""

    def __init__(self, request: web.Request, node: Managed) -> None:
        self._asked = asked(request, node)
        self._has_stats = request.query.get("disable_stats") != "true"
        self._has_totals = request.query.get("enable_queue_totals") == "true"

    def __call__(self, node: Managed, named: Named) -> Facts:
        if self._has_stats:
            return queue_facts(node, named, self._asked)
        return declared_facts(node, named, has_totals=self._has_totals)


def _facts(request: web.Request, node: Managed) -> _View:
    return _View(request, node)


def _consumers_of(node: Managed, live: ClassicQueue) -> list[Consuming]:
    """Who consumes from `live`, with the channels: a queue does not know them."""
    return [
        consuming
        for connection in node.server.connections
        for channel in connection.channels.values()
        for consuming in consumers_of((connection, channel))
        if consuming[2].queue is live
    ]


def _length(node: Managed, named: Named, column: int) -> int:
    live = live_queue(node, named)
    return 0 if live is None else queue_row(live)[column]


def _consumer_count(node: Managed, named: Named) -> int:
    live = live_queue(node, named)
    return 0 if live is None else live.consumer_count
