"""The services of one virtual host that its sessions use."""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct

from warren.access.authorize import Authorizer
from warren.access.grants import ExternalUser, grants_of
from warren.errors import InternalError, ResourceError
from warren.flow.credit import PublishCredit
from warren.limits import REMOVAL_RETRY_MS
from warren.metadata.events import Event, PermissionsChanged, UserChanged, UserRemoved, VhostDescribed
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.metadata.records import QueueRecord
from warren.metadata.refusal_check import RefusalCheck
from warren.metadata.users import User
from warren.model.arguments import QueueSettings
from warren.model.coroutine_driver import Later, drive
from warren.model.turn import Turn
from warren.queues.capabilities import recovering_queue, taking_queue
from warren.queues.classic import ClassicQueue
from warren.queues.position_starts import PositionStarts, forget_starts
from warren.queues.quorum.group import GroupMembership
from warren.queues.quorum.quorum_queue import QuorumQueue, ReplicaMaker
from warren.queues.stream import StreamQueue
from warren.queues.vhost_queue import VhostQueue
from warren.routing.router import Router
from warren.session.publish_rules import PublishRules
from warren.session.tracer import Tracer
from warren.store.group_log import GroupLog
from warren.store.recovered_queue import RecoveredQueue
from warren.store.segment import StoreFileError
from warren.vhost.exchange_service import ExchangeService
from warren.vhost.failed_queues import FailedQueues
from warren.vhost.lease_service import LeaseService, LeaseServiceDependencies
from warren.vhost.live_topology import LiveTopology, LiveTopologyDependencies
from warren.vhost.queue_home import NO_LOCATORS, QueueLocators
from warren.vhost.queue_service import QueueService
from warren.vhost.recent_messages import give_recent
from warren.vhost.remote_replies import RemoteReplies
from warren.vhost.requester import Owner
from warren.vhost.retained_streams import RetainedStreams
from warren.vhost.vhost import VirtualHost

# RabbitMQ's tag of users who may give any user-id.
_IMPERSONATOR = "impersonator"
_HEARD = (UserChanged, UserRemoved, PermissionsChanged, VhostDescribed)


class VhostServices(Struct, frozen=True, kw_only=True):
    """The services of one virtual host that its sessions use."""

    vhost: VirtualHost
    topology: LiveTopology[VhostQueue]
    queue_service: QueueService[VhostQueue]
    exchange_service: ExchangeService[VhostQueue]
    metadata: Metadata
    refusal_check: RefusalCheck
    # The disk credit of publishers; unlimited without a disk.
    credit: PublishCredit
    # Used while tracing is on.
    tracer: Tracer
    lease_service: LeaseService
    retained_streams: RetainedStreams
    queue_remover: "_QueueRemover"
    # The run of this node.
    incarnation: Incarnation

    @classmethod
    def open(
        cls, name: str, metadata: Metadata, proposals: Proposals, dependencies: "VhostDependencies"
    ) -> "VhostServices":
        """Create the virtual host `name` of `metadata`, which is empty before `recover`."""
        router = Router(name)
        vhost = VirtualHost(name, router, dependencies.turn)
        vhost.counts_all_returns = dependencies.counts_all_returns
        random_bytes, later, after = dependencies.random_bytes, dependencies.later, dependencies.after
        retained_streams = RetainedStreams(router, vhost.queues, proposals, later=later, after=after)

        topology = _topology(metadata, vhost, dependencies, retained_streams)
        node_name = dependencies.node_name
        queue_service = QueueService(
            metadata,
            proposals,
            topology,
            random_bytes,
            node_name=node_name,
            removals=vhost.removals,
            locators=dependencies.locators,
            node=dependencies.incarnation.node,
        )
        removal = _QueueRemover(queue_service, after)
        vhost.queue_unused = removal.remove
        services = cls(
            vhost=vhost,
            topology=topology,
            queue_service=queue_service,
            exchange_service=ExchangeService(metadata, proposals, topology, node_name=node_name),
            metadata=metadata,
            refusal_check=RefusalCheck(metadata, proposals),
            credit=PublishCredit(later),
            tracer=Tracer(vhost, node_name, later),
            lease_service=LeaseService(
                vhost,
                LeaseServiceDependencies(metadata=metadata, proposals=proposals, later=later, after=after),
            ),
            retained_streams=retained_streams,
            queue_remover=removal,
            incarnation=dependencies.incarnation,
        )
        vhost.remote_replies = dependencies.remote_replies(vhost)
        services.update_tracing()
        metadata.listen(services.on_event, _HEARD)
        return services

    def recover(self, found: dict[int, dict[int, RecoveredQueue]]) -> Iterator[None]:
        """Create the declared objects with the messages that were `found`, one turn's work per step.

        `found` is by queue number and priority level; entries are removed when their queue is restored.
        Messages of queues that were deleted in the meantime are discarded.
        """

        def restore(record: QueueRecord, queue: VhostQueue) -> None:
            levels = found.pop(record.stored_number, {}) if found else {}
            try:
                _restore(queue, levels)
            except (OSError, StoreFileError):
                raise
            except Exception as error:
                self.vhost.end_failed(queue, error)

        yield from self.topology.recover(restore)
        self.vhost.is_recovered = True
        yield from self.lease_service.restore()
        while found and not self.topology.is_closed:
            self.discard(*found.popitem())
            yield

    def discard(self, number: int, found: dict[int, RecoveredQueue]) -> None:
        """Release in the store the messages `found` of the deleted queue that had `number`."""
        stores = self.vhost.stores
        assert stores is not None
        settings = QueueSettings(priority_max=max(found) or None)
        queue = ClassicQueue("", self.vhost.name, self.vhost, settings)
        queue.attach_store(stores, number)
        for level, messages in found.items():
            queue.restore(level, messages)
        queue.delete()
        forget_starts(stores.persistent, number)
        log = GroupLog.find(stores.persistent, number)
        if log is not None:
            log.drop()

    def contain_failures(
        self, log: Callable[[str, Exception], None], store_failed: Callable[[Exception], None]
    ) -> None:
        """End a queue that an error has broken, instead of the virtual host.

        `log` is called with each error, `store_failed` with those of the store.
        """
        vhost = self.vhost

        def ended(queue: VhostQueue) -> None:
            self.retained_streams.on_queue_deleted(queue.name, queue)
            taking = taking_queue(queue)
            if taking is not None:
                self.lease_service.leadership_ended(taking)

        vhost.contain_failures(
            FailedQueues(vhost.queues, vhost.router, log=log, store_failed=store_failed, ended=ended)
        )

    def keep_durable_queues(self) -> None:
        """Stop deleting unused durable queues after the store has failed: they remain, as after a crash."""
        remove = self.vhost.queue_unused
        self.vhost.queue_unused = lambda queue: None if self._is_durable(queue) else remove(queue)

    def _is_durable(self, queue: VhostQueue) -> bool:
        vhost = self.metadata.vhost(self.vhost.name)
        record = None if vhost is None else vhost.topology.queues.get(queue.name)
        return record is not None and record.durable

    def close(self) -> None:
        """Stop the services of a virtual host that is gone."""
        self.metadata.ignore(self.on_event)
        self.lease_service.close()
        self.topology.close()

    def on_event(self, event: Event) -> None:
        """Invalidate cached permissions, or update tracing, if the metadata event concerns them."""
        if isinstance(event, UserChanged | UserRemoved | PermissionsChanged):
            self.vhost.permission_generation += 1
        elif isinstance(event, VhostDescribed) and event.vhost == self.vhost.name:
            self.update_tracing()

    def update_tracing(self) -> None:
        """Switch tracing on or off as the metadata says."""
        record = self.metadata.vhost(self.vhost.name)
        is_wanted = record is not None and record.tracing
        if is_wanted != self.vhost.is_traced:
            self.vhost.trace_with(self.tracer if is_wanted else None)

    def authorizer(self, user: User) -> Authorizer:
        """Create an authorizer of `user`; one per channel, as it caches its results."""
        return Authorizer(grants_of(self.metadata, user), user, self.vhost.name)

    def rules(self, user: User, authorizer: Authorizer, *, is_link: bool = False) -> PublishRules:
        """Create the publish rules of `user`, or of a shovel or link that `user` has made.

        A link passes on the user-id that a message has, as RabbitMQ's do.
        """
        may_impersonate = is_link or self._may_impersonate(user)
        return PublishRules(
            self.vhost,
            authorizer,
            user.name,
            incarnation=self.incarnation,
            may_impersonate=may_impersonate,
        )

    def _may_impersonate(self, user: User) -> bool:
        """True if `user` may publish with the user-id of others."""
        known = user if isinstance(user, ExternalUser) else self.metadata.users.by_name.get(user.name)
        return known is not None and _IMPERSONATOR in known.tags

    def channels_max_of(self, user: str) -> int | None:
        """The channel limit of the identity `user` over all connections; None is no limit."""
        known = self.metadata.users.by_name.get(user)
        return None if known is None else known.limit("max-channels")


def _always_here(
    vhost: VirtualHost, record: QueueRecord, settings: QueueSettings, make: ReplicaMaker
) -> None:
    """The default for a node alone, which is the home of all its queues."""


def _none_elsewhere(vhost: VirtualHost) -> None:
    """The default for a node alone, which has all requesters."""


class VhostDependencies(Struct, frozen=True, kw_only=True):
    """The functions and facts that a virtual host needs from above the waterline."""

    random_bytes: Callable[[int], bytes]
    later: Later
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    turn: Turn
    node_name: str
    # The settings of the node for where queues are.
    locators: QueueLocators = NO_LOCATORS
    # See `QueueHost`.
    counts_all_returns: bool = True
    # The run of the node, which numbers what it publishes to replicated queues, and is in reply names.
    incarnation: Incarnation = FIRST_INCARNATION
    # The queue of a record whose home is another node, or which may have replicas; None for all others.
    remote_queue: Callable[[VirtualHost, QueueRecord, QueueSettings, ReplicaMaker], VhostQueue | None] = (
        _always_here
    )
    # The requesters of direct replies on other nodes; None if there can be none.
    remote_replies: Callable[[VirtualHost], RemoteReplies | None] = _none_elsewhere


def _topology(
    metadata: Metadata,
    vhost: VirtualHost,
    dependencies: "VhostDependencies",
    retained_streams: RetainedStreams,
) -> LiveTopology[VhostQueue]:
    """Return the live objects of `vhost`; what fails in making or removing a queue ends that queue."""

    def make_queue(record: QueueRecord, settings: QueueSettings) -> VhostQueue:
        try:
            return _make_queue(vhost, dependencies, record, settings)
        except Exception as error:
            return vhost.substitute(record.name, settings, error)

    def on_queue_deleted(name: str, queue: VhostQueue) -> None:
        retained_streams.on_queue_deleted(name, queue)
        _forget_starts(queue)

    def on_queue_changed(record: QueueRecord, queue: VhostQueue) -> None:
        retained_streams.on_queue_changed(record, queue)
        vhost.check_dead_lettering(queue)

    parts = LiveTopologyDependencies(
        router=vhost.router,
        queues=vhost.queues,
        make_queue=make_queue,
        on_queue_changed=on_queue_changed,
        on_queue_deleted=on_queue_deleted,
        on_bound=lambda binding: give_recent(vhost, binding),
        queue_failed=lambda name, error: vhost.end_failed(vhost.queues[name], error),
        deletion_failed=lambda name, error: vhost.note_failure(
            f"the deletion of queue '{name}' in vhost '{vhost.name}' has failed", error
        ),
        random_bytes=dependencies.random_bytes,
        later=dependencies.later,
    )
    return LiveTopology(metadata, vhost.name, parts)


def _make_queue(
    vhost: VirtualHost, dependencies: VhostDependencies, record: QueueRecord, settings: QueueSettings
) -> VhostQueue:
    """The live queue of `record` with `settings`, empty before what a store has found is restored."""

    def make(incarnation: Incarnation, membership: GroupMembership) -> QuorumQueue:
        kind, name = QuorumQueue, record.name
        replica = kind(name, vhost.name, vhost, settings, incarnation=incarnation, membership=membership)
        _attach(replica, vhost, dependencies, record)
        return replica

    remote = dependencies.remote_queue(vhost, record, settings, make)
    if remote is not None:
        return remote
    kind, number = record.kind, record.stored_number
    if kind == "stream":
        assert vhost.streams is not None
        stream = StreamQueue(record.name, vhost.name, vhost, settings)
        stream.attach_store(vhost.streams, number)
        return stream
    queue: ClassicQueue
    if kind == "quorum":
        incarnation = dependencies.incarnation
        queue = QuorumQueue(record.name, vhost.name, vhost, settings, incarnation=incarnation)
    else:
        queue = ClassicQueue(record.name, vhost.name, vhost, settings)
    _attach(queue, vhost, dependencies, record)
    return queue


def _attach(
    queue: ClassicQueue, vhost: VirtualHost, dependencies: VhostDependencies, record: QueueRecord
) -> None:
    """Let the new `queue` of `record` use the stores of `vhost`."""
    queue.owner = record.owner
    queue.is_auto_delete = record.auto_delete
    if vhost.stores is not None:
        number = record.stored_number
        queue.attach_store(vhost.stores, number)
        # Nothing was stored for a queue that ends with this run.
        if number:
            starts = PositionStarts.recover(vhost.stores.persistent, number, dependencies.random_bytes)
            if starts is not None:
                queue.give_positions(starts)


def _forget_starts(queue: VhostQueue) -> None:
    """Forget the starts of the deleted `queue`."""
    taking = recovering_queue(queue)
    starts = None if taking is None else taking.starts()
    if starts is not None:
        starts.forget()


def _restore(queue: VhostQueue, levels: dict[int, RecoveredQueue]) -> None:
    """Give the new `queue` the messages that a store has found, by priority level."""
    restored = recovering_queue(queue)
    if restored is None:
        queue.left(levels)
        return
    for level, messages in levels.items():
        restored.restore(level, messages)
    starts = restored.starts()
    if starts is not None:
        _restore_starts(starts, queue.settings.priority_max or 0, levels)


def _restore_starts(starts: PositionStarts, priority_max: int, levels: dict[int, RecoveredQueue]) -> None:
    """Restore the starts of the recovered messages of a queue, by priority level."""
    for level, messages in levels.items():
        if messages.positions.count:
            starts.restore(priority_max - level, messages.positions.get(0), messages.end)
    starts.save()


class _QueueRemover:
    """Deletes queues for which no client waits: now, or else later again and again."""

    def __init__(
        self, queue_service: QueueService[VhostQueue], after: Callable[[int, Callable[[], None]], None]
    ) -> None:
        self._queue_service = queue_service
        self._after = after

    def remove(self, queue: VhostQueue) -> None:
        """Delete `queue`, which is unused."""
        drive(self._remove(queue))

    async def _remove(self, queue: VhostQueue) -> None:
        try:
            await self._queue_service.remove_queue(queue.name)
        except (InternalError, ResourceError):
            # The deletion cannot be written now; the failure of the disk is reported elsewhere.
            self._after(REMOVAL_RETRY_MS, partial(self._remove_still_unused, queue))

    def _remove_still_unused(self, queue: VhostQueue) -> None:
        if not queue.is_deleted and queue.is_due_for_deletion and not queue.is_down:
            self.remove(queue)

    async def remove_exclusive(self, owner: Owner) -> None:
        """Delete the exclusive queues of `owner`, whose connection has closed.

        If that is not possible now, return: nobody else deletes them before the node ends.
        """
        try:
            await self._queue_service.remove_exclusive(owner)
        except (InternalError, ResourceError):
            # It cannot be written, or no majority of the members has agreed on it in time.
            self._after(REMOVAL_RETRY_MS, lambda: drive(self.remove_exclusive(owner)))
