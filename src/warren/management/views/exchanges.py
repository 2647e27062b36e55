"""An exchange as RabbitMQ shows it."""

from typing import Any, TypeAlias, TypedDict

from warren.management.describing import Table
from warren.management.listing import Facts
from warren.management.managed import Managed
from warren.management.samples import EXCHANGE_COLUMNS, exchange_row, series_of
from warren.management.views.stats import Asked, DetailsShape, with_rates
from warren.metadata.definitions import json_value
from warren.metadata.records import ExchangeRecord
from warren.routing.exchange import Exchange

# A virtual host, and an exchange in it.
Named: TypeAlias = tuple[str, ExchangeRecord]


class ExchangeShape(TypedDict, total=False):
    """An exchange."""

    name: str
    vhost: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Table
    policy: str
    user_who_performed_action: str
    message_stats: "ExchangeStatsShape"
    incoming: list[Any]
    outgoing: list[Any]


class ExchangeStatsShape(TypedDict):
    """What went through an exchange."""

    publish_in: int
    publish_in_details: DetailsShape
    publish_out: int
    publish_out_details: DetailsShape


def live_exchange(node: Managed, named: Named) -> Exchange | None:
    """What routes for it; None while its virtual host is down."""
    domain = node.server.domains.get(named[0])
    return None if domain is None else domain.vhost.router.exchanges.get(named[1].name)


def exchange_facts(node: Managed, named: Named, asked: Asked, *, is_alone: bool) -> Facts:
    """What is shown of it."""
    vhost, record = named
    facts: Facts = {
        "arguments": json_value(dict(record.arguments)),
        "auto_delete": record.auto_delete,
        "durable": record.durable,
        "internal": record.internal,
        "name": record.name,
        "type": record.type,
        "user_who_performed_action": record.user,
        "vhost": vhost,
    }
    described = node.metadata.vhost(vhost)
    policy = None if described is None else described.policies_of(record.name, "exchange")[0]
    if policy is not None:
        facts["policy"] = policy.name
    live = live_exchange(node, named)
    if live is not None and live.published_in:
        past = series_of(live), asked.time
        facts["message_stats"] = with_rates(EXCHANGE_COLUMNS, exchange_row(live), past, asked.msg_rates)
    if is_alone:
        facts |= {"incoming": [], "outgoing": []}
    return facts
