"""Queues as they are: lists of them, and one with who consumes from it."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from aiohttp import web

from warren.management.auth import login_vhosts, user_of
from warren.management.listing import Facts, Listing, reply_list, reply_one
from warren.management.managed import Managed
from warren.management.orders import Named
from warren.management.proposing import vhost_of
from warren.management.replies import missing
from warren.management.samples import QUEUE_COLUMNS, queue_row, series_of
from warren.management.views.consumers import Consuming, consumers_of
from warren.management.views.queues import (
    declared_facts,
    live_queue,
    queue_facts,
    whole_queue_facts,
)
from warren.management.views.stats import asked
from warren.queues.classic import ClassicQueue

Number = TypeVar("Number", int, float)


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
        view=partial(_facts(request, node), node),
        columns={
            "vhost": lambda named: named[0],
            "name": lambda named: named[1].name,
            "durable": lambda named: named[1].durable,
            **{name: _counted(node, read) for name, read in _COUNTS.items()},
            **{
                f"message_stats.{name}_details.rate": _rate(node, column)
                for column, name in enumerate(QUEUE_COLUMNS)
                if name in _RATES
            },
            "type": lambda named: named[1].kind,
            "state": lambda _: "running",
        },
        is_paged=True,
        is_sorted=True,
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


def _counted(node: Managed, read: Callable[[ClassicQueue], Number]) -> Callable[[Named], Number | int]:
    lives = {name: domain.vhost.queues for name, domain in node.server.domains.items()}

    def counted(named: Named) -> Number | int:
        live = lives.get(named[0], _NOTHING).get(named[1].name)
        return 0 if live is None else read(live)

    return counted


def _rate(node: Managed, column: int) -> Callable[[Named], float]:
    time = node.sampler.time

    def rate(live: ClassicQueue) -> float:
        series = series_of(live)
        return 0.0 if series is None else series.rate(time, column)

    return _counted(node, rate)


# Of a virtual host that is down.
_NOTHING: dict[str, ClassicQueue] = {}
_RATES = frozenset(("publish", "deliver_get", "deliver", "ack"))
# What lists are often sorted by, and need not make every view for.
_COUNTS: dict[str, Callable[[ClassicQueue], int]] = {
    "messages": lambda live: live.message_count + live.unacked_count,
    "messages_ready": lambda live: live.message_count,
    "messages_unacknowledged": lambda live: live.unacked_count,
    "message_bytes": lambda live: live.ready_octets + live.unacked_octets,
    "consumers": lambda live: live.consumer_count,
    "message_stats.publish": lambda live: live.published_count - live.risen_count,
    "message_stats.deliver_get": lambda live: queue_row(live)[QUEUE_COLUMNS.index("deliver_get")],
    "message_stats.ack": lambda live: live.acknowledged_count,
}
