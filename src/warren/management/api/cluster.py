"""The cluster: its name, which is a parameter of the broker to RabbitMQ, too."""

from typing import TypedDict

from aiohttp import web

from warren.management.bodies import read_fields
from warren.management.describing import described
from warren.management.managed import Managed
from warren.management.proposing import propose
from warren.management.replies import done, reply
from warren.metadata.commands import SetGlobalParameter
from warren.metadata.parameters import CLUSTER_NAME


class NameShape(TypedDict):
    """What a cluster is called."""

    name: str


@described(gives=NameShape)
def cluster_name(request: web.Request, node: Managed) -> web.StreamResponse:
    """What the cluster is called."""
    return reply({"name": node.cluster_name})


@described(body=NameShape, answers={204: None})
async def put_cluster_name(request: web.Request, node: Managed) -> web.StreamResponse:
    """Call the cluster something else."""
    fields = await read_fields(request)
    await propose(node, SetGlobalParameter(name=CLUSTER_NAME, value=fields.text("name")))
    return done()
