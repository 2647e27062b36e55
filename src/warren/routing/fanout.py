"""The fanout exchange: to every binding, whatever the key (0-9-1 §3.1.3.2)."""

from collections.abc import Iterable

from warren.routing.exchange import Exchange, Message


class FanoutExchange(Exchange):
    """All its destinations, always."""

    __slots__ = ()

    type_name = "fanout"

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """Every destination bound."""
        return [binding.destination for binding in self._bindings.each()]
