"""The interface of all exchange types (bind, unbind, route), and bindings.

An exchange stores its bindings by key, since direct and topic exchanges and the deletion of a binding all
look up by key. A destination is an exchange or any other object, usually a queue; destinations are compared
by identity.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from msgspec import Struct, field

from warren.model.message import Message
from warren.model.multimap import Multimap
from warren.model.samples import Samples
from warren.routing.verdict import Verdict

# The argument with the alternate exchange, which is also a key of policies.
ALTERNATE_EXCHANGE = "alternate-exchange"


# What the result of an exchange depends on beside its bindings: the routing key; the message's properties as
# well; or chance, so that an equal message may be routed elsewhere.
BY_KEY = 0
BY_PROPERTIES = 1
BY_CHANCE = 2

# Shared by all bindings without arguments, since most have none.
NO_ARGUMENTS: Mapping[str, object] = {}


class ExchangeSettings(Struct, frozen=True, kw_only=True):
    """The properties given in exchange.declare, beside name and type."""

    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict)


class Binding:
    """A binding of an exchange; equal if source, key, typed arguments and destination are equal."""

    __slots__ = ("_hash", "arguments", "destination", "key", "source")

    def __init__(
        self, source: "Exchange", key: str, arguments: Mapping[str, object] | None, destination: object
    ) -> None:
        self.source = source
        self.key = key
        self.arguments = arguments or NO_ARGUMENTS
        self.destination = destination
        # Includes the arguments, since a queue can be bound repeatedly with the same key and other arguments.
        self._hash = hash((key, id(destination), fingerprint(arguments) if arguments else None))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Binding):
            return False
        return (
            self.destination is other.destination
            and self.source is other.source
            and self.key == other.key
            and self.has_arguments_of(other)
        )

    def __hash__(self) -> int:
        return self._hash

    def has_arguments_of(self, other: "Binding") -> bool:
        """True if the arguments and their types are equal to those of `other`."""
        if self.arguments is other.arguments:
            return True
        return fingerprint(self.arguments) == fingerprint(other.arguments)

    def __repr__(self) -> str:
        return f"Binding({self.source!r}, {self.key!r}, {self.arguments!r}, {self.destination!r})"


class Exchange:
    """Determines the destinations of a message by its own bindings, without knowing other exchanges."""

    __slots__ = (
        "_alternate", "_bindings", "_watcher", "history", "name", "published_in", "published_out",
        "random_bytes", "settings",
    )  # fmt: skip

    # The name of the type, as in exchange.declare.
    type_name = ""
    # True if the keys in the CC and BCC headers are routed like the routing key.
    is_routed_by_copies = False
    # True if it is told of each message that it has routed.
    is_keeping = False
    # What the type is for if only other brokers declare such exchanges; empty if clients do.
    internal_purpose = ""
    # The arguments that a repeated declaration must have with the same values.
    compared_arguments = (ALTERNATE_EXCHANGE,)

    def __init__(
        self,
        name: str,
        settings: ExchangeSettings,
        random_bytes: Callable[[int], bytes] | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.random_bytes = random_bytes
        # Messages published to it by clients, and the number of times it routed one to a queue.
        self.published_in = 0
        self.published_out = 0
        # The sampled history of these, kept here so that it is dropped with the exchange.
        self.history: Samples | None = None
        self._bindings: Multimap[Binding] = Multimap()
        self._watcher: Callable[[], None] | None = None
        alternate = settings.arguments.get(ALTERNATE_EXCHANGE)
        self._alternate: str | None = alternate if isinstance(alternate, str) else None
        self.prepare()

    @property
    def decides(self) -> int:
        """BY_KEY, BY_PROPERTIES or BY_CHANCE: for which messages the result of `route` may be cached."""
        return BY_KEY

    @staticmethod
    def validate_arguments(arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed unless an exchange of this type may be declared with `arguments`."""

    def validate_binding(self, key: str, arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed unless a binding with `key` and `arguments` is valid."""

    def validate_destination(self, queue_kind: str | None) -> None:
        """Raise PreconditionFailed unless a queue of `queue_kind`, or an exchange (None), may be bound."""

    @property
    def bindings(self) -> int:
        """The number of its bindings."""
        return self._bindings.count

    @property
    def alternate(self) -> str | None:
        """The alternate exchange for unroutable messages, from its argument or a policy."""
        return self._alternate

    @alternate.setter
    def alternate(self, name: str | None) -> None:
        self._alternate = name
        self._changed()

    def bind(self, binding: Binding) -> bool:
        """Add `binding`; False if an equal one exists already."""
        if not self._bindings.add(binding.key, binding):
            return False
        self.added(binding)
        self._changed()
        return True

    def unbind(self, binding: Binding) -> bool:
        """Remove the binding that equals `binding`; False if there is none."""
        removed = self._bindings.remove(binding.key, binding)
        if removed is None:
            return False
        self.removed(removed)
        self._changed()
        return True

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destinations of `message` in the order of binding; one may occur repeatedly."""
        raise NotImplementedError

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Whether `binding`, which must be one of its own, matches `message`, with the reason.

        Agrees with `route`.
        """
        raise NotImplementedError

    def holds(self, binding: Binding) -> bool:
        """True if `binding` is still one of its own."""
        return self._bindings.holds(binding.key, binding)

    def each_binding(self) -> Iterator[Binding]:
        """All bindings, grouped by key."""
        return self._bindings.each()

    def watch(self, watcher: Callable[[], None] | None) -> None:
        """Call `watcher` after every change of the bindings or the alternate exchange."""
        self._watcher = watcher

    def keep(self, message: Message) -> None:
        """Hook: a type with `is_keeping` keeps `message`, which it has routed."""

    def recent(self) -> tuple[Message, ...]:
        """The messages that it gives to each new binding, oldest first."""
        return ()

    def prepare(self) -> None:
        """Hook: a type with attributes of its own initialises them."""

    def added(self, binding: Binding) -> None:
        """Hook: a type with an index of its own adds `binding` to it."""

    def removed(self, binding: Binding) -> None:
        """Hook: a type with an index of its own removes `binding` from it."""

    def _changed(self) -> None:
        if self._watcher is not None:
            self._watcher()

    def __repr__(self) -> str:
        return f"<{self.type_name} exchange {self.name!r}>"


def fingerprint(value: object) -> Hashable:
    """Equal for equal values of equal AMQP types: 1 as int32 and 1 as int64 differ."""
    if isinstance(value, dict):
        return dict, tuple((name, fingerprint(value[name])) for name in sorted(value))
    if isinstance(value, list):
        return list, tuple(fingerprint(member) for member in value)
    if isinstance(value, float):
        # As text, since a NaN does not equal itself.
        return type(value), value.hex()
    return type(value), value
