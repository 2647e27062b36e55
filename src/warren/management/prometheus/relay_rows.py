"""The values of metrics of shovels and federation links."""

from collections import Counter
from collections.abc import Iterator

from warren.management.prometheus.exposition import labels
from warren.management.prometheus.objects import VhostFilter
from warren.management.prometheus.rows import MetricRow, Scrape
from warren.management.views.relays import (
    federation_links,
    federation_state,
    is_static,
    lag_seconds,
    shovel_state,
    shovels,
)
from warren.relay.status import Hold, LinkState, LinkStatus


def dynamic_shovels(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number of dynamic shovels by state, under RabbitMQ's label."""
    found = [status for status in _wanted(shovels(scrape.node), wanted) if not is_static(status.key)]
    yield from _by_state(shovel_state(status.state) for status in found)


def static_shovels(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number of shovels of the configuration by state."""
    found = [status for status in shovels(scrape.node) if is_static(status.key)]
    yield from _by_state(shovel_state(status.state) for status in found)


def links(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number of federation links by state."""
    found = _wanted(federation_links(scrape.node), wanted)
    yield from _by_state(federation_state(status.state) for status in found)


def link_counters(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The counters of each shovel and federation link, and whether it forwards."""
    for status in _wanted(list(scrape.node.relays.statuses()), wanted):
        counted = status.counters
        yield (
            _of(status),
            (
                counted.forwarded,
                counted.confirmed,
                counted.rejected,
                counted.dropped,
                counted.redelivered,
                counted.restarts,
                status.pending,
                status.unconfirmed,
                status.state is LinkState.RUNNING,
                status.hold not in (Hold.NONE, Hold.FINISHED),
            ),
        )


def lag_in_messages(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number of messages ready at the source of each link for which it is known."""
    for status in _wanted(list(scrape.node.relays.statuses()), wanted):
        if status.source_ready >= 0:
            yield _of(status), (status.source_ready,)


def lag_in_seconds(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The age of the last message of each link when it was forwarded, if messages have timestamps."""
    for status in _wanted(list(scrape.node.relays.statuses()), wanted):
        age = lag_seconds(status)
        if age is not None:
            yield _of(status), (age,)


def _wanted(found: list[LinkStatus], wanted: VhostFilter) -> list[LinkStatus]:
    return [status for status in found if wanted is None or status.key.vhost in wanted]


def _by_state(states: Iterator[str]) -> Iterator[MetricRow]:
    for state, count in sorted(Counter(states).items()):
        yield labels(status=state), (count,)


def _of(status: LinkStatus) -> str:
    key = status.key
    return labels(kind=key.kind.value, vhost=key.vhost, name=key.name, upstream=key.upstream)
