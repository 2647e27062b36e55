"""Queues as they are: lists of them, and one with who consumes from it."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from aiohttp import web

from warren.management.auth import login_vhosts, user_of
from warren.management.describing import OneQuery, PageQuery, described, meant, paged
from warren.management.listing import Facts, Listing, reply_list, reply_one
from warren.management.managed import Managed
from warren.management.orders import Named
from warren.management.proposing import vhost_of
from warren.management.replies import missing
from warren.management.samples import LENGTHS, QUEUE_COLUMNS, queue_row, series_of
from warren.management.views.consumers import Consuming, consumers_of
from warren.management.views.queues import (
    MEMORY,
    QueueShape,
    declared_facts,
    idle_since,
    live_queue,
    queue_facts,
    utilisation,
    whole_queue_facts,
)
from warren.management.views.stats import SamplesQuery, asked
from warren.queues.classic import ClassicQueue


class _Stats(SamplesQuery, total=False):
    disable_stats: Annotated[bool, meant("Only what was declared")]


class QueueQuery(OneQuery, _Stats, total=False):
    """How a queue is shown."""


class QueuesQuery(PageQuery, _Stats, total=False):
    """How queues are listed."""

    enable_queue_totals: Annotated[bool, meant("Lengths also without statistics")]


@described(query=QueuesQuery, gives=paged(QueueShape))
async def queues(request: web.Request, node: Managed) -> web.StreamResponse:
    """The queues of all virtual hosts that the user may work in, or of one."""
    if "vhost" in request.match_info:
        vhosts = [vhost_of(request, node)]
    else:
        vhosts = [node.metadata.vhosts.by_name[name] for name in login_vhosts(node, user_of(request))]
    records: list[Named] = []
    for vhost in sorted(vhosts, key=lambda vhost: vhost.name):
        found = node.queue_order.of(vhost)
        records = records + found if records else found
    listing: Listing[Named] = Listing(
        records=records,
        view=partial(_View(request, node), node),
        columns=_columns(node),
        exact=_EXACT if all(vhost.name in node.server.domains for vhost in vhosts) else frozenset(),
        is_paged=True,
        is_sorted=True,
    )
    return await reply_list(request, listing)


@described(query=QueueQuery, gives=QueueShape)
def queue(request: web.Request, node: Managed) -> web.StreamResponse:
    """One queue, with who consumes from it."""
    vhost = vhost_of(request, node)
    record = vhost.topology.queues.get(request.match_info["queue"])
    if record is None:
        raise missing()
    named = Named(vhost.name, record)
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


def _consumers_of(node: Managed, live: ClassicQueue) -> list[Consuming]:
    """Who consumes from `live`, with the channels: a queue does not know them."""
    return [
        consuming
        for connection in node.server.connections
        for channel in connection.channels.values()
        for consuming in consumers_of((connection, channel))
        if consuming[2].queue is live
    ]


def _columns(node: Managed) -> dict[str, Callable[[Named], object]]:
    """What lists are sorted by without a view being made of every queue."""
    time = node.sampler.time
    counts: dict[str, Callable[[ClassicQueue], float]] = {**_COUNTS, **MEMORY}
    for column, name in enumerate(QUEUE_COLUMNS):
        shown = name if name in LENGTHS else f"message_stats.{name}"
        counts[f"{shown}_details.rate"] = _rate(time, column)
    for name in ("consumer_utilisation", "consumer_capacity"):
        counts[name] = lambda live: utilisation(live, time)
    counts["idle_since"] = lambda live: idle_since(live, time)
    return {
        "vhost": lambda named: named.vhost,
        "name": lambda named: named.record.name,
        "durable": lambda named: named.record.durable,
        "auto_delete": lambda named: named.record.auto_delete,
        "exclusive": lambda named: named.record.owner is not None,
        "type": lambda named: named.record.kind,
        "node": lambda _: node.node_name,
        "state": lambda _: "running",
        "policy": _policy(node, 0),
        "operator_policy": _policy(node, 1),
        **{name: _counted(node, read) for name, read in counts.items()},
    }


def _counted(node: Managed, read: Callable[[ClassicQueue], float]) -> Callable[[Named], float]:
    lives = {name: domain.vhost.queues for name, domain in node.server.domains.items()}

    def counted(named: Named) -> float:
        live = named.live(lives.get(named.vhost, _NOTHING))
        return 0 if live is None else read(live)

    return counted


def _rate(time: int, column: int) -> Callable[[ClassicQueue], float]:
    def rate(live: ClassicQueue) -> float:
        series = series_of(live)
        return 0.0 if series is None else series.rate(time, column)

    return rate


def _policy(node: Managed, which: int) -> Callable[[Named], str]:
    """The name of a policy, or of an operator's; none comes first, as `null` does."""
    vhosts = node.metadata.vhosts.by_name

    def policy(named: Named) -> str:
        vhost = vhosts.get(named.vhost)
        if vhost is None or not vhost.has_policies:
            return ""
        found = vhost.policies_of(named.record.name, named.record.kind)[which]
        return "" if found is None else found.name

    return policy


# Columns that are shown as they are, unless a virtual host is down.
_EXACT = frozenset((
    "vhost", "name", "durable", "auto_delete", "exclusive", "type", "node", "state", "messages",
    "messages_ready", "messages_unacknowledged", "consumers", *MEMORY,
))  # fmt: skip
# Of a virtual host that is down.
_NOTHING: dict[str, ClassicQueue] = {}
_COUNTS: dict[str, Callable[[ClassicQueue], int]] = {
    "messages": lambda live: live.message_count + live.unacked_count,
    "messages_ready": lambda live: live.message_count,
    "messages_unacknowledged": lambda live: live.unacked_count,
    "consumers": lambda live: live.consumer_count,
    "message_stats.publish": lambda live: live.published_count - live.risen_count,
    "message_stats.deliver": lambda live: live.delivered_count,
    "message_stats.deliver_no_ack": lambda live: live.delivered_no_ack_count,
    "message_stats.deliver_get": lambda live: queue_row(live)[QUEUE_COLUMNS.index("deliver_get")],
    "message_stats.get": lambda live: live.got_count,
    "message_stats.get_no_ack": lambda live: live.got_no_ack_count,
    "message_stats.redeliver": lambda live: live.redelivered_count,
    "message_stats.ack": lambda live: live.acknowledged_count,
}
