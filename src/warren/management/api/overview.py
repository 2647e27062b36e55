"""The overview of the node, and the user of the request."""

from typing import TypedDict

from aiohttp import web

from warren.management.auth import user_of
from warren.management.listing import reply_one
from warren.management.managed_node import ManagedNode
from warren.management.operation import ColumnsQuery, documented
from warren.management.replies import reply
from warren.management.views.overview import OverviewShape, overview_view
from warren.management.views.stats import SamplesQuery, sample_ranges


class OverviewQuery(ColumnsQuery, SamplesQuery, total=False):
    """Which fields of the overview are returned."""


class CurrentUserShape(TypedDict):
    """The user of the request."""

    name: str
    tags: list[str]


@documented(response=CurrentUserShape)
def who_am_i(request: web.Request, node: ManagedNode) -> web.Response:
    """Get the name and the tags of the authenticated user."""
    user = user_of(request)
    return reply({"name": user.name, "tags": list(user.tags)})


@documented(query=OverviewQuery, response=OverviewShape)
def overview(request: web.Request, node: ManagedNode) -> web.Response:
    """Get an overview of the broker: versions, object totals, message rates and listeners."""
    return reply_one(request, overview_view(node, user_of(request), sample_ranges(request, node)))
