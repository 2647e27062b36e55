"""The consistent hash exchange, `x-consistent-hash`: each message goes to one destination, chosen by weight.

The binding key is the weight of the destination, as a number. Messages with the same routing key (or the same
header or property, if the exchange was declared so) go to the same destination until the bindings change, and
then only as many of them move as must (see `hashing`).
"""

import re
from collections.abc import Iterable, Mapping

from warren.errors import PreconditionFailed
from warren.limits import CONSISTENT_HASH_WEIGHT_MAX
from warren.model.erlang_terms import printed_value
from warren.model.message import Message
from warren.model.multimap import Multimap
from warren.routing.exchange import BY_KEY, BY_PROPERTIES, Binding, Exchange
from warren.routing.hashing import SLOTS, destination_name, draw, key_slot, seed
from warren.routing.verdict import Verdict, shown
from warren.wire.table import encode_table

HASH_HEADER = "hash-header"
HASH_PROPERTY = "hash-property"
PROPERTIES = ("correlation_id", "message_id", "timestamp")

_INTEGER = re.compile(r"[+-]?[0-9]+")


class ConsistentHashExchange(Exchange):
    """Routes equal keys to one destination, in proportion to the weights."""

    __slots__ = ("_by_destination", "_candidates", "_header", "_owners", "_property", "_seeds", "_weights")

    type_name = "x-consistent-hash"

    def prepare(self) -> None:
        arguments = self.settings.arguments
        self._header = arguments.get(HASH_HEADER)
        self._property = arguments.get(HASH_PROPERTY)
        self._by_destination: Multimap[Binding] = Multimap()
        # Computed on first use, and dropped when the bindings change.
        self._owners: list[object] = []
        self._candidates: list[object] = []
        self._seeds: list[int] = []
        self._weights: list[float] = []

    @property
    def decides(self) -> int:
        """BY_KEY, unless it hashes a header or a property."""
        return BY_KEY if self._header is None and self._property is None else BY_PROPERTIES

    @staticmethod
    def validate_arguments(arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed with RabbitMQ 3.10.8's texts.

        With our own where RabbitMQ closes with 541.
        """
        header, name = arguments.get(HASH_HEADER), arguments.get(HASH_PROPERTY)
        for argument in (HASH_HEADER, HASH_PROPERTY):
            if argument in arguments and not isinstance(arguments[argument], str):
                raise PreconditionFailed(f"{argument} must be a string")
        if header is not None and name is not None:
            raise PreconditionFailed("hash-header and hash-property are mutually exclusive")
        if name is not None and name not in PROPERTIES:
            raise PreconditionFailed(f"Unsupported property: {name}")

    def validate_binding(self, key: str, arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed unless `key` is a weight; texts of RabbitMQ 3.10.8, measured."""
        if not _INTEGER.fullmatch(key):
            raise PreconditionFailed(f"The binding key must be an integer: {printed_value(key)}")
        weight = int(key)
        if weight < 1:
            raise PreconditionFailed("The binding key must be greater than 0")
        if weight > CONSISTENT_HASH_WEIGHT_MAX:
            raise PreconditionFailed(f"The binding key must not be greater than {CONSISTENT_HASH_WEIGHT_MAX}")

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destination that owns the slot of the hash; none if nothing is bound."""
        if not self._owners and not self._draw_anew():
            return ()
        slot = key_slot(self._hashed(routing_key, message))
        owner = self._owners[slot]
        if owner is None:
            owner = self._owners[slot] = self._candidates[draw(slot, self._seeds, self._weights)]
        return (owner,)

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains which destination owns the slot of the hash.

        Of several bindings to one the oldest counts.
        """
        oldest = next(iter(self._by_destination.get(binding.destination)))
        if oldest is not binding:
            return Verdict(
                False,
                f"an older binding of the same destination, with weight {oldest.key}, is used instead",
                0.0,
            )
        (owner,) = self.route(routing_key, message)
        slot = key_slot(self._hashed(routing_key, message))
        told = f"the hash of {self._hashed_name(routing_key, message)} falls into slot {slot} of {SLOTS}"
        if owner is binding.destination:
            return Verdict(True, f"{told}, which it owns with its weight of {binding.key}")
        return Verdict(
            False, f"{told}, which another destination owns; the weight of this one is {binding.key}", 0.0
        )

    def _hashed_name(self, routing_key: str, message: Message) -> str:
        """A description of what is hashed."""
        if self._header is not None:
            return f"the header {shown(self._header)}, {shown(self._hashed_value(routing_key, message))},"
        if self._property is not None:
            return f"the property {self._property}, {shown(self._hashed_value(routing_key, message))},"
        return f"the routing key {shown(routing_key)}"

    def _hashed_value(self, routing_key: str, message: Message) -> object:
        if self._header is not None:
            return message.headers().get(str(self._header))
        if self._property is not None:
            value: object = getattr(message.properties(), str(self._property))
            return value
        return routing_key

    def _hashed(self, routing_key: str, message: Message) -> bytes:
        value = self._hashed_value(routing_key, message)
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        # Messages without the header or the property all go to one destination, as in RabbitMQ.
        return encode_table({"": value})

    def _draw_anew(self) -> bool:
        """Collect the candidates, each with the weight of its oldest binding; False if there are none."""
        for binding in self._by_destination.each_first():
            self._candidates.append(binding.destination)
            kind = "exchange" if isinstance(binding.destination, Exchange) else "queue"
            self._seeds.append(seed(f"{kind} {destination_name(binding.destination)}"))
            self._weights.append(float(binding.key))
        if not self._candidates:
            return False
        if len(set(self._weights)) == 1:
            self._weights = []
        self._owners = [None] * SLOTS
        return True

    def added(self, binding: Binding) -> None:
        self._by_destination.add(binding.destination, binding)
        self._forget()

    def removed(self, binding: Binding) -> None:
        self._by_destination.remove(binding.destination, binding)
        self._forget()

    def _forget(self) -> None:
        if self._candidates:
            self._owners, self._candidates, self._seeds, self._weights = [], [], [], []
