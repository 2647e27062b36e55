"""The modulus hash exchange, `x-modulus-hash`: one of N bindings, by the hash of the routing key modulo N.

As documented for RabbitMQ 4.3: the same key goes to the same destination while the bindings are unchanged,
also after a restart; binding keys are ignored. A destination bound twice counts twice.
"""

from collections.abc import Iterable

from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange
from warren.routing.hashing import destination_name, key_hash
from warren.routing.verdict import Verdict, shown


class ModulusHashExchange(Exchange):
    """Routes equal routing keys to one destination; all bindings are equal."""

    __slots__ = ("_ordered",)

    type_name = "x-modulus-hash"

    def prepare(self) -> None:
        # The destinations in order of name; None after a change.
        self._ordered: list[object] | None = None

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destination that `routing_key` selects; none if nothing is bound."""
        ordered = self._in_order()
        return (ordered[_remainder(routing_key, len(ordered))],) if ordered else ()

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains which position the routing key selects; binding keys are ignored."""
        ordered = self._in_order()
        place = _remainder(routing_key, len(ordered))
        told = f"the hash of {shown(routing_key)} modulo {len(ordered)} is {place}"
        if ordered[place] is binding.destination:
            return Verdict(True, f"{told}: its position in the order of names")
        return Verdict(False, f"{told}: the position of another destination in the order of names", 0.0)

    def _in_order(self) -> list[object]:
        """The destinations in order of name."""
        ordered = self._ordered
        if ordered is None:
            ordered = [binding.destination for binding in self.each_binding()]
            ordered.sort(
                key=lambda destination: (isinstance(destination, Exchange), destination_name(destination))
            )
            self._ordered = ordered
        return ordered

    def added(self, binding: Binding) -> None:
        self._ordered = None

    def removed(self, binding: Binding) -> None:
        self._ordered = None


def _remainder(routing_key: str, count: int) -> int:
    return key_hash(routing_key.encode("utf-8", "surrogateescape")) % count
