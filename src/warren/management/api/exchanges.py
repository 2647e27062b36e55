"""Exchanges: lists, and single exchanges with their statistics."""

from aiohttp import web

from warren.management.auth import login_vhosts, user_of
from warren.management.listing import JsonObject, Listing, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import ColumnsQuery, PageQuery, documented, paged
from warren.management.replies import missing
from warren.management.request_context import exchange_in_path
from warren.management.summed_lists import reply_summed_list, summed_facts
from warren.management.views.exchanges import COUNTED, ExchangeShape, VhostExchange, exchange_view
from warren.management.views.stats import SamplesQuery, sample_ranges


class ExchangesQuery(PageQuery, SamplesQuery, total=False):
    """How a list of exchanges is sorted, filtered and paged."""


class ExchangeQuery(ColumnsQuery, SamplesQuery, total=False):
    """Which fields of an exchange are returned."""


@documented(query=ExchangesQuery, response=paged(ExchangeShape))
async def exchanges(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the exchanges of a virtual host, or of all in which the user has permissions."""
    if "vhost" in request.match_info:
        vhosts = [vhost_in_path(request, node)]
    else:
        vhosts = [node.metadata.vhosts.by_name[name] for name in login_vhosts(node, user_of(request))]
    wanted = sample_ranges(request, node)

    def view(named: VhostExchange) -> JsonObject:
        return exchange_view(node, named, wanted, is_alone=False)

    listing: Listing[VhostExchange] = Listing(
        records=[(vhost.name, record) for vhost in vhosts for record in vhost.topology.exchanges.values()],
        view=view,
        columns={
            "vhost": lambda named: named[0],
            "name": lambda named: named[1].name,
            "type": lambda named: named[1].type,
            "durable": lambda named: named[1].durable,
        },
        is_paged=True,
        identity=lambda named: f"{named[0]}\0{named[1].name}",
    )
    return await reply_summed_list(request, node, listing, COUNTED)


@documented(query=ExchangeQuery, response=ExchangeShape)
async def exchange(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get an exchange."""
    vhost = vhost_in_path(request, node)
    record = vhost.topology.exchanges.get(exchange_in_path(request, "exchange"))
    if record is None:
        raise missing()
    facts = exchange_view(node, (vhost.name, record), sample_ranges(request, node), is_alone=True)
    return reply_one(request, await summed_facts(request, node, facts, COUNTED))
