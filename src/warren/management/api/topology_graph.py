"""The graph of bindings around an exchange or queue of a virtual host, within a bounded size."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from aiohttp import web

from warren.limits_http import (
    LISTED_PER_TURN,
    PICTURED_AROUND_MAX,
    PICTURED_CONSUMERS_MAX,
    PICTURED_EACH_MAX,
    PICTURED_EXCHANGES_MAX,
    PICTURED_LINKS_EACH_MAX,
    PICTURED_LINKS_MAX,
)
from warren.management.auth import is_administrator, is_monitor, permitted_vhosts, user_of
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import doc, documented
from warren.management.replies import bad_request, missing, reply
from warren.management.request_context import RequestContext, request_context
from warren.management.views.link_graph import (
    BROKER,
    LinkGroups,
    TopologyLinkShape,
    link_groups,
    topology_link,
    urgency,
)
from warren.management.views.relays import LOCAL
from warren.metadata.definitions import json_value
from warren.metadata.records import BindingRecord
from warren.queues.capabilities import live_queue
from warren.queues.vhost_queue import VhostQueue
from warren.shovel.shovel_settings import STATIC_VHOST

_KEYS_SHOWN_MAX = 3
# The kind of an edge.
_Kind: TypeAlias = Literal["binding", "alternate", "dead-letter", "consumer", "shovel", "federation"]
_EXCHANGE, _QUEUE = "exchange", "queue"
# The kind and the name of an exchange or queue.
_GraphNode: TypeAlias = tuple[str, str]


class TopologyQuery(TypedDict, total=False):
    """The centre of the graph; without it, the exchanges with the most bindings."""

    kind: Annotated[Literal["exchange", "queue"], doc("Kind of the object at the centre.")]
    name: Annotated[str, doc("Name of the object at the centre.")]


class TopologyNodeShape(TypedDict):
    """An exchange, a queue, a consumer or a broker, whose name is its address without credentials."""

    id: str
    kind: Literal["exchange", "queue", "consumer", "broker"]
    name: str
    layer: Annotated[int, doc("Distance downstream from the centre of the graph; negative upstream of it.")]
    type: NotRequired[str]
    messages: NotRequired[int]
    consumers: NotRequired[int]
    paused: NotRequired[bool]
    more_upstream: NotRequired[
        Annotated[int, doc("Number of nodes with an edge to this one that are not in the graph.")]
    ]
    more_downstream: NotRequired[
        Annotated[int, doc("Number of nodes with an edge from this one that are not in the graph.")]
    ]


deprecate(TopologyNodeShape, column="layer", more_before="more_upstream", more_behind="more_downstream")


TopologyEdgeShape = TypedDict(
    "TopologyEdgeShape",
    {
        "from": str,
        "to": str,
        "kind": _Kind,
        "keys": list[str],
        "count": int,
        "links": NotRequired[list[TopologyLinkShape]],
    },
)
TopologyEdgeShape.__doc__ = """An edge between two nodes.

`keys` labels some of its bindings or links, and `count` is their number.
"""


class TopologyShape(TypedDict):
    """A graph of exchanges, queues and consumers, and of links to other brokers."""

    nodes: list[TopologyNodeShape]
    edges: list[TopologyEdgeShape]
    exchanges_total: int
    links_total: Annotated[
        int, doc("Shovels and federation links of the virtual host; 0 without the tag monitoring.")
    ]


deprecate(TopologyShape, things="nodes", lines="edges")


class _TopologyGraph:
    """The nodes and edges found so far."""

    def __init__(self, context: RequestContext) -> None:
        self._vhost = context.services.vhost
        self._records = context.records
        self.nodes: dict[str, TopologyNodeShape] = {}
        self.edges: dict[tuple[str, str, str], TopologyEdgeShape] = {}

    async def around(self, middle: _GraphNode) -> None:
        """Add the nodes that lead to `middle` and those that it leads to, two steps each way."""
        self._add(middle, 0)
        if not self.nodes:
            return
        await self._add_upstream(middle, -1)
        for place in self._exchanges_in(-1):
            await self._add_upstream(place, -2)
        if middle[0] == _EXCHANGE:
            await self._add_downstream(middle, 1)
            for place in self._exchanges_in(1):
                await self._add_downstream(place, 2)
        self._ends()

    def add_links(self, node: ManagedNode, groups: LinkGroups, is_around: bool) -> None:
        """Add links to the graph, first those that do not run; around a centre only those of its nodes."""
        ordered = sorted(groups.items(), key=lambda group: urgency(group[1][0]))
        if is_around:
            here = set(self.nodes)
            ordered = [group for group in ordered if not here.isdisjoint(map(_id, group[0][:2]))]
        for (start, end, kind), links in ordered[:PICTURED_LINKS_MAX]:
            start, end = self._add_ends(start, end)
            shown = [topology_link(node, status) for status in links[:PICTURED_LINKS_EACH_MAX]]
            names = [link.get("upstream") or link["name"] for link in shown]
            self.edges[_id(start), _id(end), kind] = {
                "from": _id(start), "to": _id(end), "kind": kind, "keys": names, "count": len(links),
                "links": shown,
            }  # fmt: skip

    def _add_ends(self, start: _GraphNode, end: _GraphNode) -> tuple[_GraphNode, _GraphNode]:
        """Add the ends of a link; an object that does not exist yet is the broker itself."""
        start, end = (place if self._exists(place) else (BROKER, LOCAL) for place in (start, end))
        if _id(start) in self.nodes:
            self._add(end, self.nodes[_id(start)]["layer"] + 1)
        else:
            self._add(end, 0)
            self._add(start, self.nodes[_id(end)]["layer"] - 1)
        return start, end

    async def most_bound(self) -> None:
        """Add the exchanges with the most bindings, and their destinations."""
        bound = [
            (-self._vhost.router.exchanges[name].bindings, name)
            for name in self._records.exchanges
            if name and self._records.has_bindings_from(name)
        ]
        names = [name for _, name in sorted(bound)[:PICTURED_EXCHANGES_MAX]]
        for name, column in self._depths(names).items():
            self._add((_EXCHANGE, name), column)
        for thing in list(self.nodes.values()):
            await self._add_downstream((_EXCHANGE, thing["name"]), thing["layer"] + 1, PICTURED_EACH_MAX)
        self._ends()

    def _depths(self, names: list[str]) -> dict[str, int]:
        """The longest path to each of `names`; exchanges of a cycle have equal depths."""
        sources = {
            name: {binding.source for binding in self._records.bindings_to_exchange(name)}.intersection(names)
            for name in names
        }
        depths = dict.fromkeys(names, 0)
        for depth in range(1, len(names)):
            behind = [name for name in names if any(depths[source] == depth - 1 for source in sources[name])]
            # In a cycle the depths would grow without end.
            if not behind or len(behind) == len([name for name in names if depths[name] >= depth - 1]):
                break
            depths |= dict.fromkeys(behind, depth)
        return depths

    def _exchanges_in(self, column: int) -> list[_GraphNode]:
        return [
            (_EXCHANGE, thing["name"])
            for thing in self.nodes.values()
            if thing["layer"] == column and thing["kind"] == _EXCHANGE
        ]

    async def _add_downstream(self, place: _GraphNode, column: int, most: int = PICTURED_AROUND_MAX) -> None:
        grouped = await _grouped(self._records.bindings_from(place[1]), _destination)
        self._connect(place, grouped, column, most)

    async def _add_upstream(self, place: _GraphNode, column: int) -> None:
        kind, name = place
        found = (
            self._records.bindings_to_queue(name)
            if kind == _QUEUE
            else self._records.bindings_to_exchange(name)
        )
        self._connect(place, await _grouped(found, _source), column, PICTURED_AROUND_MAX)

    def _connect(
        self, place: _GraphNode, grouped: dict[_GraphNode, list[BindingRecord]], column: int, most: int
    ) -> None:
        """Add edges between `place` and the first `most` of `grouped`; new nodes get the layer `column`."""
        is_behind = column > self.nodes[_id(place)]["layer"]
        shown = list(grouped)[:most]
        for other in shown:
            if not self._exists(other):
                continue
            self._add(other, column)
            ends = (place, other) if is_behind else (other, place)
            self._add_edge(*ends, "binding", grouped[other])
        if len(grouped) > len(shown):
            rest = len(grouped) - len(shown)
            if is_behind:
                self.nodes[_id(place)]["more_downstream"] = rest
            else:
                self.nodes[_id(place)]["more_upstream"] = rest

    def _exists(self, place: _GraphNode) -> bool:
        if place[0] == BROKER:
            return True
        return place[1] in (self._records.queues if place[0] == _QUEUE else self._records.exchanges)

    def _add(self, place: _GraphNode, column: int) -> None:
        kind, name = place
        if _id(place) in self.nodes or not self._exists(place):
            return
        if kind == _EXCHANGE:
            self.nodes[_id(place)] = {
                "id": _id(place), "kind": "exchange", "name": name, "layer": column,
                "type": self._records.exchanges[name].type,
            }  # fmt: skip
            return
        if kind == BROKER:
            self.nodes[_id(place)] = {"id": _id(place), "kind": "broker", "name": name, "layer": column}
            return
        thing: TopologyNodeShape = {"id": _id(place), "kind": "queue", "name": name, "layer": column}
        live = live_queue(self._vhost.queues.get(name))
        if live is not None:
            thing["messages"] = live.total_count
            thing["consumers"] = live.consumer_count
            if live.is_paused:
                thing["paused"] = True
        self.nodes[_id(place)] = thing

    def _add_edge(
        self, start: _GraphNode, end: _GraphNode, kind: _Kind, bindings: list[BindingRecord]
    ) -> None:
        keys = list(dict.fromkeys(_key(binding) for binding in bindings[:_KEYS_SHOWN_MAX]))
        self.edges[_id(start), _id(end), kind] = {
            "from": _id(start), "to": _id(end), "kind": kind, "keys": keys, "count": max(1, len(bindings)),
        }  # fmt: skip

    def _ends(self) -> None:
        """Add alternate exchanges, dead-letter exchanges and consumers of the nodes."""
        for thing in list(self.nodes.values()):
            place = (thing["kind"], thing["name"])
            if thing["kind"] == _EXCHANGE:
                exchange = self._vhost.router.exchanges.get(thing["name"])
                self._lead(place, exchange.alternate if exchange is not None else None, "alternate")
            elif (live := live_queue(self._vhost.queues.get(thing["name"]))) is not None:
                self._lead(place, live.settings.dead_letter_exchange, "dead-letter")
                self._consumers(place, live)

    def _lead(self, place: _GraphNode, name: str | None, kind: _Kind) -> None:
        """Add an edge to the exchange `name`, which is named in the settings of `place` instead of bound."""
        if name:
            other = (_EXCHANGE, name)
            self._add(other, self.nodes[_id(place)]["layer"] + 1)
            if _id(other) in self.nodes:
                self._add_edge(place, other, kind, [])

    def _consumers(self, place: _GraphNode, live: VhostQueue) -> None:
        consumers = list(live.consumers())
        for number, consumer in enumerate(consumers[:PICTURED_CONSUMERS_MAX]):
            name = f"{_id(place)} {number}"
            column = self.nodes[_id(place)]["layer"] + 1
            self.nodes[name] = {"id": name, "kind": "consumer", "name": consumer.tag, "layer": column}
            self.edges[_id(place), name, "consumer"] = {
                "from": _id(place), "to": name, "kind": "consumer", "keys": [], "count": 1,
            }  # fmt: skip
        if len(consumers) > PICTURED_CONSUMERS_MAX:
            self.nodes[_id(place)]["more_downstream"] = len(consumers) - PICTURED_CONSUMERS_MAX


@documented(query=TopologyQuery, response=TopologyShape)
async def topology_graph(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the graph of exchanges, queues and consumers around an exchange or queue.

    Users with the tag monitoring see shovels and federation links in it, of virtual hosts in which they have
    permissions; administrators see static shovels as well.
    """
    context = request_context(request, node)
    groups = await _links_for(request, node)
    kind, name = request.query.get("kind", ""), request.query.get("name", "")
    found = _TopologyGraph(context)
    if not kind:
        await found.most_bound()
    elif kind in (_EXCHANGE, _QUEUE):
        await found.around((kind, name))
        if not found.nodes:
            raise missing()
    else:
        raise bad_request(f"kind must be {_EXCHANGE} or {_QUEUE}, not '{kind[:40]}'")
    found.add_links(node, groups, is_around=bool(kind))
    graph = {
        "nodes": [with_deprecated(TopologyNodeShape, shown) for shown in found.nodes.values()],
        "edges": list(found.edges.values()),
        "exchanges_total": sum(map(context.records.has_bindings_from, context.records.exchanges)),
        "links_total": sum(map(len, groups.values())),
    }
    return reply(with_deprecated(TopologyShape, graph))


async def _links_for(request: web.Request, node: ManagedNode) -> LinkGroups:
    """The links that the user sees."""
    user = user_of(request)
    if not is_monitor(user):
        return {}
    vhosts = permitted_vhosts(node, user)
    static = (STATIC_VHOST,) if is_administrator(user) else ()
    return await link_groups(node, vhost_in_path(request, node).name, frozenset((*vhosts, *static)))


async def _grouped(
    bindings: Iterable[BindingRecord], end: Callable[[BindingRecord], _GraphNode]
) -> dict[_GraphNode, list[BindingRecord]]:
    """Index bindings by source or destination, in slices of one turn of the event loop."""
    grouped: dict[_GraphNode, list[BindingRecord]] = {}
    for number, binding in enumerate(bindings, 1):
        grouped.setdefault(end(binding), []).append(binding)
        if not number % LISTED_PER_TURN:
            await asyncio.sleep(0)
    return grouped


def _source(binding: BindingRecord) -> _GraphNode:
    return _EXCHANGE, binding.source


def _destination(binding: BindingRecord) -> _GraphNode:
    return binding.destination_kind, binding.destination


def _key(binding: BindingRecord) -> str:
    """The label of a binding: its routing key or arguments, shortened."""
    if not binding.arguments_bytes:
        return binding.routing_key
    told = ", ".join(f"{name}={json_value(value)}" for name, value in binding.arguments.items())
    return f"{binding.routing_key} {told}".strip()


def _id(place: _GraphNode) -> str:
    return f"{place[0]} {place[1]}"
