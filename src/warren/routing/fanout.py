"""The fanout exchange: routes to all bindings, whatever the key (0-9-1 §3.1.3.2)."""

from collections.abc import Iterable

from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange
from warren.routing.verdict import Verdict


class FanoutExchange(Exchange):
    """Routes every message to all its destinations."""

    __slots__ = ("_destinations",)

    type_name = "fanout"

    def prepare(self) -> None:
        # Each destination with the number of its bindings, so that each is visited once.
        self._destinations: dict[object, int] = {}

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """All bound destinations."""
        return self._destinations

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains that every binding of a fanout exchange matches."""
        return Verdict(True, "a fanout exchange routes every message to all bindings")

    def added(self, binding: Binding) -> None:
        self._destinations[binding.destination] = self._destinations.get(binding.destination, 0) + 1

    def removed(self, binding: Binding) -> None:
        self._destinations[binding.destination] -= 1
        if not self._destinations[binding.destination]:
            del self._destinations[binding.destination]
