"""The fanout exchange: to every binding, whatever the key (0-9-1 §3.1.3.2)."""

from collections.abc import Iterable

from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange
from warren.routing.verdict import Verdict


class FanoutExchange(Exchange):
    """All its destinations, always."""

    __slots__ = ("_destinations",)

    type_name = "fanout"

    def prepare(self) -> None:
        # Each destination with the number of its bindings, so that one bound often is walked once.
        self._destinations: dict[object, int] = {}

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """Every destination bound."""
        return self._destinations

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Always."""
        return Verdict(True, "a fanout exchange sends everything along every binding")

    def added(self, binding: Binding) -> None:
        self._destinations[binding.destination] = self._destinations.get(binding.destination, 0) + 1

    def removed(self, binding: Binding) -> None:
        self._destinations[binding.destination] -= 1
        if not self._destinations[binding.destination]:
            del self._destinations[binding.destination]
