"""The direct exchange: routes to the bindings whose key equals the routing key (0-9-1 §3.1.3.1)."""

from collections.abc import Iterable

from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange
from warren.routing.verdict import Verdict, likeness, shown

# Closer than keys that differ in other characters.
_ALL_BUT = 0.999


class DirectExchange(Exchange):
    """Routes to the bindings whose key equals the routing key."""

    __slots__ = ()

    type_name = "direct"
    is_routed_by_copies = True

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destinations bound with exactly `routing_key`."""
        return [binding.destination for binding in self._bindings.get(routing_key)]

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains whether the binding's key equals the routing key."""
        key = binding.key
        if key == routing_key:
            return Verdict(True, f"the routing key is {shown(key)}")
        told = f"bound with {shown(key)}, the routing key is {shown(routing_key)}"
        if key.strip().casefold() == routing_key.strip().casefold():
            return Verdict(False, f"{told}: they differ in case or in spaces only", _ALL_BUT)
        return Verdict(False, told, likeness(key, routing_key))
