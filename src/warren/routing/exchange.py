"""The contract of every exchange: bind, unbind, route; beside it, what a binding is.

An exchange keeps its bindings by their key, since direct, topic and the deletion of one binding all ask
by key. A destination is an exchange or anything else, usually a queue: routing compares it by identity.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from warren.model.message import Message
from warren.model.multimap import Multimap
from warren.model.samples import Samples
from warren.routing.verdict import Verdict

# Where an unroutable message goes instead: RabbitMQ's argument, also a key of policies.
ALTERNATE_EXCHANGE = "alternate-exchange"


# What the answer of an exchange depends on beside its bindings: the routing key; the properties of the
# message as well; or more than can be known, so that the next message like it may go elsewhere.
BY_KEY = 0
BY_PROPERTIES = 1
BY_CHANCE = 2

# Shared by all bindings without arguments, since most have none.
NO_ARGUMENTS: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeSettings:
    """What exchange.declare asked for, beside name and type."""

    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict)


class Binding:
    """One rule of an exchange; equal if source, key, arguments with their types and destination are."""

    __slots__ = ("_hash", "arguments", "destination", "key", "source")

    def __init__(
        self, source: "Exchange", key: str, arguments: Mapping[str, object] | None, destination: object
    ) -> None:
        self.source = source
        self.key = key
        self.arguments = arguments or NO_ARGUMENTS
        self.destination = destination
        # With the arguments in it: one queue may be bound often with the same key and other arguments.
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
        """The arguments are equal, and so are their types."""
        if self.arguments is other.arguments:
            return True
        return fingerprint(self.arguments) == fingerprint(other.arguments)

    def __repr__(self) -> str:
        return f"Binding({self.source!r}, {self.key!r}, {self.arguments!r}, {self.destination!r})"


class Exchange:
    """Names the destinations of a message; knows its own bindings and nothing of other exchanges."""

    __slots__ = (
        "_alternate", "_bindings", "_watcher", "history", "name", "published_in", "published_out",
        "random_octets", "settings",
    )  # fmt: skip

    # The name of the type, as in exchange.declare.
    type_name = ""
    # The keys in the CC and BCC headers are routed like the routing key itself.
    is_routed_by_copies = False

    def __init__(
        self,
        name: str,
        settings: ExchangeSettings,
        random_octets: Callable[[int], bytes] | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.random_octets = random_octets
        # Messages that clients published to it, and how often it had one put into a queue.
        self.published_in = 0
        self.published_out = 0
        # Whoever samples these keeps them here, so that they go with it.
        self.history: Samples | None = None
        self._bindings: Multimap[Binding] = Multimap()
        self._watcher: Callable[[], None] | None = None
        alternate = settings.arguments.get(ALTERNATE_EXCHANGE)
        self._alternate: str | None = alternate if isinstance(alternate, str) else None
        self.prepare()

    @property
    def decides(self) -> int:
        """BY_KEY, BY_PROPERTIES or BY_CHANCE: for which messages the answer of `route` may be kept."""
        return BY_KEY

    @staticmethod
    def validate_arguments(arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed unless an exchange of this type may be declared with `arguments`."""

    def validate_binding(self, key: str, arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed unless a binding with `key` and `arguments` may exist."""

    @property
    def bindings(self) -> int:
        """How many bindings it has."""
        return self._bindings.count

    @property
    def alternate(self) -> str | None:
        """The exchange that takes what this one routes nowhere; by its argument or, set later, by policy."""
        return self._alternate

    @alternate.setter
    def alternate(self, name: str | None) -> None:
        self._alternate = name
        self._changed()

    def bind(self, binding: Binding) -> bool:
        """Add `binding`; False if an equal one is there already."""
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
        """The destinations of `message` in the order of binding; one may come more than once."""
        raise NotImplementedError

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Whether `binding`, one of its own, takes `message`, and why: what `route` does, in words."""
        raise NotImplementedError

    def holds(self, binding: Binding) -> bool:
        """True if `binding` is one of its own, still."""
        return self._bindings.holds(binding.key, binding)

    def each_binding(self) -> Iterator[Binding]:
        """Every binding, those with one key together."""
        return self._bindings.each()

    def watch(self, watcher: Callable[[], None] | None) -> None:
        """Call `watcher` after every change of what is routed where."""
        self._watcher = watcher

    def prepare(self) -> None:
        """A type with attributes of its own gives them their first values."""

    def added(self, binding: Binding) -> None:
        """A type that keeps an index of its own adds `binding` to it."""

    def removed(self, binding: Binding) -> None:
        """A type that keeps an index of its own removes `binding` from it."""

    def _changed(self) -> None:
        if self._watcher is not None:
            self._watcher()

    def __repr__(self) -> str:
        return f"<{self.type_name} exchange {self.name!r}>"


def fingerprint(value: object) -> Hashable:
    """Equal for equal values of equal AMQP types: bindings with 1 as int32 and 1 as int64 are two."""
    if isinstance(value, dict):
        return dict, tuple((name, fingerprint(value[name])) for name in sorted(value))
    if isinstance(value, list):
        return list, tuple(fingerprint(member) for member in value)
    if isinstance(value, float):
        # As text, since a NaN does not equal itself.
        return type(value), value.hex()
    return type(value), value
