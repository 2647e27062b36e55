"""Quarantined data (found on disk at start, unknown to the metadata): listed, acknowledged and removed."""

from typing import TypedDict

from aiohttp import web

from warren.management.auth import user_of
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.managed_node import ManagedNode
from warren.management.operation import ColumnsQuery, documented
from warren.management.quarantine_view import QuarantinedItem
from warren.management.replies import done, missing, reply


class QuarantinedItemShape(TypedDict):
    """A quarantined virtual host, stream or queue; `number` is the internal id, as the name is not known."""

    id: str
    kind: str
    vhost: str
    number: int
    path: str
    messages: int
    bytes: int
    acknowledged: bool


deprecate(QuarantinedItemShape, octets="bytes")


class QuarantineKnownShape(TypedDict):
    """How many items were not acknowledged before."""

    acknowledged: int


@documented(response=list[QuarantinedItemShape])
def quarantine(request: web.Request, node: ManagedNode) -> web.Response:
    """List quarantined data (kept on disk, unknown to the metadata), virtual hosts first."""
    return reply([quarantined_item_view(item) for item in node.quarantine.items()])


@documented(query=ColumnsQuery, response=QuarantineKnownShape)
def acknowledge(request: web.Request, node: ManagedNode) -> web.Response:
    """Acknowledge all quarantined data: the health check passes until there is more."""
    return reply({"acknowledged": node.quarantine.acknowledge(user_of(request).name)})


@documented(query=ColumnsQuery, responses={204: None})
async def remove(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete quarantined data permanently."""
    if not await node.quarantine.remove(request.match_info["item"], user_of(request).name):
        raise missing()
    return done()


def quarantined_item_view(item: QuarantinedItem) -> dict[str, object]:
    """`item` as JSON."""
    shown = QuarantinedItemShape(
        id=item.id,
        kind=item.kind,
        vhost=item.vhost,
        number=item.number,
        path=item.path,
        messages=item.messages,
        bytes=item.byte_count,
        acknowledged=item.acknowledged,
    )
    return with_deprecated(QuarantinedItemShape, shown)
