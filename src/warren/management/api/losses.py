"""Lost messages: listing the losses, and acknowledging them as an operator."""

from typing import Annotated, TypedDict

from aiohttp import web
from msgspec.structs import asdict

from warren.management.managed_node import ManagedNode
from warren.management.operation import doc, documented
from warren.management.replies import reply


class LossShape(TypedDict):
    """Persistent messages that can no longer be read."""

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


@documented(query=LossesQuery, response=list[LossShape])
def losses(request: web.Request, node: ManagedNode) -> web.Response:
    """List the losses of messages on record, acknowledged or not."""
    vhost = request.query.get("vhost")
    return reply([asdict(loss) for loss in node.losses() if vhost in (None, loss.vhost)])


@documented(query=LossesQuery, response=AcknowledgedLossesShape)
def acknowledge(request: web.Request, node: ManagedNode) -> web.Response:
    """Acknowledge all losses so far: the health check passes until there is another."""
    return reply({"acknowledged": node.acknowledge_losses(request.query.get("vhost"))})
