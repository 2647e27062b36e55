"""The direct exchange: to every binding whose key is the routing key (0-9-1 §3.1.3.1)."""

from collections.abc import Iterable

from warren.model.message import Message
from warren.routing.exchange import Exchange


class DirectExchange(Exchange):
    """One dict lookup by routing key."""

    __slots__ = ()

    type_name = "direct"
    is_routed_by_copies = True

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destinations bound with exactly `routing_key`."""
        return [binding.destination for binding in self._bindings.get(routing_key)]
