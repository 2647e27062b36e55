"""The live exchanges, bindings and queues of one vhost, kept in step with the metadata.

No decisions are made here: objects are created and removed as the events of the metadata say, in their order.
Policies are applied here, since they concern live objects only.

Existing objects are created piece by piece, since there may be many; events that arrive meanwhile are
deferred until all objects exist, so that none is lost or applied twice.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from warren.limits import POLICIES_PER_TURN, RECOVERED_PER_TURN, REMOVED_PER_TURN
from warren.limits_metadata import POLICIES_MATCHED_PER_TURN
from warren.metadata.events import (
    BindingAdded,
    BindingRemoved,
    Event,
    ExchangeDeclared,
    ExchangeDeleted,
    PoliciesChanged,
    QueueDeclared,
    QueueDeleted,
    QueueMembersChanged,
    QueuePaused,
    VhostRemoved,
)
from warren.metadata.machine import Metadata
from warren.metadata.policies import Policy
from warren.metadata.records import NO_ARGUMENTS, BindingRecord, ExchangeRecord, QueueRecord
from warren.model.arguments import (
    DEFAULT_SETTINGS,
    Arguments,
    Definition,
    QueueSettings,
    exchange_alternate,
    queue_settings,
    retention,
)
from warren.model.coroutine_driver import Later, NextTurn, drive
from warren.model.names import retained_by
from warren.queues.queue_counts import QueueCounts
from warren.routing.exchange import Binding, ExchangeSettings
from warren.routing.router import Router
from warren.routing.types import exchange_type

_CLASSIC = "classic"


class LiveQueue(Protocol):
    """What a live queue of any kind must implement."""

    @property
    def settings(self) -> QueueSettings:
        """The settings in effect."""

    def apply_settings(self, settings: QueueSettings) -> None:
        """Use `settings` from now on."""

    def pause(self) -> None:
        """Stop deliveries until `resume`; does nothing if paused already."""

    def resume(self) -> None:
        """Resume deliveries."""

    def touch(self) -> None:
        """Restart the expiry timer, since the queue was declared again."""

    def members_changed(self, record: QueueRecord) -> None:
        """Follow the record, which says other members, or another leader."""

    @property
    def is_local(self) -> bool:
        """True if `counts` says what `inspect` would."""

    @property
    def is_down(self) -> bool:
        """True if `inspect` raises an error, since an operator has to recover the queue."""

    def check_reachable(self) -> None:
        """Raise HomeDown if it is durable, and the node that has it is down."""

    def counts(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers, if it is on this node."""

    async def inspect(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers."""

    async def purge(self) -> int:
        """Drop all ready messages; returns their number."""

    def delete(self) -> int:
        """Delete the queue, cancelling its consumers; returns the number of ready messages."""


def _raise(name: str, error: Exception) -> None:
    """Raise `error`, by default."""
    raise error


Q = TypeVar("Q", bound=LiveQueue)
R = TypeVar("R")


class LiveTopologyDependencies(Struct, Generic[Q], frozen=True, kw_only=True):
    """The live objects of a vhost, and how they are created."""

    router: Router
    queues: dict[str, Q]
    make_queue: Callable[[QueueRecord, QueueSettings], Q]
    random_bytes: Callable[[int], bytes]
    later: Later
    # Called when a queue was created or its settings changed, and when it was deleted.
    on_queue_changed: Callable[[QueueRecord, Q], None] = lambda record, queue: None
    on_queue_deleted: Callable[[str, Q], None] = lambda name, queue: None
    # Called with each new binding, not with those that exist at the start.
    on_bound: Callable[[Binding], None] = lambda binding: None
    # Called with an error that a queue has raised, and with one that was raised by its deletion.
    queue_failed: Callable[[str, Exception], None] = _raise
    deletion_failed: Callable[[str, Exception], None] = _raise


class LiveTopology(Generic[Q]):
    """Creates and removes the live objects of a vhost as the metadata says."""

    __slots__ = (
        "_deferred_events",
        "_dependencies",
        "_latest",
        "_metadata",
        "_policy_changes",
        "is_closed",
        "later",
        "queues",
        "router",
        "vhost",
    )

    def __init__(self, metadata: Metadata, vhost: str, dependencies: LiveTopologyDependencies[Q]) -> None:
        self._metadata = metadata
        self._dependencies = dependencies
        self.vhost = vhost
        self.router = dependencies.router
        self.queues = dependencies.queues
        self.later = dependencies.later
        # True when no objects are live or created any more.
        self.is_closed = False
        # The settings of the previous queue, since after a restart many queues have the same arguments.
        self._latest: tuple[Arguments, QueueSettings] = (NO_ARGUMENTS, DEFAULT_SETTINGS)
        # The number of policy changes.
        self._policy_changes = 0
        # Events that arrived while existing objects are being created; None afterwards.
        self._deferred_events: list[Event] | None = []
        metadata.listen(self._on_event, vhost=vhost)

    def close(self) -> None:
        """Stop listening, and end all queues, over several turns if there are many.

        Does nothing if closed already.
        """
        if self.is_closed:
            return
        self.is_closed = True
        self._metadata.ignore(self._on_event, vhost=self.vhost)
        drive(self._end_queues())

    async def _end_queues(self) -> None:
        while self.queues:
            for name in list(islice(self.queues, REMOVED_PER_TURN)):
                self.queues.pop(name).delete()
            if self.queues:
                await NextTurn(self.later)

    def recover(self, restore: Callable[[QueueRecord, Q], None]) -> Iterator[None]:
        """Create the existing objects, a turn's work with each step; `restore` is called with each queue."""

        def make_queue(record: QueueRecord) -> None:
            queue = self._add_queue(record)
            restore(record, queue)
            if record.name in topology.paused:
                queue.pause()

        def bind(binding: BindingRecord) -> None:
            self.router.bind(self._live_binding(binding))

        record = self._metadata.vhost(self.vhost)
        assert record is not None
        topology = record.topology
        queues, bindings = list(topology.queues.values()), list(topology.bindings())
        missed: list[Event] = []
        self._deferred_events = missed
        yield from self._in_pieces(self._add_exchange, list(topology.exchanges.values()))
        yield from self._in_pieces(make_queue, queues)
        yield from self._in_pieces(bind, bindings)
        self._deferred_events = None
        for event in missed:
            self._on_event(event)

    def _in_pieces(self, make: Callable[[R], None], records: Sequence[R]) -> Iterator[None]:
        per_turn = self._per_turn(RECOVERED_PER_TURN)
        for at in range(0, len(records), per_turn):
            if self.is_closed:
                return
            for record in records[at : at + per_turn]:
                make(record)
            yield

    def _on_event(self, event: Event) -> None:
        if self._deferred_events is not None and not isinstance(event, VhostRemoved):
            self._deferred_events.append(event)
            return
        match event:
            case QueueDeclared(queue=queue):
                self._add_queue(queue)
            case QueuePaused(queue=queue, is_paused=True):
                self._contained(queue.name, lambda live: live.pause())
            case QueuePaused(queue=queue):
                self._contained(queue.name, lambda live: live.resume())
            case QueueMembersChanged(queue=queue):
                self._contained(queue.name, lambda live: live.members_changed(queue))
            case QueueDeleted(queue=queue):
                self._remove_queue(queue.name)
            case BindingAdded(binding=binding):
                live = self._live_binding(binding)
                if self.router.bind(live):
                    self._dependencies.on_bound(live)
            case BindingRemoved(binding=binding):
                self.router.unbind(self._live_binding(binding))
            case ExchangeDeclared(exchange=exchange):
                self._add_exchange(exchange)
            case ExchangeDeleted(exchange=exchange):
                self.router.remove(exchange.name)
            case PoliciesChanged():
                self._policy_changes += 1
                drive(self._apply_policies(self._policy_changes))
            case VhostRemoved():
                self.close()
            case _:
                pass

    def _add_exchange(self, record: ExchangeRecord) -> None:
        settings = ExchangeSettings(
            durable=record.durable,
            auto_delete=record.auto_delete,
            internal=record.internal,
            arguments=record.arguments,
        )
        exchange = exchange_type(record.type)(record.name, settings, self._dependencies.random_bytes)
        alternate = self._alternate(record)
        if exchange.alternate != alternate:
            exchange.alternate = alternate
        self.router.add(exchange)

    def _add_queue(self, record: QueueRecord) -> Q:
        queue = self._dependencies.make_queue(record, self._settings(record))
        self.queues[record.name] = queue
        self.router.bind(Binding(self.router.exchanges[""], record.name, None, queue))
        self._dependencies.on_queue_changed(record, queue)
        return queue

    def _remove_queue(self, name: str) -> None:
        queue = self.queues.pop(name)
        self.router.unbind(Binding(self.router.exchanges[""], name, None, queue))
        try:
            self._dependencies.on_queue_deleted(name, queue)
            queue.delete()
        except Exception as error:
            self._dependencies.deletion_failed(name, error)

    def _contained(self, name: str, action: Callable[[Q], None]) -> None:
        """Do `action` with the queue `name`; what it raises ends the queue, and no change of the metadata."""
        try:
            action(self.queues[name])
        except Exception as error:
            self._dependencies.queue_failed(name, error)

    def _live_binding(self, record: BindingRecord) -> Binding:
        exchanges = self.router.exchanges
        destination = self.queues[record.destination] if record.is_to_queue else exchanges[record.destination]
        return Binding(exchanges[record.source], record.routing_key, record.arguments, destination)

    async def _apply_policies(self, change: int) -> None:
        """Apply policies as of `change`, over several turns if there are many queues.

        A later change supersedes it.
        """
        vhost = self._metadata.vhost(self.vhost)
        assert vhost is not None
        topology = vhost.topology
        # Objects declared meanwhile use the new policies already.
        exchanges, queues = list(topology.exchanges), list(topology.queues)
        per_turn = self._per_turn(POLICIES_PER_TURN)
        for at in range(0, max(len(exchanges), len(queues)), per_turn):
            if at:
                await NextTurn(self.later)
            if self.is_closed or change != self._policy_changes:
                return
            # They may have been deleted or replaced since.
            for name in exchanges[at : at + per_turn]:
                if name in topology.exchanges:
                    self._apply_alternate(topology.exchanges[name])
            for name in queues[at : at + per_turn]:
                if name in topology.queues:
                    self._apply_settings(topology.queues[name])

    def _per_turn(self, most: int) -> int:
        """The number of objects to match against all policies in one turn, at most `most`."""
        vhost = self._metadata.vhost(self.vhost)
        count = 0 if vhost is None else len(vhost.policies.by_name) + len(vhost.operator_policies.by_name)
        return max(1, min(most, POLICIES_MATCHED_PER_TURN // max(count, 1)))

    def _apply_alternate(self, record: ExchangeRecord) -> None:
        live, alternate = self.router.exchanges[record.name], self._alternate(record)
        if live.alternate != alternate:
            live.alternate = alternate

    def _apply_settings(self, record: QueueRecord) -> None:
        settings = self._settings(record)
        queue = self.queues[record.name]
        if queue.settings != settings:
            self._contained(record.name, lambda live: live.apply_settings(settings))
            self._dependencies.on_queue_changed(record, self.queues[record.name])

    def _settings(self, record: QueueRecord) -> QueueSettings:
        vhost = self._metadata.vhost(self.vhost)
        assert vhost is not None
        origin = retained_by(record.name)
        if origin is not None:
            policy, _ = self._definitions(origin, _CLASSIC)
            return queue_settings(record.arguments, retention(policy or {}))
        if vhost.has_policies:
            return queue_settings(record.arguments, *self._definitions(record.name, record.kind))
        arguments, settings = self._latest
        if record.arguments is not arguments:
            settings = queue_settings(record.arguments)
            self._latest = record.arguments, settings
        return settings

    def _alternate(self, record: ExchangeRecord) -> str | None:
        return exchange_alternate(record.arguments, *self._definitions(record.name, "exchange"))

    def _definitions(self, name: str, kind: str) -> tuple[Definition | None, Definition | None]:
        vhost = self._metadata.vhost(self.vhost)
        assert vhost is not None
        policy, operator_policy = vhost.policies_of(name, kind)
        return _definition(policy), _definition(operator_policy)


def _definition(policy: Policy | None) -> Definition | None:
    return None if policy is None else policy.definition
