"""Where a connection is and who it is, once it is open."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from warren.access.authorize import Authorizer
from warren.access.grants import Bearer, Visitor, grants_of
from warren.errors import InternalError, ResourceError
from warren.flow.credit import Credit
from warren.limits import REMOVAL_RETRY_MS
from warren.metadata.events import Event, PermissionsChanged, UserChanged, UserRemoved, VhostDescribed
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.metadata.records import QueueRecord
from warren.metadata.users import User
from warren.model.arguments import QueueSettings
from warren.queues.classic import ClassicQueue
from warren.queues.local import LocalQueue
from warren.queues.stream import StreamQueue
from warren.routing.router import Router
from warren.session.handshake import Handshake
from warren.session.publishing import PublishRules
from warren.session.tracing import Tracer
from warren.store.found import Found
from warren.vhost.declaring import Declaring
from warren.vhost.errand import Later, run
from warren.vhost.leasing import Leasing, LeasingWorld
from warren.vhost.retaining import Retaining
from warren.vhost.topology import LiveParts, Topology
from warren.vhost.vhost import VirtualHost
from warren.vhost.wiring import Wiring

# RabbitMQ's tag of users who may give any user-id.
_IMPERSONATOR = "impersonator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What the handshake agreed on."""

    account: User
    channels_max: int
    capabilities: frozenset[str]
    client_properties: dict[str, object]
    mechanism: str
    heartbeat_s: int

    @property
    def user(self) -> str:
        """The name of the user."""
        return self.account.name

    @property
    def expires_at(self) -> int | None:
        """When the token ends with which the client came (ms); None if it does not, or there is none."""
        return self.account.expires_at if isinstance(self.account, Bearer) else None

    @classmethod
    def from_handshake(cls, handshake: Handshake) -> "Login":
        """The results of a complete handshake."""
        return cls(
            account=handshake.account,
            channels_max=handshake.channels_max,
            capabilities=handshake.capabilities,
            client_properties=handshake.client_properties,
            mechanism=handshake.mechanism,
            heartbeat_s=handshake.heartbeat_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """One virtual host with all that a session needs to work in it."""

    vhost: VirtualHost
    topology: Topology[LocalQueue]
    declaring: Declaring[LocalQueue]
    wiring: Wiring[LocalQueue]
    metadata: Metadata
    # What the disk lets publishers do; always, without one.
    credit: Credit
    # At work while the virtual host is traced.
    tracer: Tracer
    leasing: Leasing

    @classmethod
    def open(cls, name: str, metadata: Metadata, proposals: Proposals, world: "DomainWorld") -> "Domain":
        """The virtual host `name` of `metadata`, in which there is nothing before `recover`."""
        router = Router(name)
        vhost = VirtualHost(name, router, world.now)

        def make_queue(record: QueueRecord, settings: QueueSettings) -> LocalQueue:
            if record.kind == "stream":
                assert vhost.streams is not None
                stream = StreamQueue(record.name, name, vhost, settings)
                stream.keep_in(vhost.streams, record.number)
                return stream
            queue = ClassicQueue(record.name, name, vhost, settings)
            queue.owner = record.owner
            queue.is_auto_delete = record.auto_delete
            if vhost.stores is not None:
                queue.keep_in(vhost.stores, record.number)
            return queue

        retaining = Retaining(router, vhost.queues, proposals, later=world.later, after=world.after)
        parts = LiveParts(
            router=router,
            queues=vhost.queues,
            make_queue=make_queue,
            settled=retaining.settled,
            gone=retaining.gone,
            random_octets=world.random_octets,
            later=world.later,
        )
        topology = Topology(metadata, name, parts)
        declaring = Declaring(metadata, proposals, topology, world.random_octets)
        removal = _Removal(declaring, world.after)
        vhost.queue_unused = removal.remove
        domain = cls(
            vhost=vhost,
            topology=topology,
            declaring=declaring,
            wiring=Wiring(metadata, proposals, topology),
            metadata=metadata,
            credit=Credit(world.later),
            tracer=Tracer(vhost, world.node_name, world.later),
            leasing=Leasing(
                vhost,
                LeasingWorld(metadata=metadata, proposals=proposals, later=world.later, after=world.after),
            ),
        )
        domain.follow_tracing()
        metadata.listen(domain.heed)
        return domain

    def recover(self, found: dict[int, dict[int, Found]]) -> Iterator[None]:
        """Make what exists, a turn's work with each step, with the messages that were `found`.

        These are by the number of the queue and priority level, and are taken out as they find their queue.
        Of a queue that was deleted while they were looked for they are let go.
        """

        def restore(record: QueueRecord, queue: LocalQueue) -> None:
            if isinstance(queue, ClassicQueue):
                for level, messages in found.pop(record.number, {}).items():
                    queue.restore(level, messages)

        yield from self.topology.recover(restore)
        yield from self.leasing.restore()
        while found and not self.topology.is_closed:
            self.discard(*found.popitem())
            yield

    def discard(self, number: int, found: dict[int, Found]) -> None:
        """Have the store know that nobody needs what was `found` of the queue that had `number`."""
        stores = self.vhost.stores
        assert stores is not None
        settings = QueueSettings(priority_max=max(found) or None)
        queue = ClassicQueue("", self.vhost.name, self.vhost, settings)
        queue.keep_in(stores, number)
        for level, messages in found.items():
            queue.restore(level, messages)
        queue.delete()

    def retire(self) -> None:
        """Its store has failed: no durable queue goes any more because nobody uses it, as after a crash."""
        remove = self.vhost.queue_unused
        self.vhost.queue_unused = lambda queue: None if self._is_durable(queue) else remove(queue)

    def _is_durable(self, queue: LocalQueue) -> bool:
        vhost = self.metadata.vhost(self.vhost.name)
        record = None if vhost is None else vhost.topology.queues.get(queue.name)
        return record is not None and record.durable

    def close(self) -> None:
        """The virtual host is gone."""
        self.metadata.ignore(self.heed)
        self.leasing.close()
        self.topology.close()

    def heed(self, event: Event) -> None:
        """What users may do has changed, perhaps: publishers must ask again."""
        if isinstance(event, UserChanged | UserRemoved | PermissionsChanged):
            self.vhost.permission_generation += 1
        elif isinstance(event, VhostDescribed) and event.vhost == self.vhost.name:
            self.follow_tracing()

    def follow_tracing(self) -> None:
        """Trace what is published and delivered, or do not, as the metadata says."""
        record = self.metadata.vhost(self.vhost.name)
        is_wanted = record is not None and record.tracing
        if is_wanted != self.vhost.is_traced:
            self.vhost.trace_with(self.tracer if is_wanted else None)

    def authorizer(self, user: User) -> Authorizer:
        """Who says what `user` may do here; one for each channel, as it remembers its answers."""
        return Authorizer(grants_of(self.metadata, user), user.name, self.vhost.name)

    def rules(self, user: User, authorizer: Authorizer) -> PublishRules:
        """What `user` has to observe who publishes here."""
        return PublishRules(
            self.vhost.router, authorizer, user.name, may_impersonate=self._may_impersonate(user)
        )

    def _may_impersonate(self, user: User) -> bool:
        """True if `user` may publish in the name of others."""
        known = user if isinstance(user, Visitor) else self.metadata.users.by_name.get(user.name)
        return known is not None and _IMPERSONATOR in known.tags

    def channels_max_of(self, user: str) -> int | None:
        """How many channels `user` may have open, over all connections; None for no limit."""
        known = self.metadata.users.by_name.get(user)
        return None if known is None else known.limit("max-channels")


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainWorld:
    """What a virtual host needs from above the waterline."""

    random_octets: Callable[[int], bytes]
    later: Later
    # Calls an action after so many milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    now: int
    node_name: str


class _Removal:
    """Deletes queues that nobody uses any more."""

    def __init__(
        self, declaring: Declaring[LocalQueue], after: Callable[[int, Callable[[], None]], None]
    ) -> None:
        self._declaring = declaring
        self._after = after

    def remove(self, queue: LocalQueue) -> None:
        """Delete `queue`, which has outlived its use."""
        run(self._remove(queue))

    async def _remove(self, queue: LocalQueue) -> None:
        try:
            await self._declaring.remove_queue(queue.name)
        except (InternalError, ResourceError):
            # It cannot be written now, and whoever looks after the disk was told.
            self._after(REMOVAL_RETRY_MS, partial(self._remove_still_unused, queue))

    def _remove_still_unused(self, queue: LocalQueue) -> None:
        if not queue.is_deleted and queue.is_outlived:
            self.remove(queue)
