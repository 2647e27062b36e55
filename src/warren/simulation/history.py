"""What clients of a simulated broker were told, and what must therefore be true: the promises of the guide.

A `Copy` is one message in one queue. What is known of it follows from what clients have sent and what the
broker has written; where both orders are possible, nothing is required.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from warren.wire.table import Value


class Violation(Exception):
    """A promise was broken, as the text says."""


class QueueSpecification(Struct, frozen=True, kw_only=True):
    """A queue as clients declare it, and what it promises."""

    vhost: str
    name: str
    durable: bool = True
    exclusive: bool = False
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
    # Where it is bound when it is declared: exchanges, with the empty routing key.
    bound_to: tuple[str, ...] = ()
    # True if clients may delete it.
    can_be_deleted: bool = True

    @property
    def is_quorum(self) -> bool:
        """True if it stores transient messages too, ignores priorities, and never forgets a delivery."""
        return self.arguments.get("x-queue-type") == "quorum"


class Publisher(Struct, eq=False):
    """One channel that publishes: the order of its messages is kept in each queue."""

    name: str


class Copy(Struct, eq=False):
    """One message in one queue."""

    id: int
    publisher: Publisher
    persistent: bool
    priority: int
    # True while it must be there: it was confirmed, and nobody has settled it.
    is_promised: bool = False
    # True if a client has settled it, so that it may be gone; and true if it must be gone.
    is_settled: bool = False
    is_gone: bool = False
    # True if the next delivery must have the flag `redelivered`.
    is_delivered: bool = False
    # Where it is delivered and not settled: a channel; None if nowhere.
    holder: object | None = None
    # The channel on which it was settled, until that is known to have arrived.
    settled_on: object | None = None


class QueueHistory(Struct, eq=False):
    """What is known of one queue."""

    specification: QueueSpecification
    # True if it exists for certain: it was declared, and nothing has been sent since that could delete it.
    exists: bool = False
    # The channels with a deletion or a purge under way, and the number of deletions that were ever sent.
    deleters: dict[object, None] = field(default_factory=dict)
    epoch: int = 0
    copies: dict[int, Copy] = field(default_factory=dict)

    @property
    def survives(self) -> bool:
        """True if it exists again after a crash."""
        return self.specification.durable and not self.specification.exclusive

    def declared(self, epoch: int) -> None:
        """A declaration was answered that was sent in `epoch`."""
        if epoch == self.epoch and not self.deleters:
            self.exists = True

    def deleting(self, holder: object) -> None:
        """A client deletes it on the channel `holder`."""
        self.exists = False
        self.epoch += 1
        self.purging(holder)

    def purging(self, holder: object) -> None:
        """A client purges it on the channel `holder`: nothing that was sent to it so far is promised."""
        self.deleters[holder] = None
        for copy in self.copies.values():
            copy.is_promised = False
            copy.is_settled = True


class Tally(Struct):
    """What happened, counted."""

    published: int = 0
    confirmed: int = 0
    delivered: int = 0
    redelivered: int = 0
    settled: int = 0
    inspected: int = 0
    promised: int = 0


class History:
    """Everything that clients and the broker have told each other, as far as a promise depends on it."""

    def __init__(self, specifications: Iterable[QueueSpecification]) -> None:
        self.queues = [QueueHistory(specification) for specification in specifications]
        self.tally = Tally()
        self._last_id = 0
        # The last message delivered for the first time, by consumer, publisher and priority.
        self._last: dict[tuple[object, Publisher, int], int] = {}

    def next_id(self) -> int:
        """The id of a new message."""
        self._last_id += 1
        return self._last_id

    def published(
        self, id: int, queues: Iterable[QueueHistory], copy: Copy
    ) -> list[tuple[QueueHistory, Copy]]:
        """A client sends a message to `queues`, as far as they exist; returns what a confirm promises."""
        self.tally.published += 1
        certain = []
        for queue in queues:
            is_quorum = queue.specification.is_quorum
            own = Copy(id, copy.publisher, copy.persistent or is_quorum, 0 if is_quorum else copy.priority)
            queue.copies[id] = own
            if queue.exists and not queue.deleters:
                certain.append((queue, own))
        return certain

    def confirmed(self, copies: Iterable[tuple[QueueHistory, Copy]]) -> None:
        """The broker has confirmed a message: it must be in these queues if they still exist."""
        self.tally.confirmed += 1
        for queue, copy in copies:
            if queue.exists and queue.specification.keeps_all and not (copy.is_settled or copy.is_gone):
                copy.is_promised = True

    def delivered(
        self, queue: QueueHistory, id: int, holder: object, consumer: object, *, flag: bool
    ) -> Copy:
        """The broker has written a delivery of `id` from `queue` to `consumer`."""
        name = queue.specification.name
        copy = queue.copies.get(id)
        self.tally.delivered += 1
        self.tally.redelivered += flag
        if copy is None:
            if not queue.specification.takes_others:
                raise Violation(
                    f"message {id} is delivered from queue '{name}', to which nobody published it"
                )
            copy = queue.copies[id] = Copy(id, Publisher("elsewhere"), persistent=True, priority=0)
        if queue.specification.takes_others:
            return copy
        if copy.is_gone:
            raise Violation(f"message {id} of queue '{name}' came back after it was acknowledged and synced")
        if copy.holder is not None:
            raise Violation(f"message {id} of queue '{name}' is delivered to two consumers at the same time")
        if copy.is_delivered and not flag:
            raise Violation(f"message {id} of queue '{name}' is delivered again without the flag")
        if not flag:
            key = (consumer, copy.publisher, copy.priority)
            last = self._last.get(key, 0)
            if last > id:
                raise Violation(f"message {id} of queue '{name}' is delivered behind message {last}")
            self._last[key] = id
        copy.is_delivered = True
        copy.holder = holder
        return copy

    def settled(self, copy: Copy, holder: object) -> None:
        """A client has acknowledged or rejected a delivery: it may be gone, and is once that has arrived."""
        self.tally.settled += 1
        copy.holder = None
        copy.is_settled = True
        copy.is_promised = False
        copy.settled_on = holder

    def released(self, holder: object) -> None:
        """A channel has ended: its deliveries return; what it settled last may not have arrived."""
        for queue in self.queues:
            queue.deleters.pop(holder, None)
            for copy in queue.copies.values():
                if copy.holder is holder:
                    copy.holder = None
                if copy.settled_on is holder:
                    copy.settled_on = None

    def synced(self) -> None:
        """Nothing is under way, and everything is on the disk: what was settled is gone."""
        for queue in self.queues:
            for copy in queue.copies.values():
                if copy.settled_on is not None:
                    copy.settled_on = None
                    copy.is_gone = True

    def crashed(self, *, is_power_lost: bool) -> None:
        """The broker has ended, and what was not on the disk is lost."""
        self._last.clear()
        for queue in self.queues:
            if not queue.survives:
                queue.exists = False
            queue.deleters.clear()
            for copy in queue.copies.values():
                copy.holder = None
                copy.settled_on = None
                if not (queue.survives and copy.persistent):
                    copy.is_promised = False
                    copy.is_gone = True
                if is_power_lost and not queue.specification.is_quorum:
                    # What was delivered since the last sync may be delivered again without the flag.
                    copy.is_delivered = False

    def inspected(self, queue: QueueHistory, ids: list[int]) -> None:
        """All messages of `queue`, in the order of their delivery to the only consumer, are `ids`."""
        name = queue.specification.name
        self.tally.inspected += len(ids)
        there = set(ids)
        if len(there) != len(ids) and not queue.specification.takes_others:
            raise Violation(f"queue '{name}' has a message twice: {ids}")
        length_max = queue.specification.length_max
        if length_max is not None and len(ids) > length_max:
            raise Violation(f"queue '{name}' has {len(ids)} messages, more than {length_max}")
        for copy in queue.copies.values():
            self.tally.promised += copy.is_promised
            if copy.is_promised and copy.id not in there:
                raise Violation(
                    f"message {copy.id} of queue '{name}' was confirmed and is lost; there are {ids}"
                )
        if not queue.specification.takes_others:
            self._check_order(queue, ids)

    def _check_order(self, queue: QueueHistory, ids: list[int]) -> None:
        last: dict[tuple[Publisher, int], int] = {}
        for id in ids:
            copy = queue.copies[id]
            key = (copy.publisher, copy.priority)
            if last.get(key, 0) > id:
                raise Violation(
                    f"queue '{queue.specification.name}' has message {id} behind message {last[key]} of the "
                    "same channel"
                )
            last[key] = id
