"""Shovels and federation links as edges of a graph, between objects of a virtual host and other brokers."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict
from urllib.parse import quote

from warren.client.rabbitmq_uri import parse_target, uri_without_credentials
from warren.limits_http import LISTED_PER_TURN
from warren.management.managed_node import ManagedNode
from warren.management.operation import doc
from warren.management.views.relays import (
    federation_state,
    is_static,
    link_id,
    parameter,
    shovel_definition,
    shovel_state,
)
from warren.metadata.commands import Json
from warren.metadata.federation_definition import UPSTREAM
from warren.metadata.uri_check import uris_of
from warren.metrics.sampler import LINK_COUNTERS
from warren.relay.explanation import explain
from warren.relay.status import LinkKey, LinkKind, LinkState, LinkStatus

BROKER = "broker"
_FORWARDED = LINK_COUNTERS.index("forwarded")
_URGENCY = {LinkState.STOPPED: 0, LinkState.TERMINATED: 0, LinkState.STARTING: 1, LinkState.RUNNING: 2}

# The kind and the name of an end of an edge; the name of a broker is its address without credentials.
GraphEnd: TypeAlias = tuple[str, str]
EdgeKind: TypeAlias = Literal["shovel", "federation"]
# The links between two ends, by these and the kind of the edge.
LinkGroups: TypeAlias = dict[tuple[GraphEnd, GraphEnd, EdgeKind], list[LinkStatus]]


class TopologyLinkShape(TypedDict):
    """A shovel or federation link that is part of an edge."""

    type: Annotated[str, doc("shovel, exchange or queue.")]
    name: Annotated[str, doc("The name of the shovel, or of the federated exchange or queue.")]
    vhost: NotRequired[Annotated[str, doc("Missing for a static shovel.")]]
    upstream: NotRequired[str]
    id: NotRequired[Annotated[str, doc("Identifies a federation link.")]]
    state: Annotated[str, doc("starting, running, terminated, error or shutdown.")]
    rate: Annotated[float, doc("Messages that it forwards per second.")]
    why: Annotated[str, doc("Why it does not forward, in one sentence; empty if it forwards.")]
    why_since: Annotated[int, doc("Since when, in Unix time (ms); 0 if `why` is empty.")]
    last_error: Annotated[str, doc("The last error, also while it runs again; empty if there was none.")]


async def link_groups(node: ManagedNode, vhost: str, vhosts: frozenset[str]) -> LinkGroups:
    """The links with an end in `vhost` or defined in it, of those defined in `vhosts`, in their order.

    Links are grouped by their ends. Those between two other brokers are only in the graph of the virtual host
    in which they are defined.
    """
    found: LinkGroups = {}
    ends = _Ends(vhost)
    for number, key in enumerate(node.relays.link_keys(), 1):
        if key.vhost in vhosts:
            start, end = ends.of(node, key)
            if vhost == key.vhost or not start[0] == end[0] == BROKER:
                status = node.relays.status(key)
                if status is not None:
                    kind: EdgeKind = "shovel" if key.kind is LinkKind.SHOVEL else "federation"
                    found.setdefault((start, end, kind), []).append(status)
        if number % LISTED_PER_TURN == 0:
            await asyncio.sleep(0)
    for links in found.values():
        links.sort(key=urgency)
    return found


def urgency(status: LinkStatus) -> int:
    """The place of a link in an order in which those that do not run come first."""
    return _URGENCY[status.state]


def topology_link(node: ManagedNode, status: LinkStatus) -> TopologyLinkShape:
    """A link as part of an edge."""
    key = status.key
    series = node.relays.history(key)
    why, since = explain(status, node.now())
    is_shovel = key.kind is LinkKind.SHOVEL
    shown = TopologyLinkShape(
        type=key.kind.value,
        name=key.name,
        state=shovel_state(status.state) if is_shovel else federation_state(status.state),
        rate=0.0 if series is None else series.rate(node.sampler.time, _FORWARDED),
        why=why,
        why_since=since,
        last_error=status.last_error,
    )
    if not is_static(key):
        shown["vhost"] = key.vhost
    if not is_shovel:
        shown |= {"upstream": key.upstream, "id": link_id(key)}
    return shown


class _Ends:
    """The ends of links in the graph of one virtual host; each address is parsed once."""

    def __init__(self, vhost: str) -> None:
        self._vhost = vhost
        # The address without credentials, and whether it is the virtual host.
        self._places: dict[str, tuple[str, bool]] = {}

    def of(self, node: ManagedNode, key: LinkKey) -> tuple[GraphEnd, GraphEnd]:
        if key.kind is LinkKind.SHOVEL:
            definition = shovel_definition(node, key)
            return self._shovel_end(definition, "src"), self._shovel_end(definition, "dest")
        kind = key.kind.value
        uri = _first_uri(parameter(node.metadata, UPSTREAM, key.vhost, key.upstream), "uri")
        end = (
            (kind, key.name) if key.vhost == self._vhost else (BROKER, f"amqp:///{quote(key.vhost, safe='')}")
        )
        return self._end(uri, (kind, key.upstream_name or key.name)), end

    def _shovel_end(self, definition: Mapping[str, Json], prefix: str) -> GraphEnd:
        queue, exchange = definition.get(f"{prefix}-queue"), definition.get(f"{prefix}-exchange")
        named = ("queue", queue) if queue is not None else ("exchange", exchange)
        return self._end(_first_uri(definition, f"{prefix}-uri"), named)

    def _end(self, uri: str, named: tuple[str, Json]) -> GraphEnd:
        """The object `named` if `uri` is this virtual host, otherwise the broker."""
        place = self._places.get(uri)
        if place is None:
            place = self._places[uri] = uri_without_credentials(uri), self._is_here(uri)
        address, is_here = place
        kind, name = named
        return (kind, name) if is_here and isinstance(name, str) else (BROKER, address)

    def _is_here(self, uri: str) -> bool:
        try:
            target = parse_target(uri)
        except ValueError:
            return False
        return target.is_local and target.vhost == self._vhost


def _first_uri(definition: Mapping[str, Json], key: str) -> str:
    return next(iter(uris_of(definition.get(key))), "")
