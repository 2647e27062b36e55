"""Exchanges as JSON, in RabbitMQ's form."""

from typing import Any, Required, TypeAlias, TypedDict

from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable
from warren.management.views.stats import RateDetailsShape, SampleRanges, with_rates
from warren.metadata.definitions import json_value
from warren.metadata.records import ExchangeRecord
from warren.metrics.sampler import EXCHANGE_COLUMNS, exchange_row, series_of
from warren.routing.exchange import Exchange

# An exchange and its virtual host.
VhostExchange: TypeAlias = tuple[str, ExchangeRecord]


# The fields that are sums over all nodes.
COUNTED = frozenset(("message_stats",))


class ExchangeShape(TypedDict, total=False):
    """An exchange."""

    name: Required[str]
    vhost: Required[str]
    type: Required[str]
    durable: Required[bool]
    auto_delete: Required[bool]
    internal: Required[bool]
    arguments: Required[JsonTable]
    policy: str
    user_who_performed_action: Required[str]
    message_stats: "ExchangeStatsShape"
    incoming: list[Any]
    outgoing: list[Any]


class ExchangeStatsShape(TypedDict):
    """Message rates of an exchange."""

    publish_in: int
    publish_in_details: RateDetailsShape
    publish_out: int
    publish_out_details: RateDetailsShape


def live_exchange(node: ManagedNode, named: VhostExchange) -> Exchange | None:
    """The exchange that routes; None while its virtual host is down."""
    services = node.server.vhost_services.get(named[0])
    return None if services is None else services.vhost.router.exchanges.get(named[1].name)


def exchange_view(
    node: ManagedNode, named: VhostExchange, ranges: SampleRanges, *, is_alone: bool
) -> JsonObject:
    """An exchange as JSON; `is_alone` adds the details of a single exchange."""
    vhost, record = named
    facts: JsonObject = {
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
        past = series_of(live), ranges.time
        facts["message_stats"] = with_rates(EXCHANGE_COLUMNS, exchange_row(live), past, ranges.msg_rates)
    if is_alone:
        facts |= {"incoming": [], "outgoing": []}
    return facts
