"""The router of a vhost: all exchanges as one graph, with a cache of routes.

Invariants:

- `route` returns what a walk of the graph would return now: every change empties the cache.
- Each exchange is visited once and each queue is returned once, in an order determined by the bindings,
  followed by the copies of `copy_to`.
- A route is cached here only if every exchange on its walk decides by the key alone, and the message has no
  CC and no BCC header.
"""

from collections.abc import Callable, Iterable

from warren.errors import NotFound
from warren.limits import ROUTE_DESTINATIONS_CACHED_MAX, ROUTES_CACHED_MAX
from warren.model.message import HAS_HEADERS, Message
from warren.model.multimap import Multimap
from warren.routing.copies import carbon_copies, has_copies
from warren.routing.exchange import BY_CHANCE, BY_KEY, Binding, Exchange

_HAS_HEADERS = HAS_HEADERS
_BY_CHANCE = BY_CHANCE
_BY_KEY = BY_KEY


class Router:
    """The exchanges and bindings of one vhost, and the destinations of a message."""

    __slots__ = (
        "_by_destination", "_copy_targets", "_kept", "_old", "_young", "changed", "exchanges",
        "generation", "vhost_name",
    )  # fmt: skip

    def __init__(self, vhost_name: str) -> None:
        self.vhost_name = vhost_name
        self.exchanges: dict[str, Exchange] = {}
        # Advances with every change; a cached `Route` is stored with this number.
        self.generation = 0
        # Called with every change; None while nobody waits for one.
        self.changed: Callable[[], None] | None = None
        self._by_destination: Multimap[Binding] = Multimap()
        # Destination -> the destination that gets a copy of each message.
        self._copy_targets: dict[object, object] = {}
        self._young: dict[bytes, Route] = {}
        self._old: dict[bytes, Route] = {}
        self._kept = 0

    def add(self, exchange: Exchange) -> None:
        """Add `exchange`, whose name must be new."""
        assert exchange.name not in self.exchanges
        self.exchanges[exchange.name] = exchange
        exchange.watch(self.forget)
        self.forget()

    def remove(self, name: str) -> list[Binding]:
        """Remove the exchange `name`; returns the bindings from it and to it, which are removed as well."""
        exchange = self.exchanges.pop(name)
        # A binding of the exchange to itself is in both lists, and is unbound once.
        touching = [*exchange.each_binding(), *self.bindings_of(exchange)]
        gone = [binding for binding in touching if self.unbind(binding)]
        exchange.watch(None)
        self.forget()
        return gone

    def bind(self, binding: Binding) -> bool:
        """Add `binding` to its source; False if an equal one exists already."""
        if not binding.source.bind(binding):
            return False
        self._by_destination.add(binding.destination, binding)
        return True

    def unbind(self, binding: Binding) -> bool:
        """Remove the binding that equals `binding`; False if there is none."""
        if not binding.source.unbind(binding):
            return False
        self._by_destination.remove(binding.destination, binding)
        return True

    def bindings_of(self, destination: object) -> list[Binding]:
        """All bindings to `destination`, oldest first."""
        return list(self._by_destination.get(destination))

    def copy_to(self, destination: object, target: object) -> None:
        """Route a copy of each message for `destination` to `target` from now on; None ends this."""
        if self._copy_targets.get(destination) is target:
            return
        if target is None:
            del self._copy_targets[destination]
        else:
            self._copy_targets[destination] = target
        self.forget()

    def forget(self) -> None:
        """Empty the cache, since a route may have changed."""
        self.generation += 1
        if self._young or self._old:
            self._young = {}
            self._old = {}
            self._kept = 0
        if self.changed is not None:
            self.changed()

    @property
    def cached_count(self) -> int:
        """The number of cached routes."""
        return len(self._young) + len(self._old)

    def known(self, address: bytes) -> "Route | None":
        """The cached route for messages to `address` without copies; None if there is none."""
        route = self._young.get(address)
        if route is None and self._old:
            route = self._old.get(address)
            if route is not None:
                self._keep(route)
        return route

    def route(self, address: bytes, message: Message) -> tuple[object, ...]:
        """The queues that `message` is routed to, each once; `address` is its exchange and routing key."""
        if message.flags & _HAS_HEADERS and has_copies(message.property_list):
            return self._walk(address, message, carbon_copies(message.headers()), True).destinations
        return self.find(address, message).destinations

    def rehearse(self, address: bytes, message: Message) -> tuple[object, ...]:
        """What `route` would return for `message`, which is not published: no exchange keeps it."""
        route = self.known(address)
        copies: list[str] = []
        if message.flags & _HAS_HEADERS and has_copies(message.property_list):
            route, copies = None, carbon_copies(message.headers())
        if route is None:
            route = self._walk(address, message, copies, False)
        return route.destinations

    def route_from(self, exchange: Exchange, message: Message) -> tuple[object, ...]:
        """The queues that `message` reaches from `exchange`, another one than that of its address."""
        copies = carbon_copies(message.headers()) if message.flags & _HAS_HEADERS else []
        return self._walked(exchange, Walk(self.exchanges, [message.routing_key, *copies], message), True)

    def find(self, address: bytes, message: Message) -> "Route":
        """The route of `message`, which has no copies.

        `Route.decides` says for which messages it is valid.
        """
        route = self.known(address)
        if route is None:
            route = self._walk(address, message, [], True)
            if route.decides == _BY_KEY:
                self._keep(route)
        return route

    def _walk(self, address: bytes, message: Message, copies: list[str], is_published: bool) -> "Route":
        name = decode_name(address, 0)
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise NotFound(f"no exchange '{name}' in vhost '{self.vhost_name}'")
        keys = [decode_name(address, 1 + address[0]), *copies]
        walk = Walk(self.exchanges, keys, message)
        return Route(address, exchange, self._walked(exchange, walk, is_published), walk.decides)

    def _walked(self, exchange: Exchange, walk: "Walk", is_published: bool) -> tuple[object, ...]:
        """The queues that `walk` reaches from `exchange`, and their copies."""
        found = walk.from_exchange(exchange)
        if is_published and walk.keepers is not None:
            for keeper in walk.keepers:
                keeper.keep(walk.message)
        if self._copy_targets:
            beside = [self._copy_targets[one] for one in found if one in self._copy_targets]
            # It may be a copy of several, or be a destination itself.
            found = tuple(dict.fromkeys((*found, *beside)))
        return found

    def _keep(self, route: "Route") -> None:
        # Two generations: when the young one is full it becomes the old one, whose unused routes are dropped.
        # A hit in the old generation moves the route to the young one.
        if len(self._young) >= ROUTES_CACHED_MAX // 2 or self._kept > ROUTE_DESTINATIONS_CACHED_MAX // 2:
            self._old = self._young
            self._young = {}
            self._kept = 0
        self._young[route.address] = route
        self._kept += len(route.destinations)


class Route:
    """The destinations of messages to one address; valid while the router's `generation` is unchanged.

    It is valid for all messages if BY_KEY, for those with equal property lists if BY_PROPERTIES, for one if
    BY_CHANCE.
    """

    __slots__ = ("address", "decides", "destinations", "sole", "source")

    def __init__(
        self, address: bytes, source: Exchange, destinations: tuple[object, ...], decides: int
    ) -> None:
        # The encoded address, which the messages can share.
        self.address = address
        # The exchange that they are published to.
        self.source = source
        self.destinations = destinations
        # The only destination, if there is exactly one: the usual case, which touches two memory locations
        # fewer.
        self.sole = destinations[0] if len(destinations) == 1 else None
        self.decides = decides


class Walk:
    """The walk of one message through the graph of exchanges."""

    __slots__ = ("_exchanges", "_keys", "decides", "keepers", "message")

    def __init__(self, exchanges: dict[str, Exchange], keys: list[str], message: Message) -> None:
        self._exchanges = exchanges
        self._keys = keys
        self.message = message
        # The least predictable `decides` of the exchanges visited.
        self.decides = BY_KEY
        # The exchanges visited that keep messages; None without one.
        self.keepers: list[Exchange] | None = None

    def from_exchange(self, start: Exchange) -> tuple[object, ...]:
        """The queues reached from `start`, each once."""
        seen: dict[Exchange, None] = {start: None}
        queues: dict[object, None] = {}
        waiting = [start]
        for exchange in waiting:
            for destination in self._step(exchange):
                if not isinstance(destination, Exchange):
                    queues[destination] = None
                elif destination not in seen:
                    seen[destination] = None
                    waiting.append(destination)
        return tuple(queues)

    def _step(self, exchange: Exchange) -> Iterable[object]:
        """The destinations of `exchange` for the message, or its alternate exchange if there are none."""
        decides = exchange.decides
        if decides > self.decides:
            self.decides = decides
        if decides == _BY_CHANCE and exchange.is_keeping:
            self.keepers = [*(self.keepers or ()), exchange]
        destinations = list(exchange.route(self._keys[0], self.message))
        if exchange.is_routed_by_copies:
            for key in self._keys[1:]:
                destinations += exchange.route(key, self.message)
        if not destinations and exchange.alternate and exchange.name:
            # RabbitMQ 3.10.8, measured: one that does not exist is no error, the default exchange takes
            # nothing as an alternate, and has none itself.
            alternate = self._exchanges.get(exchange.alternate)
            return () if alternate is None else (alternate,)
        return destinations


def decode_name(data: bytes, at: int) -> str:
    """The short string at `at`."""
    start = at + 1
    return data[start : start + data[at]].decode("utf-8", "surrogateescape")
