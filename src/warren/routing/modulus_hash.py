"""The modulus hash exchange, `x-modulus-hash`: one of N bindings, by the hash of the routing key modulo N.

As RabbitMQ 4.3 documents it: the same key goes to the same destination for as long as the bindings stay the
same, also after a restart; binding keys mean nothing. A destination bound twice counts twice.
"""

from collections.abc import Iterable

from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange
from warren.routing.hashing import destination_name, key_hash


class ModulusHashExchange(Exchange):
    """One destination for equal routing keys, all bindings alike."""

    __slots__ = ("_ordered",)

    type_name = "x-modulus-hash"

    def prepare(self) -> None:
        # The destinations by name, or None after a change.
        self._ordered: list[object] | None = None

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The one destination that `routing_key` falls to; none if nothing is bound."""
        ordered = self._ordered
        if ordered is None:
            ordered = [binding.destination for binding in self.each_binding()]
            ordered.sort(
                key=lambda destination: (isinstance(destination, Exchange), destination_name(destination))
            )
            self._ordered = ordered
        if not ordered:
            return ()
        return (ordered[key_hash(routing_key.encode("utf-8", "surrogateescape")) % len(ordered)],)

    def added(self, binding: Binding) -> None:
        self._ordered = None

    def removed(self, binding: Binding) -> None:
        self._ordered = None
