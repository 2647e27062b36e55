"""The three metrics endpoints: sums, every object, and selected groups of metrics.

/metrics             sums over all queues, channels and connections
/metrics/per-object  a value for each object, with labels
/metrics/detailed    ?family=queue_coarse_metrics&vhost=…: selected groups, as rabbitmq_detailed_…
                     &queue=^orders: only queues whose names match this regular expression

Objects are read in slices of one turn of the event loop, and the text is sent as fast as the client reads it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import compress, islice
from time import perf_counter
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from warren.limits_http import (
    DESCRIBED_PER_TURN,
    EXPOSED_PER_TURN,
)
from warren.management.managed_node import ManagedNode
from warren.management.name_filters import PatternError, name_filter
from warren.management.negotiation import prefers_gzip, refuses_identity
from warren.management.prometheus.exposition import CONTENT_TYPE, ScrapeStatistics, head, line
from warren.management.prometheus.objects import QUEUE_NAMES, VhostFilter, queues
from warren.management.prometheus.peers import PEERS
from warren.management.prometheus.rows import MetricRow, Scrape
from warren.management.prometheus.sources import (
    CLUSTER,
    DETAILED_ATTEMPTS,
    IDENTITY,
    SOURCES,
    SUMS,
    UNPREFIXED,
    MetricSource,
    ObjectMetricSource,
)

_PREFIX = "rabbitmq_"
_DETAILED = "rabbitmq_detailed_"
_CLUSTER = "rabbitmq_cluster_"
# The sources at the end of every response, by the prefix of their names.
_ALWAYS: tuple[tuple[str, tuple[MetricSource, ...]], ...] = ((_PREFIX, IDENTITY), ("", UNPREFIXED))
# The size of the parts in which a response is sent, in bytes.
_CHUNK_SIZE = 65_536
# How many families are summed over EXPOSED_PER_TURN objects in one turn of the event loop.
_READ_PER_TURN = 4
# Statistics of earlier scrapes, which are part of a scrape.
SCRAPE_STATISTICS: web.AppKey[ScrapeStatistics] = web.AppKey("scrapes")


async def metrics(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Serve sums over all objects."""
    return await _written(request, "default", _summed(node))


async def per_object(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Serve a value for every object."""
    sources = (*SOURCES, DETAILED_ATTEMPTS)
    return await _written(request, "per-object", _listed(node, [(_PREFIX, sources)], None))


async def detailed(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Serve the requested groups of metrics, of the requested virtual hosts and queues or of all."""
    groups = frozenset(request.query.getall("family", []))
    vhosts = request.query.getall("vhost", [])
    chosen: list[MetricSource | ObjectMetricSource]
    chosen = [source for source in SOURCES if source.group and source.group in groups]
    cluster = [source for source in CLUSTER if source.group in groups]
    wanted = frozenset(vhosts) if vhosts else None
    patterns = request.query.getall("queue", [])
    if len(patterns) > 1:
        raise web.HTTPBadRequest(text="only one query parameter 'queue' is allowed")
    if any(patterns):
        try:
            names = await _matching(node, wanted, patterns[0])
        except PatternError as error:
            raise web.HTTPBadRequest(text=f"queue: {error}") from None
        chosen = [_limited(source, names) for source in chosen]
    return await _written(
        request, "detailed", _listed(node, [(_DETAILED, chosen), (_CLUSTER, cluster)], wanted)
    )


async def _matching(node: ManagedNode, wanted: VhostFilter, pattern: str) -> frozenset[str]:
    """The names of the queues that match `pattern`, in which case counts; PatternError if it cannot be used.

    They are found before the response begins, since a pattern may turn out to take too long.
    """
    chosen = name_filter(pattern, is_pattern=True, ignores_case=False)
    found: set[str] = set()
    named = (queue.name for queue in queues(node, wanted))
    while names := list(islice(named, chosen.per_turn)):
        found.update(compress(names, chosen.fits(names)))
        await asyncio.sleep(0)
    return frozenset(found)


def _limited(
    source: MetricSource | ObjectMetricSource, names: frozenset[str]
) -> MetricSource | ObjectMetricSource:
    """`source` with the queues that have these `names`, if it is about queues."""
    if not isinstance(source, ObjectMetricSource) or source.objects not in QUEUE_NAMES:
        return source
    every, name_of = source.objects, QUEUE_NAMES[source.objects]
    return replace(
        source, objects=lambda node, wanted: (one for one in every(node, wanted) if name_of(one) in names)
    )


async def _summed(node: ManagedNode) -> AsyncIterator[str]:
    scrape = Scrape(node)
    for source in SOURCES:
        if isinstance(source, ObjectMetricSource):
            yield await _sum(_PREFIX, source, scrape, None)
        else:
            yield _texts(_PREFIX, source, source.rows(scrape, None))
    for prefix, others in ((_PREFIX, SUMS), *_ALWAYS):
        for other in others:
            yield _texts(prefix, other, other.rows(scrape, None))
    yield _peers(scrape)


async def _listed(
    node: ManagedNode,
    chosen: Iterable[tuple[str, Iterable[MetricSource | ObjectMetricSource]]],
    wanted: VhostFilter,
) -> AsyncIterator[str]:
    scrape = Scrape(node)
    for prefix, sources in (*chosen, *_ALWAYS):
        for source in sources:
            if not isinstance(source, ObjectMetricSource):
                yield _texts(prefix, source, source.rows(scrape, wanted))
            elif source.sum_labels is not None:
                yield await _sum(prefix, source, scrape, wanted)
            else:
                async for text in _objects(prefix, source, node, wanted):
                    yield text
    yield _peers(scrape)


def _peers(scrape: Scrape) -> str:
    """The metrics of the links to other nodes; nothing for a node that is alone."""
    rows = list(PEERS.rows(scrape, None))
    return _families("", PEERS, rows) if rows else ""


async def _sum(prefix: str, source: ObjectMetricSource, scrape: Scrape, wanted: VhostFilter) -> str:
    """The text of the families of `source`, each with one sum over all objects."""
    node = scrape.node
    if not source.is_summed:
        return _families(prefix, source, [])
    readers = source.readers(node)
    sums: list[float] = [0] * len(readers)
    for piece in _pieces(source.objects(node, wanted)):
        for place, read in enumerate(readers, 1):
            sums[place - 1] += sum(map(read, piece))
            if place % _READ_PER_TURN == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0)
    extra_rows = () if source.extra_rows is None else source.extra_rows(scrape, wanted)
    return _families(prefix, source, [(source.sum_labels or "", tuple(sums)), *extra_rows])


async def _objects(
    prefix: str, source: ObjectMetricSource, node: ManagedNode, wanted: VhostFilter
) -> AsyncIterator[str]:
    """The text of the families of `source`, each with a value for every object, in parts."""
    pieces: list[tuple[list[str], list[Any]]] = []
    for piece in _pieces(source.objects(node, wanted)):
        all_labels: list[str] = []
        for at in range(0, len(piece), DESCRIBED_PER_TURN):
            all_labels += [source.labels(one) for one in piece[at : at + DESCRIBED_PER_TURN]]
            await asyncio.sleep(0)
        pieces.append((all_labels, piece))
    for family, read in zip(source.families, source.readers(node), strict=True):
        name = prefix + family.name
        yield head(name, family)
        for all_labels, piece in pieces:
            text = "".join(
                [f"{name}{{{labels}}} {read(one)}\n" for labels, one in zip(all_labels, piece, strict=True)]
            )
            # Only values that are not summed may be NaN, which Python writes as "nan".
            yield text if source.is_summed else text.replace(" nan\n", " NaN\n")
            await asyncio.sleep(0)


def _pieces(objects: Iterator[Any]) -> Iterator[list[Any]]:
    while piece := list(islice(objects, EXPOSED_PER_TURN)):
        yield piece


def _texts(prefix: str, source: MetricSource, rows: Iterable[MetricRow]) -> str:
    return _families(prefix, source, list(rows))


def _families(prefix: str, source: MetricSource | ObjectMetricSource, rows: list[MetricRow]) -> str:
    texts = []
    for place, family in enumerate(source.families):
        for exposed in (family, family.deprecated()) if family.deprecated_name else (family,):
            name = prefix + exposed.name
            texts.append(head(name, exposed))
            texts += [line(name, labels, _plain(values[place])) for labels, values in rows]
    return "".join(texts)


def _plain(value: float) -> float:
    """`value` as an int if it is whole, so that it is written without a decimal point."""
    return int(value) if value == int(value) else value


async def _written(request: web.Request, registry: str, texts: AsyncIterator[str]) -> web.StreamResponse:
    start = perf_counter()
    is_compressed = prefers_gzip(request)
    if not is_compressed and refuses_identity(request):
        return web.Response(status=406)
    response = web.StreamResponse(headers={"content-type": CONTENT_TYPE, "vary": "accept-encoding"})
    if is_compressed:
        response.enable_compression(web.ContentCoding.gzip)
    await response.prepare(request)
    scrapes = request.app[SCRAPE_STATISTICS]
    pending: list[str] = []
    pending_size = size = 0
    async for text in texts:
        pending.append(text)
        pending_size += len(text)
        if pending_size >= _CHUNK_SIZE:
            data = "".join(pending).encode()
            size += len(data)
            await response.write(data)
            pending, pending_size = [], 0
    data = "".join((*pending, scrapes.text())).encode()
    await response.write(data)
    scrapes.note(registry, size + len(data), perf_counter() - start)
    return response
