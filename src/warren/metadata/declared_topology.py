"""The exchanges, queues and bindings of one vhost, with the rules of cascading deletion.

Invariants:

- Both ends of every binding exist, and it can be found from both.
- The cost of a deletion is proportional to what is deleted.
- An auto-delete exchange is deleted with the last binding from it, together with the bindings to it.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import chain, islice
from typing import Final, TypeVar

from msgspec.structs import replace

from warren.metadata.commands import (
    DONE,
    EXISTING,
    MISSING,
    PARTLY,
    Bind,
    ChangeQueueMembers,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteExchange,
    DeleteExclusiveQueues,
    DeleteQueue,
    EndLease,
    GrantLease,
    LeadQueue,
    Outcome,
    PauseQueue,
    RenewLease,
    Reply,
    RestoreTopology,
    Unbind,
)
from warren.metadata.events import (
    BindingAdded,
    BindingRemoved,
    ExchangeDeclared,
    ExchangeDeleted,
    LeaseEnded,
    LeaseGranted,
    LeaseRenewed,
    Listener,
    QueueDeclared,
    QueueDeleted,
    QueueMembersChanged,
    QueuePaused,
)
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.leases import Leases
from warren.metadata.queue_members import (
    differs_in_members_only,
    led_by,
    refusal_of_change,
    with_changed_members,
    with_first_members,
)
from warren.metadata.queues_per_node import QueuesPerNode
from warren.metadata.records import (
    NO_ARGUMENTS,
    BindingRecord,
    ExchangeRecord,
    QueueRecord,
    arguments_bytes,
)
from warren.model.multimap import Multimap

K = TypeVar("K")

# The exchanges that RabbitMQ creates in every vhost: name, type, and whether it is internal.
DEFAULT_EXCHANGES: Final = (
    ("", "direct", False),
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
    ("amq.topic", "topic", False),
)
DEFAULT_EXCHANGES_USER = "rmq-internal"


class DeclaredTopology:
    """The topology of one vhost."""

    __slots__ = (
        "_ephemeral_exchanges",
        "_ephemeral_queues",
        "_exclusive",
        "_from",
        "_notify",
        "_per_node",
        "_shared",
        "_to_exchange",
        "_to_queue",
        "exchanges",
        "leases",
        "paused",
        "queues",
        "vhost",
    )

    def __init__(self, vhost: str, notify: Listener, per_node: QueuesPerNode) -> None:
        """An empty topology; `per_node` counts the queues on each node, of all vhosts."""
        self.vhost = vhost
        self._notify = notify
        self._per_node = per_node
        self.queues: dict[str, QueueRecord] = {}
        self.exchanges: dict[str, ExchangeRecord] = {
            name: ExchangeRecord(name, kind, True, False, internal, NO_ARGUMENTS, DEFAULT_EXCHANGES_USER)
            for name, kind, internal in DEFAULT_EXCHANGES
        }
        self._from: Multimap[BindingRecord] = Multimap()
        self._to_queue: Multimap[BindingRecord] = Multimap()
        self._to_exchange: Multimap[BindingRecord] = Multimap()
        # Names of exclusive queues by the connection that owns them.
        self._exclusive: dict[str, dict[str, None]] = {}
        # Names of the queues and exchanges that end with a run of a node, by that run.
        self._ephemeral_queues: dict[Incarnation, dict[str, None]] = {}
        self._ephemeral_exchanges: dict[Incarnation, dict[str, None]] = {}
        # Names of the queues that have replicas on several nodes, by each of these.
        self._shared: dict[int, dict[str, None]] = {}
        # Names of paused queues.
        self.paused: dict[str, None] = {}
        self.leases = Leases()

    def declare_exchange(
        self, command: DeclareExchange, incarnation: Incarnation = FIRST_INCARNATION
    ) -> Reply:
        """Create an exchange, which ends with `incarnation` if it is transient; EXISTING if one with the name
        exists.
        """
        if command.name in self.exchanges:
            return EXISTING
        record = ExchangeRecord(
            command.name,
            command.type,
            command.durable,
            command.auto_delete,
            command.internal,
            command.arguments or NO_ARGUMENTS,
            command.user,
            None if command.durable else incarnation,
        )
        self._add_exchange(record)
        return DONE

    def delete_exchange(self, command: DeleteExchange, is_cascading: bool = True) -> Reply:
        """Delete an exchange; REFUSED if it is in use and `if_unused` is set."""
        if command.name not in self.exchanges:
            return MISSING
        if command.if_unused and self.has_bindings_from(command.name):
            return Reply(Outcome.REFUSED, "in use")
        self._delete_exchange(command.name, is_cascading=is_cascading)
        return DONE

    def declare_queue(
        self,
        command: DeclareQueue,
        number: int = 0,
        incarnation: Incarnation = FIRST_INCARNATION,
        members: Sequence[int] = (),
    ) -> Reply:
        """Create a queue with `number`, on the node whose run is `incarnation`; EXISTING if one with the name
        exists.

        It ends with that run unless it survives a restart. `members` are the nodes that have a replica, that
        node first; empty if only that node has one.
        """
        if command.name in self.queues:
            return EXISTING
        survives_restart = command.durable and command.owner is None
        record = QueueRecord(
            command.name,
            command.durable,
            command.auto_delete,
            command.owner,
            command.arguments or NO_ARGUMENTS,
            command.user,
            number,
            None if survives_restart else incarnation,
            incarnation.node,
        )
        self._add_queue(with_first_members(record, members) if len(members) > 1 else record)
        return DONE

    def change_members(self, command: ChangeQueueMembers, cluster: Container[int]) -> Reply:
        """Change which nodes of the `cluster` have a replica of a quorum queue; see the command."""
        queue = self.queues.get(command.queue)
        if queue is None or queue.number != command.number:
            what = "does not exist" if queue is None else "was deleted and declared again"
            return Reply(Outcome.MISSING, f"queue '{command.queue}' in vhost '{self.vhost}' {what}")
        refusal = refusal_of_change(queue, command, cluster)
        if refusal is not None:
            return Reply(Outcome.REFUSED, refusal)
        if not command.added and not command.removed:
            return EXISTING
        self._put_members(with_changed_members(queue, added=command.added, removed=command.removed))
        return DONE

    def lead_queue(self, command: LeadQueue) -> Reply:
        """Note which node leads a quorum queue; EXISTING if that is known."""
        queue = self.queues.get(command.queue)
        if queue is None or queue.number != command.number or not queue.replica_on(command.node):
            return MISSING
        if queue.never_begins:
            # Publishes to it are refused since then.
            return MISSING
        led = led_by(queue, command.node)
        if led == queue or not queue.members:
            return EXISTING
        self._put_members(led)
        return DONE

    def remove_replicas(self, node: int, count_max: int | None = None) -> int:
        """Remove `node` from the members of at most `count_max` queues that have another one.

        Returns of how many it was removed: `count_max` if there may be more. They are the same ones on every
        node, whatever the order is there in which they got their members.
        """
        names = self._shared.get(node, ())
        chosen = list(names) if count_max is None else nsmallest(count_max, names)
        for name in chosen:
            self._put_members(with_changed_members(self.queues[name], removed=(node,)))
        return len(chosen)

    def pause_queue(self, command: PauseQueue) -> Reply:
        """Pause a queue or resume it; EXISTING if it is in that state already."""
        queue = self.queues.get(command.name)
        if queue is None:
            return MISSING
        if command.is_paused == (command.name in self.paused):
            return EXISTING
        if command.is_paused:
            self.paused[command.name] = None
        else:
            del self.paused[command.name]
        self._notify(QueuePaused(self.vhost, queue, command.is_paused))
        return DONE

    def grant_lease(self, command: GrantLease) -> Reply:
        """Grant a lease; EXISTING if there is one with its key."""
        if command.lease.queue not in self.queues:
            return MISSING
        if not self.leases.add(command.lease):
            return EXISTING
        self._notify(LeaseGranted(self.vhost, command.lease))
        return DONE

    def renew_lease(self, command: RenewLease) -> Reply:
        """Change the expiry of a lease; MISSING if it has ended."""
        if not self.leases.renew(command.id, command.expires_at):
            return MISSING
        self._notify(LeaseRenewed(self.vhost, command.id))
        return DONE

    def end_lease(self, command: EndLease) -> Reply:
        """End a lease; MISSING if it has ended."""
        lease = self.leases.end(command.id, command.state)
        if lease is None:
            return MISSING
        self._notify(LeaseEnded(self.vhost, lease, command.state))
        return DONE

    def delete_queue(self, command: DeleteQueue, is_cascading: bool = True) -> Reply:
        """Delete a queue, the bindings to it, and the auto-delete exchanges that lose their last binding."""
        if command.name not in self.queues:
            return MISSING
        self._delete_queue(command.name, is_cascading=is_cascading)
        return DONE

    def delete_exclusive(self, command: DeleteExclusiveQueues, is_cascading: bool = True) -> Reply:
        """Delete the exclusive queues of a connection, oldest first, as `delete_queue` does."""
        names, bindings = self.exclusive_part(command)
        self._remove(bindings, is_cascading=is_cascading)
        for name in names:
            self._delete_queue(name, is_cascading=is_cascading)
        return PARTLY if command.owner in self._exclusive else DONE

    def bind(self, command: Bind) -> Reply:
        """Add a binding; MISSING if one of its ends does not exist."""
        return self._bind(binding_of(command))

    def unbind(self, command: Unbind, is_cascading: bool = True) -> Reply:
        """Remove a binding, and its source if that is an auto-delete exchange without further bindings."""
        binding = binding_of(command)
        if not self._from.holds(binding.source, binding):
            return MISSING
        self._remove([binding], is_cascading=is_cascading)
        return DONE

    def restore(self, command: RestoreTopology) -> Reply:
        """Add what does not exist already; a binding is left out if one of its ends is missing.

        A quorum queue that exists has the members that are said.
        """
        for exchange in command.exchanges:
            if exchange.name not in self.exchanges:
                self._add_exchange(exchange)
        for queue in command.queues:
            known = self.queues.get(queue.name)
            if known is None:
                self._add_queue(queue)
            elif known != queue and queue.is_quorum and differs_in_members_only(known, queue):
                self._put_members(queue)
        for binding in command.bindings:
            self._bind(binding)
        return DONE

    def delete_ephemeral(self, command: DeleteEphemeral, count_max: int, heir: Incarnation | None) -> int:
        """Delete at most `count_max` queues, exchanges and bindings that ended with the runs in `command`.

        Transient exchanges are not deleted if there is an `heir`, a run with which they end from then on, but
        auto-delete exchanges are that lose their last binding, as when a client deletes the queue. Without an
        heir these stay. Returns how many were deleted or handed over: `count_max` if there may be more.
        """
        left = count_max
        for name in _before(self._ephemeral_queues, command, left):
            left -= self._remove_first(self._to_queue.get(name), left, is_cascading=heir is not None)
            if left <= 0:
                return count_max
            self._delete_queue(name, is_cascading=False)
            left -= 1
        for name in _before(self._ephemeral_exchanges, command, left):
            if heir is not None:
                self._hand_over(name, heir)
                left -= 1
                continue
            left -= self._remove_first(self._from.get(name), left)
            left -= self._remove_first(self._to_exchange.get(name), left)
            if left <= 0:
                return count_max
            self._delete_exchange(name, is_cascading=False)
            left -= 1
        return count_max - left

    def bindings(self) -> Iterator[BindingRecord]:
        """All bindings, exchange by exchange."""
        for name in self.exchanges:
            yield from self._from.get(name)

    @property
    def binding_count(self) -> int:
        """The number of bindings."""
        return self._from.count

    def bindings_from(self, exchange: str) -> list[BindingRecord]:
        """The bindings of which `exchange` is the source."""
        return list(self._from.get(exchange))

    def binding_count_from(self, exchange: str) -> int:
        """The number of bindings of which `exchange` is the source."""
        return self._from.size(exchange)

    def bindings_to_queue(self, queue: str) -> list[BindingRecord]:
        """The bindings of which `queue` is the destination."""
        return list(self._to_queue.get(queue))

    def bindings_to_exchange(self, exchange: str) -> list[BindingRecord]:
        """The bindings of which `exchange` is the destination."""
        return list(self._to_exchange.get(exchange))

    def has_bindings_from(self, exchange: str) -> bool:
        """True if `exchange` is the source of a binding."""
        return self._from.size(exchange) > 0

    def has_binding(self, binding: BindingRecord) -> bool:
        """True if `binding` exists."""
        return self._from.holds(binding.source, binding)

    def exclusive_part(self, command: DeleteExclusiveQueues) -> tuple[list[str], list[BindingRecord]]:
        """The queues that `command` deletes, and the bindings that it removes, perhaps including another
        queue's.
        """
        names: list[str] = []
        bindings: list[BindingRecord] = []
        left = command.count_max
        for name in self._exclusive.get(command.owner, ()):
            found = _first(self._to_queue.get(name), left)
            bindings += found
            left -= len(found)
            if not left:
                break
            names.append(name)
            left -= 1
        return names, bindings

    def take_order(self, other: "DeclaredTopology") -> None:
        """Bring all that has an order into that of `other`, which has the same objects; take its leases."""
        self.queues = {name: self.queues[name] for name in other.queues}
        self.exchanges = {name: self.exchanges[name] for name in other.exchanges}
        self.paused = dict(other.paused)
        self._exclusive = {owner: dict(names) for owner, names in other._exclusive.items()}
        self._ephemeral_queues = {run: dict(names) for run, names in other._ephemeral_queues.items()}
        self._ephemeral_exchanges = {run: dict(names) for run, names in other._ephemeral_exchanges.items()}
        self.leases = other.leases

    def _remove_first(
        self, bindings: Iterable[BindingRecord], count: int, *, is_cascading: bool = False
    ) -> int:
        """Remove the first `count` of `bindings`; returns how many there were."""
        removed = _first(bindings, count)
        self._remove(removed, is_cascading=is_cascading)
        return len(removed)

    def _hand_over(self, name: str, heir: Incarnation) -> None:
        """Have the transient exchange `name` end with the run `heir` instead of its own."""
        exchange = self.exchanges[name]
        assert exchange.incarnation is not None
        _discard_name(self._ephemeral_exchanges, exchange.incarnation, name)
        self.exchanges[name] = replace(exchange, incarnation=heir)
        self._ephemeral_exchanges.setdefault(heir, {})[name] = None

    def _add_exchange(self, exchange: ExchangeRecord) -> None:
        self.exchanges[exchange.name] = exchange
        if exchange.incarnation is not None:
            self._ephemeral_exchanges.setdefault(exchange.incarnation, {})[exchange.name] = None
        self._notify(ExchangeDeclared(self.vhost, exchange))

    def _add_queue(self, queue: QueueRecord) -> None:
        self.queues[queue.name] = queue
        self._per_node.add(queue)
        if queue.members:
            self._share(queue)
        if queue.owner is not None:
            self._exclusive.setdefault(queue.owner, {})[queue.name] = None
        if queue.incarnation is not None:
            self._ephemeral_queues.setdefault(queue.incarnation, {})[queue.name] = None
        self._notify(QueueDeclared(self.vhost, queue))

    def _put_members(self, queue: QueueRecord) -> None:
        """Replace the record of a queue by `queue`, which has other members."""
        before = self.queues[queue.name]
        self._per_node.remove(before)
        self._unshare(before)
        self.queues[queue.name] = queue
        self._per_node.add(queue)
        self._share(queue)
        self._notify(QueueMembersChanged(self.vhost, queue, before))

    def _share(self, queue: QueueRecord) -> None:
        for node, _ in queue.members if len(queue.members) > 1 else ():
            self._shared.setdefault(node, {})[queue.name] = None

    def _unshare(self, queue: QueueRecord) -> None:
        for node, _ in queue.members if len(queue.members) > 1 else ():
            _discard_name(self._shared, node, queue.name)

    def _bind(self, binding: BindingRecord) -> Reply:
        destinations = self.queues if binding.is_to_queue else self.exchanges
        if binding.source not in self.exchanges or binding.destination not in destinations:
            return MISSING
        if not self._from.add(binding.source, binding):
            return EXISTING
        self._to(binding).add(binding.destination, binding)
        self._notify(BindingAdded(self.vhost, binding))
        return DONE

    def _to(self, binding: BindingRecord) -> Multimap[BindingRecord]:
        return self._to_queue if binding.is_to_queue else self._to_exchange

    def _delete_queue(self, name: str, *, is_cascading: bool = True) -> None:
        self._remove(list(self._to_queue.get(name)), is_cascading=is_cascading)
        queue = self.queues.pop(name)
        self._per_node.remove(queue)
        if queue.members:
            self._unshare(queue)
        self.paused.pop(name, None)
        self.leases.forget_queue(name)
        if queue.owner is not None:
            _discard_name(self._exclusive, queue.owner, name)
        if queue.incarnation is not None:
            _discard_name(self._ephemeral_queues, queue.incarnation, name)
        self._notify(QueueDeleted(self.vhost, queue))

    def _delete_exchange(self, name: str, *, is_cascading: bool = True) -> None:
        for binding in list(self._from.get(name)):
            self._discard(binding)
        # Removed before the cascade, since a cycle of auto-delete exchanges leads back here.
        exchange = self.exchanges.pop(name)
        if exchange.incarnation is not None:
            _discard_name(self._ephemeral_exchanges, exchange.incarnation, name)
        self._remove(list(self._to_exchange.get(name)), is_cascading=is_cascading)
        self._notify(ExchangeDeleted(self.vhost, exchange))

    def _remove(self, bindings: Iterable[BindingRecord], *, is_cascading: bool = True) -> None:
        """Remove `bindings`, and the auto-delete exchanges that lose their last one."""
        sources: dict[str, None] = {}
        for binding in bindings:
            self._discard(binding)
            sources[binding.source] = None
        for source in sources if is_cascading else ():
            exchange = self.exchanges.get(source)
            if exchange is not None and exchange.auto_delete and not self._from.size(source):
                self._delete_exchange(source)

    def _discard(self, binding: BindingRecord) -> None:
        self._from.remove(binding.source, binding)
        self._to(binding).remove(binding.destination, binding)
        self._notify(BindingRemoved(self.vhost, binding))


def _discard_name(names: dict[K, dict[str, None]], key: K, name: str) -> None:
    """Discard `name` from those of `key`."""
    of_key = names[key]
    del of_key[name]
    if not of_key:
        del names[key]


def _before(names: dict[Incarnation, dict[str, None]], command: DeleteEphemeral, count_max: int) -> list[str]:
    """The first `count_max` names of the runs that `command` is about."""
    ended = sorted(
        incarnation
        for incarnation in names
        if incarnation.node == command.node and incarnation.number < command.incarnation
    )
    return list(islice(chain.from_iterable(names[incarnation] for incarnation in ended), count_max))


def _first(bindings: Iterable[BindingRecord], count: int) -> list[BindingRecord]:
    """At most `count` of `bindings`: the same ones on every node, whatever their order is there.

    It is that in which they were made, or, behind a snapshot, that of their sources.
    """
    found = list(bindings)
    return found if len(found) <= count else nsmallest(count, found)


def binding_of(command: Bind | Unbind) -> BindingRecord:
    """The binding that `command` adds or removes."""
    return BindingRecord(
        command.source,
        command.is_to_queue,
        command.destination,
        command.routing_key,
        arguments_bytes(command.arguments),
    )


def unbind_of(vhost: str, binding: BindingRecord) -> Unbind:
    """The command that removes `binding` of `vhost`."""
    return Unbind(
        vhost=vhost,
        source=binding.source,
        is_to_queue=binding.is_to_queue,
        destination=binding.destination,
        routing_key=binding.routing_key,
        arguments=binding.arguments,
    )
