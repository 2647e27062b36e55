"""What clients of a simulated broker were told, and what must be true because of it."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from warren.simulation.chain_history import ChainHistory
from warren.simulation.existence import Existence
from warren.simulation.expected_routes import ExchangeSpecification, matches, reached
from warren.simulation.message_copy import Copy, Publisher
from warren.simulation.queue_history import QueueHistory, QueueSpecification
from warren.simulation.stream_history import StreamHistory
from warren.simulation.violation import Violation
from warren.wire.table import Value


class Tally(Struct):
    """What happened, counted."""

    published: int = 0
    confirmed: int = 0
    delivered: int = 0
    redelivered: int = 0
    settled: int = 0
    inspected: int = 0
    promised: int = 0
    returned: int = 0
    from_streams: int = 0
    dead_lettered: int = 0


class Promise(Struct, eq=False):
    """A message that a queue gets for certain, unless what it depends on has changed before it arrives."""

    queue: QueueHistory
    copy: Copy
    # The queue and the binding, with the number of requests to end them at the time of the publish.
    existences: list[tuple[Existence, int]]


class Route(Struct, eq=False):
    """The queues that a message may reach, and what that depends on."""

    # All that it reaches if they and their bindings exist by the time it arrives.
    queues: list[QueueHistory] = field(default_factory=list)
    # True if one of them may exist when it is sent.
    is_possible: bool = False
    # The existences that bring it to a queue for certain, by the queue's place in `queues`.
    certain: dict[int, list[tuple[Existence, int]]] = field(default_factory=dict)
    # All that could bring it to a queue, with their versions.
    watched: list[tuple[Existence, int]] = field(default_factory=list)

    @property
    def must_be_returned(self) -> bool:
        """True if no queue can have got it."""
        is_unchanged = all(existence.version == version for existence, version in self.watched)
        return not self.is_possible and is_unchanged

    @property
    def must_not_be_returned(self) -> bool:
        """True if a queue has certainly got it."""
        return any(_are_unchanged(existences) for existences in self.certain.values())


class History:
    """Everything that clients and the broker have told each other, as far as a promise depends on it."""

    def __init__(
        self, specifications: Iterable[QueueSpecification], exchanges: Iterable[ExchangeSpecification] = ()
    ) -> None:
        self.queues = [_new_queue(specification) for specification in specifications]
        self.exchanges = list(exchanges)
        self.tally = Tally()
        self.now = 0
        # The latest time so far.
        self._latest = 0
        self._last_id = 0
        # The last message delivered for the first time, by consumer, publisher and priority.
        self._last: dict[tuple[object, Publisher, int], int] = {}
        entries = {queue.specification.name: queue for queue in self.queues if queue.chain is not None}
        # The first queues of the chains, by the names of all their queues.
        self._entries = {
            (queue.specification.vhost, queue.specification.name): entries[queue.specification.chain]
            for queue in self.queues
            if queue.specification.chain
        }
        for entry in entries.values():
            assert entry.chain is not None
            kinds = {
                (one.specification.is_quorum, one.specification.is_stream)
                for one in self.queues
                if one.specification.chain == entry.specification.name
            }
            entry.chain.has_kinds = len(kinds) > 1

    def next_id(self) -> int:
        """The id of a new message."""
        self._last_id += 1
        return self._last_id

    # --- publishing -----------------------------------------------------------------------------------

    def route(self, vhost: str, exchange: str, key: str, headers: Mapping[str, Value]) -> Route:
        """Where a message goes that is published to `exchange` now."""
        route = Route()
        queues = [queue for queue in self.queues if queue.specification.vhost == vhost]
        if not exchange:
            for queue in queues:
                if queue.specification.name == key:
                    _add(route, queue, [queue.existence], is_certain=True)
            return route
        exchanges = {one.name: one for one in self.exchanges if one.vhost == vhost}
        for name, is_certain in reached(exchanges, exchange, key, headers).items():
            type = exchanges[name].type if name in exchanges else ""
            for queue in queues:
                for binding, existence in queue.bindings:
                    is_matching = matches(type, binding, key, headers) if binding.source == name else False
                    if is_matching is not False:
                        certain = is_certain and is_matching is True
                        _add(route, queue, [queue.existence, existence], is_certain=certain)
        return route

    def published(self, id: int, route: Route, copy: Copy) -> list[Promise]:
        """A client sends a message; returns what a confirm promises."""
        self.tally.published += 1
        promises = []
        for number, queue in enumerate(route.queues):
            specification = queue.specification
            is_kept = specification.is_quorum or specification.is_stream
            if queue.chain is not None and queue.chain.has_kinds:
                is_kept = False
            priority = 0 if specification.is_stream else copy.priority
            own = Copy(id, copy.publisher, copy.persistent or is_kept, priority)
            own.sent_at = self.now
            ttls = [ttl for ttl in (copy.ttl_ms, specification.ttl_ms) if ttl is not None]
            own.ttl_ms = min(ttls, default=None)
            queue.copies[id] = own
            if queue.chain is not None:
                queue.chain.disturbed()
            if number in route.certain and not queue.deleters:
                promises.append(Promise(queue, own, route.certain[number]))
        return promises

    def confirmed(self, promises: Iterable[Promise]) -> None:
        """The broker has confirmed a message: it must be in these queues if they still exist."""
        self.tally.confirmed += 1
        self._latest = max(self._latest, self.now)
        for promise in promises:
            queue, copy = promise.queue, promise.copy
            if copy.ttl_ms is not None:
                # It may have to wait for one in front of it, whose publisher saw a later time.
                copy.expired_at = self._latest + max(copy.ttl_ms, queue.specification.ttl_ms or 0)
            if _are_unchanged(promise.existences):
                copy.is_confirmed = True
                if queue.specification.keeps_all and not (copy.is_settled or copy.is_gone):
                    copy.is_promised = not copy.is_uncertain

    # --- deliveries -----------------------------------------------------------------------------------

    def delivered(
        self, queue: QueueHistory, id: int, holder: object, consumer: object, *, flag: bool
    ) -> Copy:
        """The broker has written a delivery of `id` from `queue` to `consumer`."""
        name = queue.specification.name
        entry = self._entry(queue)
        copy = entry.copies.get(id)
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
        if not copy.may_repeat:
            if copy.is_gone:
                raise Violation(
                    f"message {id} of queue '{name}' came back after it was acknowledged and synced"
                )
            if copy.holder is not None:
                raise Violation(
                    f"message {id} of queue '{name}' is delivered to two consumers at the same time"
                )
        if entry.chain is not None:
            self.tally.dead_lettered += entry is not queue
            entry.chain.disturbed()
        else:
            self._check_first_delivery(name, copy, consumer, flag=flag)
        if copy.ready_at > self.now:
            early_ms = copy.ready_at - self.now
            raise Violation(f"message {id} of queue '{name}' is delivered {early_ms} ms too early")
        copy.is_delivered = True
        copy.holder = holder
        return copy

    def _check_first_delivery(self, name: str, copy: Copy, consumer: object, *, flag: bool) -> None:
        if copy.is_delivered and not flag:
            raise Violation(f"message {copy.id} of queue '{name}' is delivered again without the flag")
        if not flag:
            key = (consumer, copy.publisher, copy.priority)
            last = self._last.get(key, 0)
            if last > copy.id:
                raise Violation(f"message {copy.id} of queue '{name}' is delivered behind message {last}")
            self._last[key] = copy.id

    def read(self, queue: QueueHistory, id: int, consumer: object, offset: int) -> Copy:
        """The broker has written a message of a stream; returns a copy that is not kept."""
        self.tally.from_streams += 1
        name = queue.specification.name
        entry = self._entry(queue)
        copy = entry.copies.get(id)
        if copy is None:
            raise Violation(f"message {id} is delivered from stream '{name}', to which nobody published it")
        if copy.is_gone and not copy.may_repeat:
            raise Violation(f"message {id} is delivered from stream '{name}', which was deleted meanwhile")
        assert queue.stream is not None
        queue.stream.delivered(consumer, offset, id, may_repeat=copy.may_repeat)
        return Copy(id, copy.publisher, persistent=True, priority=0)

    def settled(self, copy: Copy, holder: object) -> None:
        """A client has acknowledged or rejected a delivery: it may be gone, and is once that has arrived."""
        self.tally.settled += 1
        copy.holder = None
        copy.is_settled = True
        copy.is_promised = False
        copy.settled_on = holder

    def returned(self, queue: QueueHistory, copy: Copy) -> None:
        """A client has returned a delivery to its queue, where it may have to wait."""
        copy.holder = None
        least, _ = queue.specification.delays_ms
        if least:
            copy.ready_at = self.now + least
            copy.is_returning = True

    def rejected(self, queue: QueueHistory, copy: Copy, holder: object) -> None:
        """A client has rejected a delivery: it is settled, unless the queue passes it on."""
        entry = self._entry(queue)
        if entry.chain is not None and not queue.specification.is_chain_end:
            copy.holder = None
            entry.chain.disturbed()
        else:
            self.settled(copy, holder)

    def released(self, holder: object) -> None:
        """A channel has ended: its deliveries return; what it settled last may not have arrived."""
        for queue in self.queues:
            queue.deleters.pop(holder, None)
            for existence in queue.existences:
                existence.released(holder)
            for copy in queue.copies.values():
                if copy.holder is holder:
                    copy.holder = None
                    if queue.chain is not None:
                        queue.chain.disturbed()
                if copy.settled_on is holder:
                    copy.settled_on = None

    def ending(self, client: str) -> None:
        """The connection of `client` ends, with the queues that belong to it."""
        for queue in self.queues:
            if queue.specification.owner == client:
                queue.vanishing()

    def disturbed(self) -> None:
        """Deliveries return to their queues: messages of chains may move."""
        for queue in self.queues:
            if queue.chain is not None:
                queue.chain.disturbed()

    # --- rest and crashes -----------------------------------------------------------------------------

    def synced(self) -> None:
        """Nothing is under way, and everything is on the disk: what was settled is gone."""
        for queue in self.queues:
            queue.at_rest()
            if queue.chain is not None:
                queue.chain.at_rest(self.now)

    def crashed(self, *, is_power_lost: bool, is_restart: bool = False) -> None:
        """The broker has ended, or, at a restart, a virtual host: what was not on the disk is lost."""
        self._last.clear()
        for queue in self.queues:
            for existence in queue.existences:
                existence.crashed(survives=queue.survives, is_restart=is_restart)
            queue.deleters.clear()
            queue.removed.clear()
            for copy in queue.copies.values():
                copy.holder = None
                copy.settled_on = None
                if copy.is_returning:
                    copy.ready_at = 0
                    copy.is_returning = False
                if queue.chain is not None:
                    queue.chain.crashed(copy, self.now)
                if not (queue.survives and copy.persistent):
                    copy.is_promised = False
                    if queue.chain is not None and queue.chain.has_kinds:
                        # It may be in one of those that keep it.
                        copy.is_uncertain = copy.may_repeat = True
                    else:
                        copy.is_gone = True
                if is_power_lost and not queue.specification.is_quorum:
                    # What was delivered since the last sync may be delivered again without the flag.
                    copy.is_delivered = copy.is_delivered and queue.chain is not None
            if queue.chain is not None:
                queue.chain.disturbed()

    # --- inspection -----------------------------------------------------------------------------------

    def inspected(self, queue: QueueHistory, ids: list[int]) -> None:
        """All messages of `queue`, in the order of their delivery to the only consumer, are `ids`.

        What another channel holds is there as well.
        """
        name = queue.specification.name
        self.tally.inspected += len(ids)
        there = set(ids)
        copies = self._entry(queue).copies
        once = [id for id in ids if id not in copies or not copies[id].may_repeat]
        if len(set(once)) != len(once) and not queue.specification.takes_others:
            raise Violation(f"queue '{name}' has a message twice: {ids}")
        length_max = queue.specification.length_max
        if length_max is not None and len(ids) > length_max:
            raise Violation(f"queue '{name}' has {len(ids)} messages, more than {length_max}")
        if queue.stream is not None:
            queue.stream.inspected(len(ids))
        self._check_expired(queue, ids)
        if queue.specification.chain:
            return
        self._check_promised(queue, there)
        if not queue.specification.takes_others:
            self._check_order(queue, ids)

    def chain_inspected(self, entry: QueueHistory, ids: list[int]) -> None:
        """All messages of all queues of the chain that begins in `entry` are `ids`."""
        chain = entry.chain
        assert chain is not None
        for copy in entry.copies.values():
            chain.spoiled(copy, self.now)
        chain.was_broken = False
        for id in set(ids):
            copy = entry.copies[id]
            # It has arrived, wherever it was when the broker ended.
            copy.is_promised = copy.is_promised or (copy.is_confirmed and not copy.is_settled)
        self._check_promised(entry, set(ids))

    def _check_promised(self, queue: QueueHistory, there: set[int]) -> None:
        for copy in queue.copies.values():
            self.tally.promised += copy.is_promised
            if copy.is_promised and copy.id not in there and copy.holder is None:
                raise Violation(
                    f"message {copy.id} of queue '{queue.specification.name}' was confirmed and is lost; "
                    f"there are {sorted(there)}"
                )

    def _check_expired(self, queue: QueueHistory, ids: list[int]) -> None:
        for id in ids:
            copy = queue.copies.get(id)
            if copy is not None and copy.expired_at is not None and copy.expired_at < self.now:
                late_ms = self.now - copy.expired_at
                name = queue.specification.name
                raise Violation(f"message {id} of queue '{name}' is there {late_ms} ms after it has expired")

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

    def _entry(self, queue: QueueHistory) -> QueueHistory:
        """The queue that has the copies of `queue`: the first one of its chain."""
        return self._entries.get((queue.specification.vhost, queue.specification.name), queue)


def _new_queue(specification: QueueSpecification) -> QueueHistory:
    queue = QueueHistory(specification, bindings=[(one, Existence()) for one in specification.bindings])
    if specification.is_stream:
        queue.stream = StreamHistory(specification.name, is_trimmed=not specification.keeps_all)
    if specification.chain == specification.name:
        queue.chain = ChainHistory(keeps_dead_letters=specification.keeps_dead_letters)
    return queue


def _add(route: Route, queue: QueueHistory, existences: list[Existence], *, is_certain: bool) -> None:
    """Add a way to `queue`, which exists if all `existences` do."""
    route.watched += [(existence, existence.version) for existence in existences]
    if queue not in route.queues:
        route.queues.append(queue)
    route.is_possible = route.is_possible or all(existence.is_possible for existence in existences)
    if (
        is_certain
        and not queue.specification.may_vanish
        and all(existence.is_certain for existence in existences)
    ):
        way = [(existence, existence.endings) for existence in existences]
        route.certain.setdefault(route.queues.index(queue), way)


def _are_unchanged(existences: list[tuple[Existence, int]]) -> bool:
    return all(existence.is_certain and existence.endings == endings for existence, endings in existences)
