"""The random exchanges: each message goes to one binding, chosen at random; binding keys are ignored.

`x-random` is RabbitMQ's plugin. `x-local-random` is RabbitMQ 4's: only queues of the local node take part,
which here are all destinations.
"""

from collections.abc import Iterable, Mapping

from warren.errors import PreconditionFailed
from warren.model.arguments import CLASSIC
from warren.model.message import Message
from warren.routing.exchange import BY_CHANCE, Binding, Exchange
from warren.routing.hashing import destination_name, key_hash
from warren.routing.verdict import Verdict

_BYTES = 8


class RandomExchange(Exchange):
    """Routes to one destination, chosen at random."""

    __slots__ = ("_drawn_from", "choice_seed")

    type_name = "x-random"

    def prepare(self) -> None:
        # The destinations of all bindings; None after a change.
        self._drawn_from: list[object] | None = None
        # If set, the choice is determined by it, the name of the exchange and the bindings, whatever their
        # order.
        self.choice_seed: bytes | None = None

    @property
    def decides(self) -> int:
        """BY_CHANCE: the next message with the same key may be routed elsewhere."""
        return BY_CHANCE

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """One of the destinations; none if nothing is bound."""
        destinations = self._drawn_from
        if destinations is None:
            destinations = self._drawn_from = [binding.destination for binding in self.each_binding()]
        if len(destinations) < 2:
            return destinations
        if self.choice_seed is not None:
            return (max(self.each_binding(), key=self._seeded_rank).destination,)
        assert self.random_bytes is not None
        return (destinations[int.from_bytes(self.random_bytes(_BYTES), "big") % len(destinations)],)

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains that the binding is one of several that can be drawn."""
        if self.bindings < 2:
            return Verdict(True, "the only binding of an exchange that chooses at random")
        return Verdict(
            True, f"chosen at random: one of {self.bindings} bindings each time", chance=1 / self.bindings
        )

    def _seeded_rank(self, binding: Binding) -> int:
        assert self.choice_seed is not None
        names = f"{self.name}\0{binding.key}\0{destination_name(binding.destination)}"
        return key_hash(self.choice_seed + names.encode("utf-8", "surrogateescape"))

    def added(self, binding: Binding) -> None:
        self._drawn_from = None

    def removed(self, binding: Binding) -> None:
        self._drawn_from = None


class LocalRandomExchange(RandomExchange):
    """Routes to one destination on this node, chosen at random."""

    __slots__ = ()

    type_name = "x-local-random"

    def validate_binding(self, key: str, arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed unless `key` is empty; texts of RabbitMQ 4.3.6, measured."""
        if key:
            raise PreconditionFailed(f"Non empty binding '{key}' key not permitted")

    def validate_destination(self, queue_kind: str | None) -> None:
        """Raise PreconditionFailed unless a classic queue is bound: others are on several nodes."""
        if queue_kind is None:
            raise PreconditionFailed("Destination not found")
        if queue_kind != CLASSIC:
            raise PreconditionFailed(f"Queue type rabbit_{queue_kind}_queue not valid for this exchange type")
