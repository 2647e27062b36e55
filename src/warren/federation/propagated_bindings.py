"""Which bindings of a federated exchange are made at its upstream, and with which arguments.

Bindings travel against the messages. A binding gets an entry in its argument `x-bound-from` at each link that
it passes, with the number of hops that a message could still have made to reach this point:

    A ─── messages, max-hops 2 ──▶ B ─── messages, max-hops 1 ──▶ C

    hops at the link to C: 1             a binding of C is made at B ...
    hops at the link to B: min(1-1, 2)   ... and not at A: at C, no message could have made two hops

A binding is made at the upstream once for each key and arguments, however many destinations it has here.
Rules and types are those of RabbitMQ 3.10.8.
"""

from collections.abc import Mapping

from msgspec import Struct

from warren.federation.header_entries import prepended
from warren.metadata.records import BindingRecord
from warren.routing.federation_upstream import CLUSTER_NAME, VHOST, has_passed
from warren.wire.table import Int16, Table, Value

BOUND_FROM = "x-bound-from"
HOPS = "hops"
EXCHANGE = "exchange"

# The largest number of hops that the type of the entry holds.
_HOPS_MAX = 32_767


class LinkPlace(Struct, frozen=True, kw_only=True):
    """Both ends of a link, as far as bindings name them."""

    # This end: the cluster, the vhost and the name of the federated exchange, and the suffix in use.
    cluster_name: str
    vhost: str
    exchange: str
    suffix: str
    # The upstream; its cluster is unknown if it says no name.
    upstream_cluster_name: str | None
    upstream_vhost: str
    max_hops: int


class PropagatedBinding(Struct, frozen=True):
    """A change of a binding at the upstream."""

    is_added: bool
    routing_key: str
    arguments: Table


class PropagatedBindings:
    """The bindings of one federated exchange, by key and arguments, with their destinations here."""

    __slots__ = ("_destinations", "_place")

    def __init__(self, place: LinkPlace) -> None:
        self._place = place
        self._destinations: dict[tuple[str, bytes], set[tuple[bool, str]]] = {}

    def add(self, binding: BindingRecord) -> PropagatedBinding | None:
        """Note `binding`; returns what has to be bound at the upstream, None if nothing has."""
        key = binding.routing_key, binding.arguments_bytes
        known = self._destinations.setdefault(key, set())
        is_first = not known
        known.add((binding.is_to_queue, binding.destination))
        return self._change(binding, is_added=True) if is_first else None

    def remove(self, binding: BindingRecord) -> PropagatedBinding | None:
        """Forget `binding`; returns what has to be unbound at the upstream, None if nothing has."""
        key = binding.routing_key, binding.arguments_bytes
        known = self._destinations.get(key)
        if known is None:
            return None
        known.discard((binding.is_to_queue, binding.destination))
        if known:
            return None
        del self._destinations[key]
        return self._change(binding, is_added=False)

    def _change(self, binding: BindingRecord, *, is_added: bool) -> PropagatedBinding | None:
        arguments = upstream_arguments(binding.arguments, self._place)
        return None if arguments is None else PropagatedBinding(is_added, binding.routing_key, arguments)


def upstream_arguments(arguments: Mapping[str, Value], place: LinkPlace) -> Table | None:
    """The arguments at the upstream of a binding with `arguments`; None if it is not made there."""
    hops = place.max_hops
    entries = arguments.get(BOUND_FROM)
    if isinstance(entries, list):
        if has_passed(entries, place.upstream_cluster_name, place.upstream_vhost):
            return None
        hops = min(_hops(entries) - 1, hops)
    if hops <= 0:
        return None
    entry = {
        CLUSTER_NAME: place.cluster_name,
        VHOST: place.vhost,
        EXCHANGE: f"{place.vhost}:{place.exchange} {place.suffix}",
        HOPS: Int16(min(hops, _HOPS_MAX)),
    }
    return prepended(arguments, BOUND_FROM, entry)


def _hops(entries: list[Value]) -> int:
    """The hops of the last link that a binding has passed; 0 if they are not valid."""
    entry = entries[0] if entries else None
    hops = entry.get(HOPS) if isinstance(entry, dict) else None
    return hops if isinstance(hops, int) and not isinstance(hops, bool) else 0
