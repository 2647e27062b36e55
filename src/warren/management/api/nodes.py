"""The node, what it uses, and which of its alarms are on."""

from typing import Annotated

from aiohttp import web

from warren.management.describing import ListQuery, OneQuery, described, meant
from warren.management.listing import Facts, Listing, reply_list, reply_one
from warren.management.managed import Managed
from warren.management.replies import missing
from warren.management.views.nodes import (
    MemoryShape,
    NodeShape,
    TablesShape,
    memory_facts,
    node_facts,
    tables_facts,
)
from warren.management.views.stats import SamplesQuery, asked


class NodesQuery(ListQuery, SamplesQuery, total=False):
    """How nodes are listed."""


class NodeQuery(OneQuery, SamplesQuery, total=False):
    """How a node is shown."""

    memory: Annotated[bool, meant("With where its memory is")]
    binary: Annotated[bool, meant("With what Erlang would have beside the heaps")]


_memory = described(query=OneQuery, gives=MemoryShape)
_tables = described(query=OneQuery, gives=TablesShape)


@described(query=NodesQuery, gives=list[NodeShape])
async def nodes(request: web.Request, node: Managed) -> web.StreamResponse:
    """This node, in a list of its own."""
    wanted = asked(request, node)
    listing: Listing[Managed] = Listing(
        records=[node],
        view=lambda one: node_facts(one, wanted),
        columns={"name": lambda one: one.node_name},
        sorts=("name",),
    )
    return await reply_list(request, listing)


@described(query=NodeQuery, gives=NodeShape)
def one_node(request: web.Request, node: Managed) -> web.Response:
    """This node, with its memory if that is wanted."""
    _check(request, node)
    facts = node_facts(node, asked(request, node))
    if request.query.get("memory") == "true":
        facts["memory"] = memory_facts(node, is_relative=False)
    if request.query.get("binary") == "true":
        # What Erlang keeps beside the heaps of processes, by process: there is nothing of the kind.
        facts["binary"] = dict.fromkeys((*memory_facts(node, is_relative=True), "other"), 0)
    return reply_one(request, facts)


@_memory
def memory(request: web.Request, node: Managed) -> web.Response:
    """Where a node's memory is, in octets."""
    return _reply_memory(request, node, is_relative=False)


@_memory
def relative_memory(request: web.Request, node: Managed) -> web.Response:
    """Where a node's memory is, in parts of a hundred."""
    return _reply_memory(request, node, is_relative=True)


@_tables
def tables(request: web.Request, node: Managed) -> web.Response:
    """How large a node's tables are, in octets."""
    return _reply_tables(request, node, is_relative=False)


@_tables
def relative_tables(request: web.Request, node: Managed) -> web.Response:
    """How large a node's tables are, in parts of a hundred."""
    return _reply_tables(request, node, is_relative=True)


def _reply_memory(request: web.Request, node: Managed, *, is_relative: bool) -> web.Response:
    _check(request, node)
    return reply_one(request, {"memory": memory_facts(node, is_relative=is_relative)})


def _reply_tables(request: web.Request, node: Managed, *, is_relative: bool) -> web.Response:
    _check(request, node)
    shown: Facts = {
        "ets_tables_memory": tables_facts(node, request.match_info.get("filter"), is_relative=is_relative)
    }
    return reply_one(request, shown)


def _check(request: web.Request, node: Managed) -> None:
    if request.match_info["node"] != node.node_name:
        raise missing()
