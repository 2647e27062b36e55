"""The nodes of the cluster: their resource use, their limits and their alarms."""

from typing import Annotated
from urllib.parse import quote

import msgspec
from aiohttp import web

from warren.management.listing import JsonObject, Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.node_requests import carried, fetch, gather_answers, other_nodes
from warren.management.operation import ColumnsQuery, ListQuery, doc, documented
from warren.management.replies import missing
from warren.management.views.nodes import (
    NodeMemoryShape,
    NodeShape,
    NodeTablesShape,
    absent_node_view,
    memory_view,
    node_view,
    tables_view,
)
from warren.management.views.stats import SamplesQuery, sample_ranges

_OK = 200


class NodesQuery(ListQuery, SamplesQuery, total=False):
    """How a list of nodes is sorted and filtered."""


class NodeQuery(ColumnsQuery, SamplesQuery, total=False):
    """Which fields of a node are returned."""

    memory: Annotated[bool, doc("Include the memory use by category.")]
    binary: Annotated[bool, doc("Include the field `binary`, whose values are all 0.")]


_memory = documented(query=ColumnsQuery, response=NodeMemoryShape)
_tables = documented(query=ColumnsQuery, response=NodeTablesShape)


@documented(query=NodesQuery, response=list[NodeShape])
async def nodes(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the nodes; one that does not answer is not running."""
    listing: Listing[JsonObject] = Listing(
        records=[node_view(node, sample_ranges(request, node)), *await _others(request, node)],
        view=lambda facts: facts,
        columns={"name": lambda facts: facts["name"]},
        sort_keys=("name",),
    )
    return await reply_list(request, listing)


@documented(query=NodeQuery, response=NodeShape)
def one_node(request: web.Request, node: ManagedNode) -> web.Response:
    """Get a node, with its memory use if requested."""
    name = request.match_info["node"]
    if name != node.node_name and node.metadata.members.named(name) is not None:
        # Another member answers for itself if it can.
        return reply_one(request, absent_node_view(name))
    _check(request, node)
    facts = node_view(node, sample_ranges(request, node))
    if request.query.get("memory") == "true":
        facts["memory"] = memory_view(node, is_relative=False)
    if request.query.get("binary") == "true":
        # RabbitMQ reports Erlang binaries by process category; a Python process has none.
        facts["binary"] = dict.fromkeys((*memory_view(node, is_relative=True), "other"), 0)
    return reply_one(request, facts)


@_memory
def memory(request: web.Request, node: ManagedNode) -> web.Response:
    """Get the memory use of a node by category, in bytes."""
    return _reply_memory(request, node, is_relative=False)


@_memory
def relative_memory(request: web.Request, node: ManagedNode) -> web.Response:
    """Get the memory use of a node by category, in percent."""
    return _reply_memory(request, node, is_relative=True)


@_tables
def tables(request: web.Request, node: ManagedNode) -> web.Response:
    """Get the size of a node's tables, in bytes."""
    return _reply_tables(request, node, is_relative=False)


@_tables
def relative_tables(request: web.Request, node: ManagedNode) -> web.Response:
    """Get the size of a node's tables, in percent."""
    return _reply_tables(request, node, is_relative=True)


async def _others(request: web.Request, node: ManagedNode) -> list[JsonObject]:
    """The other nodes, each as it shows itself."""
    members = other_nodes(request, node)
    if not members:
        return []
    query = request.rel_url.raw_query_string
    asked = [
        carried(request, node, path=f"/api/nodes/{quote(member.name, safe='')}?{query}") for member in members
    ]
    answers = await gather_answers(
        request, members, [fetch(node, to, one) for to, one in zip(members, asked, strict=True)]
    )
    shown = {member.id: absent_node_view(member.name) for member in members}
    for member, answer in answers:
        if answer.head.status == _OK:
            shown[member.id] = msgspec.json.decode(answer.body)
    return list(shown.values())


def _reply_memory(request: web.Request, node: ManagedNode, *, is_relative: bool) -> web.Response:
    _check(request, node)
    return reply_one(request, {"memory": memory_view(node, is_relative=is_relative)})


def _reply_tables(request: web.Request, node: ManagedNode, *, is_relative: bool) -> web.Response:
    _check(request, node)
    shown: JsonObject = {
        "ets_tables_memory": tables_view(node, request.match_info.get("filter"), is_relative=is_relative)
    }
    return reply_one(request, shown)


def _check(request: web.Request, node: ManagedNode) -> None:
    if request.match_info["node"] != node.node_name:
        raise missing()
