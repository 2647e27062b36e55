"""Lost messages: listing the losses, and acknowledging them as an operator."""

from typing import Annotated, TypedDict

import msgspec
from aiohttp import web
from msgspec.structs import asdict

from warren.management.cluster_lists import fetch_json
from warren.management.managed_node import ManagedNode
from warren.management.node_requests import NodeAnswer, other_nodes
from warren.management.operation import doc, documented
from warren.management.placement import OTHER_ANSWERS
from warren.management.replies import reply

_OK = 200


class LossShape(TypedDict):
    """Persistent messages that can no longer be read."""

    node: Annotated[str, doc("The node that has lost them.")]
    vhost: str
    file: str
    offset: int
    reason: str
    messages: int | None
    queues: list[str]
    acknowledged: bool


class LossesQuery(TypedDict, total=False):
    """Selects losses."""

    vhost: Annotated[str, doc("Only losses of this virtual host.")]


class AcknowledgedLossesShape(TypedDict):
    """How many losses were not acknowledged before."""

    acknowledged: int


_acknowledged = msgspec.json.Decoder(AcknowledgedLossesShape)


@documented(query=LossesQuery, response=list[LossShape])
async def losses(request: web.Request, node: ManagedNode) -> web.Response:
    """List the losses of messages on record, acknowledged or not."""
    vhost = request.query.get("vhost")
    found = [
        {"node": node.node_name, **asdict(loss)} for loss in node.losses() if vhost in (None, loss.vhost)
    ]
    for _, theirs in await fetch_json(request, node, other_nodes(request, node)):
        found += theirs
    return reply(found)


@documented(query=LossesQuery, response=AcknowledgedLossesShape)
def acknowledge(request: web.Request, node: ManagedNode) -> web.Response:
    """Acknowledge all losses so far: the health check passes until there is another."""
    count = node.acknowledge_losses(request.query.get("vhost"))
    others: list[NodeAnswer] = request.get(OTHER_ANSWERS, [])
    count += sum(_acknowledged.decode(one.body)["acknowledged"] for one in others if one.head.status == _OK)
    return reply({"acknowledged": count})
