"""The live exchanges, bindings and queues of one vhost, kept in step with the metadata.

Nothing here decides: what the metadata says exists is made, and what it says is gone is removed, in the order
of its events. Policies are applied here, since they bear on live things only.

What exists when this begins is made piece by piece, as it may be much; what is heard of meanwhile is heeded
when all of it is there, and nothing of it is lost or seen twice.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeVar

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
from warren.model.names import retained_by
from warren.routing.exchange import Binding, ExchangeSettings
from warren.routing.router import Router
from warren.routing.types import exchange_type
from warren.vhost.coroutine_driver import Later, NextTurn, drive

_CLASSIC = "classic"


class LiveQueue(Protocol):
    """What is asked of a queue of any kind."""

    @property
    def settings(self) -> QueueSettings:
        """What it was told to obey last."""

    @property
    def message_count(self) -> int:
        """Messages that are ready."""

    @property
    def consumer_count(self) -> int:
        """Consumers that it gives messages to."""

    @property
    def is_empty(self) -> bool:
        """No message is ready."""

    @property
    def is_unused(self) -> bool:
        """It has no consumers."""

    def apply_settings(self, settings: QueueSettings) -> None:
        """Obey `settings` from now on."""

    def pause(self) -> None:
        """Hand nothing out until `resume`; a second time does nothing."""

    def resume(self) -> None:
        """Hand out again."""

    def touch(self) -> None:
        """It was declared again: its expiry starts anew."""

    def purge(self) -> int:
        """Forget what is ready; answers how many messages that were."""

    def delete(self) -> int:
        """Be gone, cancelling consumers; answers how many messages were ready."""


Q = TypeVar("Q", bound=LiveQueue)
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTopologyDependencies(Generic[Q]):
    """Where the live things of a vhost stand, and how they are made."""

    router: Router
    queues: dict[str, Q]
    make_queue: Callable[[QueueRecord, QueueSettings], Q]
    random_octets: Callable[[int], bytes]
    later: Later
    # Told of each queue that is there and as often as its settings change, and that it is gone.
    on_queue_changed: Callable[[QueueRecord, Q], None] = lambda record, queue: None
    on_queue_deleted: Callable[[str, Q], None] = lambda name, queue: None


class LiveTopology(Generic[Q]):
    """Makes and removes what lives in a vhost as the metadata says."""

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
        # True when nothing of it lives any more, or is made.
        self.is_closed = False
        # What the arguments of the queue before came to: after a restart, many share them.
        self._latest: tuple[Arguments, QueueSettings] = (NO_ARGUMENTS, DEFAULT_SETTINGS)
        # How often policies have changed.
        self._policy_changes = 0
        # What was heard while things are made that were there before; None when all of them are.
        self._deferred_events: list[Event] | None = []
        metadata.listen(self._on_event, vhost=vhost)

    def close(self) -> None:
        """Hear nothing more, and end every queue, many of them turn by turn; a second time does nothing."""
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
        """Make what exists already, a turn's work with each step; `restore` is told of each queue."""

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
                self.queues[queue.name].pause()
            case QueuePaused(queue=queue):
                self.queues[queue.name].resume()
            case QueueDeleted(queue=queue):
                self._remove_queue(queue.name)
            case BindingAdded(binding=binding):
                self.router.bind(self._live_binding(binding))
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
        exchange = exchange_type(record.type)(record.name, settings, self._dependencies.random_octets)
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
        self._dependencies.on_queue_deleted(name, queue)
        queue.delete()

    def _live_binding(self, record: BindingRecord) -> Binding:
        exchanges = self.router.exchanges
        destination = self.queues[record.destination] if record.is_to_queue else exchanges[record.destination]
        return Binding(exchanges[record.source], record.routing_key, record.arguments, destination)

    async def _apply_policies(self, change: int) -> None:
        """Have policies hold as of `change`, for many queues turn by turn; the next change takes over."""
        vhost = self._metadata.vhost(self.vhost)
        assert vhost is not None
        topology = vhost.topology
        # What is declared meanwhile obeys them already.
        exchanges, queues = list(topology.exchanges), list(topology.queues)
        per_turn = self._per_turn(POLICIES_PER_TURN)
        for at in range(0, max(len(exchanges), len(queues)), per_turn):
            if at:
                await NextTurn(self.later)
            if self.is_closed or change != self._policy_changes:
                return
            # They may be gone since, or be others.
            for name in exchanges[at : at + per_turn]:
                if name in topology.exchanges:
                    self._apply_alternate(topology.exchanges[name])
            for name in queues[at : at + per_turn]:
                if name in topology.queues:
                    self._apply_settings(topology.queues[name])

    def _per_turn(self, most: int) -> int:
        """How many names are held against all policies in one turn, `most` of them if these are few."""
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
            queue.apply_settings(settings)
            self._dependencies.on_queue_changed(record, queue)

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
