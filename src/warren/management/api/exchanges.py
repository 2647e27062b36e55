"""Exchanges as they are: lists of them, and one."""

from aiohttp import web

from warren.management.asking import name_of
from warren.management.auth import login_vhosts, user_of
from warren.management.describing import OneQuery, PageQuery, described, paged
from warren.management.listing import Facts, Listing, reply_list, reply_one
from warren.management.managed import Managed
from warren.management.proposing import vhost_of
from warren.management.replies import missing
from warren.management.views.exchanges import ExchangeShape, Named, exchange_facts
from warren.management.views.stats import SamplesQuery, asked


class ExchangesQuery(PageQuery, SamplesQuery, total=False):
    """How exchanges are listed."""


class ExchangeQuery(OneQuery, SamplesQuery, total=False):
    """How an exchange is shown."""


@described(query=ExchangesQuery, gives=paged(ExchangeShape))
async def exchanges(request: web.Request, node: Managed) -> web.StreamResponse:
    """The exchanges of all virtual hosts that the user may work in, or of one."""
    if "vhost" in request.match_info:
        vhosts = [vhost_of(request, node)]
    else:
        vhosts = [node.metadata.vhosts.by_name[name] for name in login_vhosts(node, user_of(request))]
    wanted = asked(request, node)

    def view(named: Named) -> Facts:
        return exchange_facts(node, named, wanted, is_alone=False)

    listing: Listing[Named] = Listing(
        records=[(vhost.name, record) for vhost in vhosts for record in vhost.topology.exchanges.values()],
        view=view,
        columns={
            "vhost": lambda named: named[0],
            "name": lambda named: named[1].name,
            "type": lambda named: named[1].type,
            "durable": lambda named: named[1].durable,
        },
        is_paged=True,
    )
    return await reply_list(request, listing)


@described(query=ExchangeQuery, gives=ExchangeShape)
def exchange(request: web.Request, node: Managed) -> web.StreamResponse:
    """One exchange."""
    vhost = vhost_of(request, node)
    record = vhost.topology.exchanges.get(name_of(request, "exchange"))
    if record is None:
        raise missing()
    return reply_one(request, exchange_facts(node, (vhost.name, record), asked(request, node), is_alone=True))
