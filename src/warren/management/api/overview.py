"""The overview of the node, and the user of the request."""

from collections.abc import Mapping
from typing import TypedDict

from aiohttp import web

from warren.management.auth import user_of
from warren.management.cluster_lists import fetch_json
from warren.management.listing import JsonObject, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.node_requests import other_nodes
from warren.management.operation import ColumnsQuery, documented
from warren.management.replies import reply
from warren.management.summed_lists import add_counts
from warren.management.views.overview import OverviewShape, overview_view
from warren.management.views.stats import SamplesQuery, sample_ranges


class OverviewQuery(ColumnsQuery, SamplesQuery, total=False):
    """Which fields of the overview are returned."""


class CurrentUserShape(TypedDict):
    """The user of the request."""

    name: str
    tags: list[str]


# What is added up for all nodes, and what has an item for each object of a node.
_COUNTED = frozenset(("message_stats", "churn_rates", "queue_totals"))
_COUNTED_OBJECTS = frozenset(("channels", "connections", "consumers"))
_LISTS = ("listeners", "contexts")


@documented(response=CurrentUserShape)
def who_am_i(request: web.Request, node: ManagedNode) -> web.Response:
    """Get the name and the tags of the authenticated user."""
    user = user_of(request)
    return reply({"name": user.name, "tags": list(user.tags)})


@documented(query=OverviewQuery, response=OverviewShape)
async def overview(request: web.Request, node: ManagedNode) -> web.Response:
    """Get an overview of the broker: versions, object totals, message rates and listeners."""
    facts = overview_view(node, user_of(request), sample_ranges(request, node))
    for _, more in await fetch_json(request, node, other_nodes(request, node)):
        facts = add_overview(facts, more)
    return reply_one(request, facts)


def add_overview(facts: JsonObject, more: Mapping[str, object]) -> JsonObject:
    """The overview `facts` with that of another node; what all nodes know is counted once."""
    together = add_counts(facts, more, _COUNTED)
    totals, others = facts["object_totals"], more.get("object_totals")
    assert isinstance(totals, dict)
    if isinstance(others, dict):
        together["object_totals"] = add_counts(totals, others, _COUNTED_OBJECTS)
    for name in _LISTS:
        own, theirs = facts.get(name), more.get(name)
        if isinstance(own, list) and isinstance(theirs, list):
            together[name] = own + theirs
    return together
