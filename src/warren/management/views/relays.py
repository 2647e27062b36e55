"""Shovels and federation links as JSON: RabbitMQ's fields, and Warren's own beside them."""

import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NotRequired, Required, TypedDict

from msgspec.structs import asdict

from warren.client.rabbitmq_uri import uri_without_credentials
from warren.management.managed_node import ManagedNode
from warren.management.operation import doc
from warren.management.views.stats import RateDetailsShape, SampleRanges
from warren.metadata.commands import Json
from warren.metadata.federation_definition import UPSTREAM
from warren.metadata.machine import Metadata
from warren.metadata.parameter_secrets import with_uris
from warren.metadata.shovel_definition import SHOVEL
from warren.metadata.uri_check import uris_of
from warren.metrics.sampler import LINK_COLUMNS, LINK_COUNTERS, UNKNOWN
from warren.metrics.time_series import SampleTimes, TimeSeries, details
from warren.relay.explanation import explain
from warren.relay.status import LinkKey, LinkKind, LinkState, LinkStatus

_UNLIMITED = "unlimited"
# The protocol of an end, if the definition of the shovel does not name it.
_PROTOCOL = "amqp091"
# The address of this node.
LOCAL = "amqp://"
# The fields of a running shovel in RabbitMQ, with the keys of its definition.
_ENDS = {
    "src_queue": "src-queue",
    "src_exchange": "src-exchange",
    "src_exchange_key": "src-exchange-key",
    "dest_queue": "dest-queue",
    "dest_exchange": "dest-exchange",
    "dest_exchange_key": "dest-exchange-key",
}
_FEDERATION_STATES = {LinkState.TERMINATED: "error", LinkState.STOPPED: "shutdown"}


class LagSampleShape(TypedDict):
    """How far a link was behind at a time."""

    sample: Annotated[float | None, doc("null: not known.")]
    timestamp: int


class LagDetailsShape(TypedDict, total=False):
    """How far a link was behind, if samples are requested."""

    samples: Required[list[LagSampleShape]]


class LinkFactsShape(TypedDict):
    """What Warren knows about a shovel or federation link beside RabbitMQ's fields; times are in ms."""

    why: Annotated[str, doc("Why it does not forward, in one sentence; empty if it forwards.")]
    why_since: Annotated[int, doc("Since when, in Unix time; 0 if `why` is empty.")]
    state_since: Annotated[int, doc("Unix time of the last change of its state.")]
    connected_at: Annotated[int, doc("Unix time since which it runs without a break; 0 if it does not run.")]
    last_error: Annotated[str, doc("The last error, also while it runs again; empty if there was none.")]
    last_error_code: Annotated[int, doc("The reply code of the last error; 0 if it has none.")]
    last_error_at: Annotated[int, doc("Unix time of the last error; 0 if there was none.")]
    next_attempt_at: Annotated[int, doc("Unix time of the next attempt to connect; 0 if none is planned.")]
    forwarded: Annotated[int, doc("Messages published at the destination since it was created.")]
    confirmed: Annotated[int, doc("Messages that the destination has confirmed.")]
    dropped: Annotated[int, doc("Messages removed from the source by a filter or a rule of the link.")]
    rejected: Annotated[int, doc("Messages that the destination refused, and that returned to the source.")]
    redelivered: Annotated[int, doc("Messages delivered again, which may be duplicates at the destination.")]
    restarts: Annotated[int, doc("How often it has connected again.")]
    pending: Annotated[int, doc("Messages in memory that wait for the destination.")]
    unconfirmed: Annotated[int, doc("Messages published that the destination has not confirmed.")]
    prefetch_count: Annotated[int, doc("The prefetch of its consumer at the source; 0 is no limit.")]
    rate_max: Annotated[float | None, doc("The rate limit in messages per second; null if it has none.")]
    delivery: Annotated[str, doc("How often it delivers: exactly once, at least once or at most once.")]
    delivery_reason: Annotated[str, doc("Why not exactly once, although that was asked for; else empty.")]
    lag_messages: Annotated[int | None, doc("Messages ready at the source; null if that is not known.")]
    lag_messages_at: Annotated[int, doc("Unix time at which they were counted; 0 if never.")]
    lag_seconds: Annotated[
        float | None, doc("Age of the last message when it was forwarded; null if it has no timestamp.")
    ]
    delivered_at: Annotated[int, doc("Unix time of the last delivery by the source; 0 if there was none.")]
    source_uris: Annotated[list[str], doc("The addresses of the source, without credentials.")]
    destination_uris: Annotated[list[str], doc("The addresses of the destination, without credentials.")]
    forwarded_details: RateDetailsShape
    confirmed_details: RateDetailsShape
    rejected_details: RateDetailsShape
    dropped_details: RateDetailsShape
    redelivered_details: RateDetailsShape
    lag_messages_details: NotRequired[LagDetailsShape]
    lag_seconds_details: NotRequired[LagDetailsShape]


class ShovelShape(LinkFactsShape):
    """A shovel of this node."""

    node: str
    timestamp: Annotated[str, doc("Local time of the last change of its state.")]
    name: str
    vhost: NotRequired[Annotated[str, doc("Missing for a static shovel, which is in the configuration.")]]
    type: Annotated[str, doc("dynamic or static.")]
    state: Annotated[str, doc("starting, running or terminated.")]
    reason: NotRequired[Annotated[str, doc("Why it is terminated.")]]
    blocked_status: NotRequired[
        Annotated[
            str, doc("While it runs: running, flow (held up) or blocked (an alarm at the destination).")
        ]
    ]
    remaining: NotRequired[Annotated[int | str, doc("Messages still to be settled, or `unlimited`.")]]
    remaining_unacked: NotRequired[Annotated[int | str, doc("Messages still to be published.")]]
    src_uri: NotRequired[Annotated[str, doc("The address of the source, without credentials.")]]
    src_protocol: NotRequired[str]
    dest_protocol: NotRequired[str]
    dest_uri: NotRequired[Annotated[str, doc("The address of the destination, without credentials.")]]
    src_queue: NotRequired[str]
    src_exchange: NotRequired[str]
    src_exchange_key: NotRequired[str]
    dest_queue: NotRequired[str]
    dest_exchange: NotRequired[str]
    dest_exchange_key: NotRequired[str]


class ShovelParameterShape(ShovelShape):
    """A dynamic shovel, and the parameter that defines it."""

    component: Annotated[str, doc("shovel.")]
    value: Annotated[dict[str, Any], doc("The definition, with addresses without credentials.")]


class FederationLinkShape(LinkFactsShape):
    """A federation link of this node."""

    node: str
    exchange: NotRequired[Annotated[str, doc("The federated exchange, if `type` is exchange.")]]
    upstream_exchange: NotRequired[str]
    queue: NotRequired[Annotated[str, doc("The federated queue, if `type` is queue.")]]
    upstream_queue: NotRequired[str]
    consumer_tag: NotRequired[Annotated[str, doc("The tag of the consumer at the upstream queue.")]]
    type: Annotated[str, doc("exchange or queue.")]
    vhost: str
    upstream: str
    id: Annotated[str, doc("Identifies the link in the path that restarts it.")]
    status: Annotated[str, doc("starting, running, error or shutdown.")]
    error: NotRequired[Annotated[str, doc("Why it is in the state error.")]]
    uri: Annotated[str, doc("The address of the upstream, without credentials.")]
    timestamp: Annotated[str, doc("Local time of the last change of its state.")]


def shovels(node: ManagedNode) -> list[LinkStatus]:
    """The statuses of all shovels."""
    return [status for status in node.relays.statuses() if status.key.kind is LinkKind.SHOVEL]


def federation_links(node: ManagedNode) -> list[LinkStatus]:
    """The statuses of all federation links."""
    return [status for status in node.relays.statuses() if status.key.kind is not LinkKind.SHOVEL]


def is_static(key: LinkKey) -> bool:
    """True for a shovel of the configuration."""
    return not key.vhost


def link_id(key: LinkKey) -> str:
    """The id of a federation link: as in RabbitMQ a hash of its key, in eight hexadecimal digits."""
    parts = (key.kind.value, key.vhost, key.name, key.upstream, key.upstream_name)
    return f"{zlib.crc32(chr(0).join(parts).encode('utf-8', 'surrogateescape')):08x}"


def shovel_state(state: LinkState) -> str:
    """The state of a shovel in RabbitMQ's words."""
    return LinkState.TERMINATED.value if state is LinkState.STOPPED else state.value


def federation_state(state: LinkState) -> str:
    """The state of a federation link in RabbitMQ's words."""
    return _FEDERATION_STATES.get(state, state.value)


def shovel_view(node: ManagedNode, status: LinkStatus, ranges: SampleRanges) -> dict[str, object]:
    """A shovel as JSON, in RabbitMQ's order of fields."""
    key, state = status.key, shovel_state(status.state)
    shown: dict[str, object] = {
        "node": node.node_name,
        "timestamp": local_time(status.since),
        "name": key.name,
        **({} if is_static(key) else {"vhost": key.vhost}),
        "type": "static" if is_static(key) else "dynamic",
        "state": state,
    }
    definition = shovel_definition(node, key)
    shown |= shovel_facts(definition, status)
    if state == LinkState.RUNNING:
        shown |= {
            "blocked_status": status.blocked_status,
            "remaining": _count(status.remaining),
            "remaining_unacked": _count(status.remaining_unacked),
        }
    addresses = (_shown_uris(definition, "src-uri"), _shown_uris(definition, "dest-uri"))
    return shown | _facts(node, status, addresses) | link_rates(node, status.key, ranges)


def shovel_facts(definition: Mapping[str, Json], status: LinkStatus) -> dict[str, Json]:
    """What RabbitMQ says about a running or terminated shovel beside its name; nothing while it starts."""
    state = shovel_state(status.state)
    if state == LinkState.TERMINATED:
        return {"reason": status.reason or status.last_error}
    if state != LinkState.RUNNING:
        return {}
    facts: dict[str, Json] = {
        "src_uri": status.source_uri,
        "src_protocol": definition.get("src-protocol", _PROTOCOL),
        "dest_protocol": definition.get("dest-protocol", _PROTOCOL),
        "dest_uri": status.destination_uri,
    }
    return facts | {name: definition[of] for name, of in _ENDS.items() if of in definition}


def federation_link_view(node: ManagedNode, status: LinkStatus, ranges: SampleRanges) -> dict[str, object]:
    """A federation link as JSON, in RabbitMQ's order of fields."""
    facts = federation_facts(node.metadata, status)
    shown = {"node": node.node_name, **facts, "timestamp": local_time(status.since)}
    upstream = parameter(node.metadata, UPSTREAM, status.key.vhost, status.key.upstream)
    addresses = (_shown_uris(upstream, "uri"), [LOCAL])
    return shown | _facts(node, status, addresses) | link_rates(node, status.key, ranges)


def link_identity(metadata: Metadata, key: LinkKey) -> dict[str, Json]:
    """The facts that identify a federation link, in RabbitMQ's order."""
    kind = key.kind.value
    facts: dict[str, Json] = {kind: key.name, f"upstream_{kind}": key.upstream_name or key.name}
    if key.kind is LinkKind.QUEUE:
        upstream = parameter(metadata, UPSTREAM, key.vhost, key.upstream)
        facts["consumer_tag"] = upstream.get("consumer-tag") or f"federation-link-{key.upstream}"
    return facts | {"type": kind, "vhost": key.vhost, "upstream": key.upstream, "id": link_id(key)}


def federation_facts(metadata: Metadata, status: LinkStatus) -> dict[str, Json]:
    """What RabbitMQ says about a federation link beside its time."""
    state = federation_state(status.state)
    facts = link_identity(metadata, status.key) | {"status": state}
    if state == "error":
        facts["error"] = status.reason or status.last_error
    return facts | {"uri": status.source_uri}


def shovel_definition(node: ManagedNode, key: LinkKey) -> Mapping[str, Json]:
    """The definition of a shovel; empty if it was deleted meanwhile."""
    if is_static(key):
        return node.relays.static_shovels.get(key.name, {})
    return parameter(node.metadata, SHOVEL, key.vhost, key.name)


def shovel_parameter(node: ManagedNode, key: LinkKey) -> dict[str, object]:
    """The component and the value of the parameter of a dynamic shovel, as RabbitMQ 4 shows them.

    Users who may see the shovel need not have the right to see its parameter: its addresses are shown as the
    status shows them.
    """
    value = with_uris(SHOVEL, dict(shovel_definition(node, key)), lambda _, uri: uri_without_credentials(uri))
    return {"component": SHOVEL, "value": value}


def parameter(metadata: Metadata, component: str, vhost: str, name: str) -> Mapping[str, Json]:
    """The value of a parameter; empty if it does not exist."""
    found = metadata.vhosts.by_name.get(vhost)
    value = None if found is None else found.parameters.by_key.get((component, name))
    return value if isinstance(value, Mapping) else {}


def lag_seconds(status: LinkStatus) -> float | None:
    """The age of the last message when it was forwarded; None if it had no timestamp."""
    return None if status.age_ms is None else status.age_ms / 1000


def local_time(time: int) -> str:
    """`time` (Unix time, ms) as RabbitMQ shows it here: local, to the second."""
    return datetime.fromtimestamp(time / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def link_rates(node: ManagedNode, key: LinkKey, ranges: SampleRanges) -> dict[str, object]:
    """The rates of the counters of a link, with their samples and those of its lag if these are requested."""
    series = node.relays.history(key)
    shown: dict[str, object] = {
        f"{name}_details": details(series, ranges.time, column, ranges.msg_rates)
        for column, name in enumerate(LINK_COUNTERS)
    }
    if ranges.lengths is not None:
        shown["lag_messages_details"] = _lag_details(series, "lag_messages", ranges.lengths, 1)
        shown["lag_seconds_details"] = _lag_details(series, "lag_ms", ranges.lengths, 1000)
    return shown


def _lag_details(series: TimeSeries | None, name: str, times: SampleTimes, unit: int) -> LagDetailsShape:
    column = LINK_COLUMNS.index(name)
    samples = []
    for at in times.times:
        number = UNKNOWN if series is None else series.at(at, column)
        sample = None if number == UNKNOWN else number / unit
        samples.append(LagSampleShape(sample=sample, timestamp=at))
    return LagDetailsShape(samples=samples)


def _shown_uris(definition: Mapping[str, Json], key: str) -> list[str]:
    return [uri_without_credentials(uri) for uri in uris_of(definition.get(key))]


def _facts(
    node: ManagedNode, status: LinkStatus, addresses: tuple[list[str], list[str]]
) -> dict[str, object]:
    why, since = explain(status, node.now())
    return {
        "why": why,
        "why_since": since,
        "state_since": status.since,
        "connected_at": status.connected_at,
        "last_error": status.last_error,
        "last_error_code": status.last_error_code,
        "last_error_at": status.last_error_at,
        "next_attempt_at": status.next_attempt_at,
        **asdict(status.counters),
        "pending": status.pending,
        "unconfirmed": status.unconfirmed,
        "prefetch_count": status.prefetch_count,
        "rate_max": status.rate_max,
        "delivery": status.delivery.value,
        "delivery_reason": status.delivery_reason,
        "lag_messages": None if status.source_ready < 0 else status.source_ready,
        "lag_messages_at": status.source_counted_at,
        "lag_seconds": lag_seconds(status),
        "delivered_at": status.delivered_at,
        "source_uris": addresses[0],
        "destination_uris": addresses[1],
    }


def _count(number: int) -> int | str:
    return _UNLIMITED if number < 0 else number
