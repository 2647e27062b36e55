"""The node at a glance, and who is asking."""

from typing import TypedDict

from aiohttp import web

from warren.management.auth import user_of
from warren.management.describing import OneQuery, described
from warren.management.listing import reply_one
from warren.management.managed import Managed
from warren.management.replies import reply
from warren.management.views.overview import OverviewShape, overview_facts
from warren.management.views.stats import SamplesQuery, asked


class OverviewQuery(OneQuery, SamplesQuery, total=False):
    """What of the overview is shown."""


class WhoShape(TypedDict):
    """A user."""

    name: str
    tags: list[str]


@described(gives=WhoShape)
def who_am_i(request: web.Request, node: Managed) -> web.Response:
    """The name and the tags of who asks."""
    user = user_of(request)
    return reply({"name": user.name, "tags": list(user.tags)})


@described(query=OverviewQuery, gives=OverviewShape)
def overview(request: web.Request, node: Managed) -> web.Response:
    """What runs here, how many of everything, and what is done."""
    return reply_one(request, overview_facts(node, user_of(request), asked(request, node)))
