"""The cluster name, which is stored as a global parameter, as in RabbitMQ."""

from typing import TypedDict

from aiohttp import web

from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose
from warren.management.operation import documented
from warren.management.replies import done, reply
from warren.management.request_body import read_fields
from warren.metadata.commands import SetGlobalParameter
from warren.metadata.parameters import CLUSTER_NAME


class ClusterNameShape(TypedDict):
    """The name of the cluster."""

    name: str


@documented(response=ClusterNameShape)
def cluster_name(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the cluster name."""
    return reply({"name": node.cluster_name})


@documented(body=ClusterNameShape, responses={204: None})
async def put_cluster_name(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set the cluster name."""
    fields = await read_fields(request)
    await propose(node, SetGlobalParameter(name=CLUSTER_NAME, value=fields.text("name")))
    return done()
