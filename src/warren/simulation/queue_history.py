"""What is known of one queue of a simulated broker, and of each message in it."""

from collections.abc import Mapping

from msgspec import Struct, field

from warren.model.arguments import QUORUM, STREAM
from warren.simulation.chain_history import ChainHistory
from warren.simulation.existence import Existence
from warren.simulation.expected_routes import BindingSpecification
from warren.simulation.message_copy import Copy
from warren.simulation.stream_history import StreamHistory
from warren.wire.table import Value

_KIND = "x-queue-type"


class QueueSpecification(Struct, frozen=True, kw_only=True):
    """A queue as clients declare it, and what it promises."""

    vhost: str
    name: str
    durable: bool = True
    # The client whose connection it belongs to; empty if it is not exclusive.
    owner: str = ""
    auto_delete: bool = False
    arguments: Mapping[str, Value] = field(default_factory=dict)
    # False if it may drop messages: a limit of length or time, or one that a policy could set.
    keeps_all: bool = True
    # True if it refuses messages, which only publisher confirms tell.
    may_refuse: bool = False
    # The most messages that it may have; None is no limit.
    length_max: int | None = None
    # True if messages come from elsewhere too, such as dead letters.
    takes_others: bool = False
    # What clients bind it to when they declare it.
    bindings: tuple[BindingSpecification, ...] = ()
    # The queue at the beginning of its chain of dead letters, which is never left; empty if it has none.
    chain: str = ""
    # The queue that gets its dead letters, if that may be full or have no route; empty if it never is.
    dead_letter_target: str = ""
    # True if it is the last one, which drops what is rejected.
    is_chain_end: bool = False
    # True if the definitions declare it, so that it is there after each start, and clients do not delete it.
    is_defined: bool = False

    @property
    def is_quorum(self) -> bool:
        """True if it stores transient messages too, and never forgets a delivery."""
        return self.arguments.get(_KIND) == QUORUM

    @property
    def is_stream(self) -> bool:
        """True if its messages have offsets, and stay when they are acknowledged."""
        return self.arguments.get(_KIND) == STREAM

    @property
    def keeps_dead_letters(self) -> bool:
        """True if its dead letters are published at least once."""
        return self.arguments.get("x-dead-letter-strategy") == "at-least-once"

    @property
    def ttl_ms(self) -> int | None:
        """The time to live of its messages (ms); None if they have none."""
        ttl_ms = self.arguments.get("x-message-ttl")
        assert ttl_ms is None or isinstance(ttl_ms, int)
        return ttl_ms

    @property
    def may_expire(self) -> bool:
        """True if its messages may have an expiration of their own."""
        return not self.is_stream and (bool(self.chain) or not self.keeps_all)

    @property
    def delays_ms(self) -> tuple[int, int]:
        """The shortest and the longest delay of a message that comes back, whatever the reason (ms)."""
        if self.arguments.get("x-delayed-retry-type") != "all":
            return 0, 0
        least, most = (self.arguments.get(f"x-delayed-retry-{which}", 0) for which in ("min", "max"))
        assert isinstance(least, int)
        assert isinstance(most, int)
        return least, most

    @property
    def may_vanish(self) -> bool:
        """True if it may be deleted without a request."""
        return self.auto_delete or "x-expires" in self.arguments


class QueueHistory(Struct, eq=False):
    """What is known of one queue."""

    specification: QueueSpecification
    existence: Existence = field(default_factory=Existence)
    bindings: list[tuple[BindingSpecification, Existence]] = field(default_factory=list)
    # The channels with a deletion or a purge under way, and what it removes for certain.
    deleters: dict[object, list[Copy]] = field(default_factory=dict)
    # What was removed, and may come back in a crash until that is on the disk.
    removed: list[Copy] = field(default_factory=list)
    copies: dict[int, Copy] = field(default_factory=dict)
    # Of a stream, and of the chain of dead letters that begins here.
    stream: StreamHistory | None = None
    chain: ChainHistory | None = None

    @property
    def exists(self) -> bool:
        """True if it exists for certain."""
        return self.existence.is_certain

    @property
    def existences(self) -> list[Existence]:
        """Those of the queue and of its bindings."""
        return [self.existence, *(existence for _, existence in self.bindings)]

    @property
    def survives(self) -> bool:
        """True if it exists again after a crash."""
        return self.specification.durable and not self.specification.owner

    def defined(self) -> None:
        """The definitions, which have just been applied, have it with its bindings."""
        for existence in self.existences:
            existence.created(existence.creating())

    def deleting(self, holder: object) -> None:
        """A client deletes it on the channel `holder`."""
        for existence in self.existences:
            existence.ending(holder)
        if self.stream is not None:
            self.stream.ending()
        self.purging(holder)

    def deleted(self, holder: object) -> None:
        """The deletion on `holder` was answered."""
        for existence in self.existences:
            existence.ended(holder)
        self.purged(holder)

    def purged(self, holder: object) -> None:
        """The purge on `holder` was answered."""
        self.removed += self.deleters.pop(holder, [])

    def at_rest(self) -> None:
        """Nothing is under way, and everything is on the disk: what was settled or removed is gone."""
        for existence in self.existences:
            existence.at_rest()
        if self.stream is not None:
            self.stream.at_rest()
        for copy in self.copies.values():
            copy.is_returning = False
            if copy.settled_on is not None:
                copy.settled_on = None
                copy.is_gone = True
        for copy in self.removed:
            # What was delivered at that time was not purged.
            copy.is_gone = copy.is_gone or not copy.is_delivered
        self.removed = []

    def vanishing(self) -> None:
        """The connection that it belongs to is ending."""
        for existence in self.existences:
            existence.vanishing()
        for copy in self.copies.values():
            # What was told to be there was in this queue, not in the next one with its name.
            copy.is_gone = copy.is_gone or copy.is_promised or copy.is_delivered
            copy.is_promised = False

    def purging(self, holder: object) -> None:
        """A client purges it on the channel `holder`: nothing that was sent to it so far is promised."""
        self.deleters[holder] = (
            []
            if self.specification.chain
            else [copy for copy in self.copies.values() if copy.is_promised and not copy.is_delivered]
        )
        for copy in self.copies.values():
            copy.is_promised = False
            copy.is_settled = True
