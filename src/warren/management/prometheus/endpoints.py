"""The three endpoints: sums, every object by itself, and chosen groups of them.

/metrics             what there is, over all queues, channels and connections
/metrics/per-object  the same, each with labels
/metrics/detailed    ?family=queue_coarse_metrics&vhost=…: only these, as rabbitmq_detailed_…

A pass over very many objects is made in pieces, and written as fast as the client takes it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable

from aiohttp import web

from warren.limits import EXPOSED_PER_TURN
from warren.management.managed import Managed
from warren.management.prometheus.exposition import CONTENT_TYPE, head, line
from warren.management.prometheus.rows import Row, Wanted
from warren.management.prometheus.sources import SOURCES, UNPREFIXED, Source

_PREFIX = "rabbitmq_"
_DETAILED = "rabbitmq_detailed_"
# What is sent in one piece.
_CHUNK_SIZE = 65_536


async def metrics(request: web.Request, node: Managed) -> web.StreamResponse:
    """Sums over all objects."""
    return await _written(request, _summed(node))


async def per_object(request: web.Request, node: Managed) -> web.StreamResponse:
    """Every object by itself."""
    return await _written(request, _listed(node, SOURCES, _PREFIX, None))


async def detailed(request: web.Request, node: Managed) -> web.StreamResponse:
    """The groups that are asked for, of the virtual hosts that are asked for."""
    groups = frozenset(request.query.getall("family", []))
    vhosts = request.query.getall("vhost", [])
    chosen = [source for source in SOURCES if source.group and source.group in groups]
    return await _written(request, _listed(node, chosen, _DETAILED, frozenset(vhosts) if vhosts else None))


async def _summed(node: Managed) -> AsyncIterator[str]:
    for source in SOURCES:
        rows = source.rows(node, None)
        found = [await _sum(source, rows)] if source.is_by_object else list(rows)
        for text in _texts(_PREFIX, source, found):
            yield text
    async for text in _listed(node, (), _PREFIX, None):
        yield text


async def _listed(
    node: Managed, sources: Iterable[Source], prefix: str, wanted: Wanted
) -> AsyncIterator[str]:
    for source in sources:
        rows = [row async for row in _paced(source.rows(node, wanted))]
        for done, text in enumerate(_texts(prefix, source, rows), 1):
            yield text
            if done % EXPOSED_PER_TURN == 0:
                await asyncio.sleep(0)
    for source in UNPREFIXED:
        for text in _texts("", source, list(source.rows(node, wanted))):
            yield text


async def _sum(source: Source, rows: Iterable[Row]) -> Row:
    sums = [0.0] * len(source.families)
    async for _, values in _paced(rows):
        for place, value in enumerate(values):
            sums[place] += value
    return "", tuple(sums)


async def _paced(rows: Iterable[Row]) -> AsyncIterator[Row]:
    """`rows`, some in each turn of the loop."""
    for done, row in enumerate(rows, 1):
        yield row
        if done % EXPOSED_PER_TURN == 0:
            await asyncio.sleep(0)


def _texts(prefix: str, source: Source, rows: list[Row]) -> Iterable[str]:
    for place, family in enumerate(source.families):
        name = prefix + family.name
        yield head(name, family)
        for about, values in rows:
            yield line(name, about, _plain(values[place]))


def _plain(value: float) -> float:
    """As people write it: whole numbers without a point."""
    return int(value) if value == int(value) else value


async def _written(request: web.Request, texts: AsyncIterator[str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": CONTENT_TYPE})
    await response.prepare(request)
    pending: list[str] = []
    size = 0
    async for text in texts:
        pending.append(text)
        size += len(text)
        if size >= _CHUNK_SIZE:
            await response.write("".join(pending).encode())
            pending, size = [], 0
    await response.write("".join(pending).encode())
    return response
