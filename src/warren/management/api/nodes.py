"""The node, what it uses, and which of its alarms are on."""

from aiohttp import web

from warren.management.listing import Facts, Listing, reply_list, reply_one
from warren.management.managed import Managed
from warren.management.replies import missing
from warren.management.views.nodes import memory_facts, node_facts, tables_facts
from warren.management.views.stats import asked


async def nodes(request: web.Request, node: Managed) -> web.StreamResponse:
    """This one, alone."""
    wanted = asked(request, node)
    listing: Listing[Managed] = Listing(
        records=[node],
        view=lambda one: node_facts(one, wanted),
        columns={"name": lambda one: one.node_name},
        sorts=("name",),
    )
    return await reply_list(request, listing)


def one_node(request: web.Request, node: Managed) -> web.Response:
    """The same, with its memory if that is wanted."""
    _check(request, node)
    facts = node_facts(node, asked(request, node))
    if request.query.get("memory") == "true":
        facts["memory"] = memory_facts(node, is_relative=False)
    if request.query.get("binary") == "true":
        # What Erlang keeps beside the heaps of processes, by process: there is nothing of the kind.
        facts["binary"] = dict.fromkeys((*memory_facts(node, is_relative=True), "other"), 0)
    return reply_one(request, facts)


def memory(request: web.Request, node: Managed) -> web.Response:
    """Where its memory is."""
    return _reply_memory(request, node, is_relative=False)


def relative_memory(request: web.Request, node: Managed) -> web.Response:
    """The same, in parts of a hundred."""
    return _reply_memory(request, node, is_relative=True)


def tables(request: web.Request, node: Managed) -> web.Response:
    """How large its tables are."""
    return _reply_tables(request, node, is_relative=False)


def relative_tables(request: web.Request, node: Managed) -> web.Response:
    """The same, in parts of a hundred."""
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
