"""The cluster: its name, which is a parameter of the broker to RabbitMQ, too."""

from aiohttp import web

from warren.management.bodies import read_fields
from warren.management.managed import Managed
from warren.management.proposing import propose
from warren.management.replies import done, reply
from warren.metadata.commands import SetGlobalParameter
from warren.metadata.parameters import CLUSTER_NAME


def cluster_name(request: web.Request, node: Managed) -> web.StreamResponse:
    """What it is called."""
    return reply({"name": node.cluster_name})


async def put_cluster_name(request: web.Request, node: Managed) -> web.StreamResponse:
    """Call it something else."""
    fields = await read_fields(request, "name")
    await propose(node, SetGlobalParameter(name=CLUSTER_NAME, value=fields.text("name")))
    return done()
