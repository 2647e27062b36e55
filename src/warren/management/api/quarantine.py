"""What a start has found on the disk and the metadata do not name: seen, known and removed by an operator."""

from typing import TypedDict

from aiohttp import web

from warren.management.auth import user_of
from warren.management.describing import OneQuery, described
from warren.management.managed import Managed
from warren.management.quarantined import QuarantinedItem
from warren.management.replies import done, missing, reply


class QuarantinedShape(TypedDict):
    """A virtual host, stream or queue that is kept; `number` says which, as nobody knows its name."""

    id: str
    kind: str
    vhost: str
    number: int
    path: str
    messages: int
    octets: int
    acknowledged: bool


class KnownShape(TypedDict):
    """How many of them nobody had acknowledged before."""

    acknowledged: int


@described(gives=list[QuarantinedShape])
def quarantine(request: web.Request, node: Managed) -> web.Response:
    """All that is kept, virtual hosts first."""
    return reply([_shown(item) for item in node.quarantine.items()])


@described(query=OneQuery, gives=KnownShape)
def acknowledge(request: web.Request, node: Managed) -> web.Response:
    """Know of all that is kept: the health check is good again until there is more."""
    return reply({"acknowledged": node.quarantine.acknowledge(user_of(request).name)})


@described(query=OneQuery, answers={204: None})
async def remove(request: web.Request, node: Managed) -> web.StreamResponse:
    """Remove something of it for good."""
    if not await node.quarantine.remove(request.match_info["item"], user_of(request).name):
        raise missing()
    return done()


def _shown(item: QuarantinedItem) -> QuarantinedShape:
    return QuarantinedShape(
        id=item.id,
        kind=item.kind,
        vhost=item.vhost,
        number=item.number,
        path=item.path,
        messages=item.messages,
        octets=item.octets,
        acknowledged=item.acknowledged,
    )
