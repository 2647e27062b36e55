"""Leases: messages that one client holds exclusively, out of their queue, until the lease ends or expires.

    taken ─ all written ─▶ granted (metadata) ─▶ read, any number of times ─▶ ended (metadata) ─▶ settled

Invariants: a lease is reported only after it is in the metadata and its messages are stored as durably as
they will be; its end is in the metadata before any of its messages is acknowledged or requeued. So after a
crash the metadata says what to do with each message: those of an active lease are taken out of their queues
again, those of a settled lease are acknowledged again, as far as they exist. The same happens when this node
begins to lead a replicated queue, before that delivers anything.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from warren.errors import AmqpError, InternalError, NotFound, ResourceError
from warren.limits import (
    LEASE_RANGES_MAX,
    LEASED_MESSAGES_MAX,
    LEASED_PER_TURN,
    LEASES_MAX,
    REMOVAL_RETRY_MS,
)
from warren.metadata.commands import INTERNAL_USER, EndLease, GrantLease, Outcome
from warren.metadata.events import Event, LeaseEnded, LeaseGranted, LeaseRenewed, QueueDeleted
from warren.metadata.leases import LeaseRecord, Leases, LeaseState
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.model.coroutine_driver import Later, NextTurn, drive
from warren.queues.batches import acknowledge_batch, extend_ranges, take_batch
from warren.queues.capabilities import taking_queue
from warren.queues.queue import Delivery
from warren.queues.taking_queue import TakingQueue
from warren.store.segment import StoreFileError
from warren.vhost.queue_scan import scan_batch_max
from warren.vhost.vhost import VirtualHost

_HEARD = (LeaseGranted, LeaseRenewed, LeaseEnded, QueueDeleted)


class LeaseRequest(Struct, frozen=True, kw_only=True):
    """A request for a lease, with the maximum number of messages and bytes."""

    id: str
    user: str
    key: str
    messages: int
    byte_count: int
    ttl_ms: int


class LeasedMessages(Struct, frozen=True):
    """The messages of a lease by number; None for a message that did not survive a restart."""

    queue: TakingQueue
    deliveries: list[Delivery | None]


class LeaseServiceDependencies(Struct, frozen=True, kw_only=True):
    """What leases need beside their virtual host."""

    metadata: Metadata
    proposals: Proposals
    later: Later
    # Calls an action after a number of milliseconds.
    after: Callable[[int, Callable[[], None]], None]


class LeaseService:
    """The leases of one virtual host."""

    __slots__ = (
        "_dependencies",
        "_ending",
        "_granting",
        "_is_closed",
        "_is_restored",
        "_releasing_count",
        "_restoring",
        "_vhost",
        "ended_counts",
        "granted_count",
        "held",
    )

    def __init__(self, vhost: VirtualHost, dependencies: LeaseServiceDependencies) -> None:
        self._vhost = vhost
        self._dependencies = dependencies
        # By the id of the lease, which may not be in the metadata yet.
        self.held: dict[str, LeasedMessages] = {}
        # Since the virtual host was started: leases granted, and leases ended by state.
        self.granted_count = 0
        self.ended_counts: Counter[LeaseState] = Counter()
        # Leases that are being granted, by queue, user and key.
        self._granting: dict[tuple[str, str, str], _PendingGrant] = {}
        # Leases that are being ended because they have expired.
        self._ending: set[str] = set()
        # Leases whose queue has not opened again since the restart; they do not expire before.
        self._restoring: set[str] = set()
        # The number of ended leases whose messages are not yet settled on disk.
        self._releasing_count = 0
        self._is_closed = False
        # False until the leases of the metadata were restored; events are ignored until then.
        self._is_restored = False
        dependencies.metadata.listen(self._on_event, _HEARD, vhost=vhost.name)
        vhost.leadership_listener = self

    @property
    def leases(self) -> Leases:
        """The leases in the metadata."""
        vhost = self._dependencies.metadata.vhost(self._vhost.name)
        return Leases() if vhost is None else vhost.topology.leases

    def close(self) -> None:
        """Stop; called when the virtual host is deleted or restarted."""
        if not self._is_closed:
            self._is_closed = True
            self._dependencies.metadata.ignore(self._on_event, vhost=self._vhost.name)

    def restore(self) -> Iterator[None]:
        """Take the messages of leases out of their queues again after a restart, a turn's work with each
        step.
        """
        for lease in list(self.leases.by_id.values()):
            queue = taking_queue(self._vhost.queues.get(lease.queue))
            if queue is None:
                continue
            if queue.is_restored:
                yield from self._restore(lease.id, queue)
            else:
                self._restore_later(lease.id, queue)
        self._is_restored = True
        self._schedule()

    def leadership_began(self, queue: TakingQueue) -> None:
        """Take the messages of all leases out of `queue`, which this node leads now."""
        for lease in self.leases.of_queue(queue.name):
            self._restore_now(lease.id, queue)

    def leadership_ended(self, queue: TakingQueue) -> None:
        """Forget what was taken out of `queue`: the next leader takes it again."""
        self.held = {id: held for id, held in self.held.items() if held.queue is not queue}

    async def grant(self, queue: TakingQueue, lease_request: LeaseRequest) -> LeaseRecord | None:
        """Grant the lease of `lease_request`, or return the existing one; None if no message is ready.

        Raises ResourceError if there are too many leases, or if the disk is full.
        """
        key = queue.name, lease_request.user, lease_request.key
        while True:
            known = self.leases.of_key(*key)
            if known is not None:
                return known
            if key not in self._granting:
                break
            await self._granting[key]
        if len(self.held) + len(self._granting) + self._releasing_count >= LEASES_MAX:
            raise ResourceError(f"vhost '{self._vhost.name}' has {LEASES_MAX} leases, which is the maximum")
        room = self._room()
        if room <= 0:
            raise ResourceError(
                f"vhost '{self._vhost.name}' has {LEASED_MESSAGES_MAX} leased messages, which is the maximum"
            )
        lease_request = replace(lease_request, messages=min(lease_request.messages, room))
        granting = self._granting[key] = _PendingGrant(lease_request.messages)
        try:
            return await self._grant(queue, lease_request)
        finally:
            del self._granting[key]
            granting.end()

    async def end(self, id: str, state: LeaseState, user: str) -> None:
        """End a lease, if it has not ended; durable when this returns."""
        await self._dependencies.proposals.propose(EndLease(vhost=self._vhost.name, id=id, state=state), user)

    def expire(self) -> None:
        """End the leases that have expired."""
        now = self._vhost.turn.now()
        for lease in list(self.leases.active()):
            if lease.expires_at <= now and self._may_expire(lease.id):
                self._ending.add(lease.id)
                # If it fails it stays among those that end, and never expires again; others do.
                drive(self._contained(lease, self._expire(lease.id)))
        self._schedule()

    # --- private -------------------------------------------------------------------------------

    def _restore(self, id: str, queue: TakingQueue) -> Iterator[None]:
        """Take the messages of the lease `id` out of `queue` again, and settle them if it has ended."""
        lease, held = self.leases.by_id.get(id), self.held.get(id)
        if lease is None or (held is not None and held.queue is queue):
            return
        held = LeasedMessages(queue, [None] * lease.messages)
        try:
            yield from _take_again(lease, held)
            if lease.is_active:
                self.held[id] = held
            else:
                for delivery in filter(None, held.deliveries):
                    queue.release(delivery)
        except (OSError, StoreFileError):
            raise
        except Exception as error:
            self._failed(lease, error)

    async def _contained(self, lease: LeaseRecord, work: Awaitable[None]) -> None:
        """Await `work` for `lease`; an error ends the lease, and neither others nor who has told of it."""
        try:
            await work
        except Exception as error:
            self._failed(lease, error)

    def _failed(self, lease: LeaseRecord, error: Exception) -> None:
        self._vhost.note_failure(
            f"lease {lease.id} of queue '{lease.queue}' in vhost '{self._vhost.name}' has failed", error
        )

    def _restore_later(self, id: str, queue: TakingQueue) -> None:
        self._restoring.add(id)
        queue.when_restored(partial(self._restore_now, id, queue))

    def _restore_now(self, id: str, queue: TakingQueue) -> None:
        if not self._is_closed:
            for _ in self._restore(id, queue):
                pass
            self._restoring.discard(id)
            self._schedule()

    def _may_expire(self, id: str) -> bool:
        return id not in self._ending and id not in self._restoring

    def _room(self) -> int:
        """The number of messages that may still be leased."""
        held = sum(len(each.deliveries) for each in self.held.values())
        return LEASED_MESSAGES_MAX - held - sum(each.messages_max for each in self._granting.values())

    async def _grant(self, queue: TakingQueue, lease_request: LeaseRequest) -> LeaseRecord | None:
        deliveries: list[Delivery | None] = []
        ranges: list[int] = []
        try:
            byte_count = await self._take(queue, lease_request, deliveries, ranges)
            await self._vhost.written()
            # Raises if this node leads the queue no more.
            await queue.committed()
        except BaseException:
            await self._give_back(LeasedMessages(queue, deliveries))
            raise
        if not deliveries:
            return None
        now = self._vhost.turn.now()
        lease = LeaseRecord(
            id=lease_request.id,
            queue=queue.name,
            user=lease_request.user,
            key=lease_request.key,
            places=tuple(ranges),
            messages=len(deliveries),
            byte_count=byte_count,
            granted_at=now,
            expires_at=now + lease_request.ttl_ms,
        )
        self.held[lease.id] = LeasedMessages(queue, deliveries)
        try:
            command = GrantLease(vhost=self._vhost.name, lease=lease)
            reply = await self._dependencies.proposals.propose(command, lease_request.user)
        except BaseException:
            await self._give_back(self.held.pop(lease.id))
            raise
        if reply.outcome is not Outcome.DONE:
            # The queue was deleted meanwhile.
            await self._give_back(self.held.pop(lease.id, LeasedMessages(queue, [])))
            raise NotFound(f"no queue '{queue.name}' in vhost '{self._vhost.name}'")
        return self.leases.by_id.get(lease.id, lease)

    async def _take(
        self,
        queue: TakingQueue,
        lease_request: LeaseRequest,
        taken: list[Delivery | None],
        ranges: list[int],
    ) -> int:
        """Take ready messages out of `queue` in delivery order; returns their size in bytes.

        The ranges of their places are added to `ranges` in this order, so that they are found again after a
        restart.
        """
        byte_count = 0
        while (
            len(taken) < lease_request.messages
            and len(ranges) < 2 * LEASE_RANGES_MAX
            and not queue.is_deleted
        ):
            if taken:
                await NextTurn(self._dependencies.later)
            first = len(taken)
            count = min(LEASED_PER_TURN, scan_batch_max(queue), lease_request.messages - first)
            byte_count += take_batch(queue, taken, count, lease_request.byte_count - byte_count)
            extend_ranges(queue, taken, first, ranges)
            queue.drop_bodies()
            if len(taken) < first + count:
                break
        return byte_count

    def _on_event(self, event: Event) -> None:
        if not self._is_restored:
            return
        match event:
            case LeaseGranted(lease=lease):
                self.granted_count += 1
                if lease.id not in self.held:
                    # The request was cut off by a shutdown before the metadata had the lease.
                    drive(self._contained(lease, self._take_leased(lease)))
                self._schedule()
            case LeaseRenewed():
                self._schedule()
            case LeaseEnded(lease=lease, state=state):
                self.ended_counts[state] += 1
                held = self.held.pop(lease.id, None)
                if held is not None:
                    self._releasing_count += 1
                    drive(self._contained(lease, self._release(held, state)))
                self._schedule()
            case QueueDeleted(queue=queue):
                ended = [id for id, held in self.held.items() if held.queue.name == queue.name]
                for id in ended:
                    del self.held[id]
                if ended:
                    self._schedule()
            case _:
                pass

    async def _take_leased(self, lease: LeaseRecord) -> None:
        queue = taking_queue(self._vhost.queues.get(lease.queue))
        if queue is not None and not queue.is_restored:
            self._restore_later(lease.id, queue)
        elif queue is not None:
            held = self.held[lease.id] = LeasedMessages(queue, [None] * lease.messages)
            for _ in _take_again(lease, held):
                await NextTurn(self._dependencies.later)

    async def _release(self, held: LeasedMessages, state: LeaseState) -> None:
        """Settle or requeue all messages of a lease that has ended."""
        try:
            await NextTurn(self._dependencies.later)
            if state is LeaseState.SETTLED:
                await self._acknowledge(held)
                await self._vhost.written()
                await held.queue.committed()
            else:
                await self._give_back(held)
        except AmqpError:
            # The queue was deleted, or is led elsewhere, where the metadata say what becomes of them.
            pass
        finally:
            self._releasing_count -= 1

    async def _give_back(self, held: LeasedMessages) -> None:
        for at in range(0, len(held.deliveries), LEASED_PER_TURN):
            if not await self._may_continue(at):
                return
            for delivery in filter(None, held.deliveries[at : at + LEASED_PER_TURN]):
                held.queue.requeue(delivery)
        if not held.queue.is_deleted:
            held.queue.pump()

    async def _acknowledge(self, held: LeasedMessages) -> None:
        for at in range(0, len(held.deliveries), LEASED_PER_TURN):
            if not await self._may_continue(at):
                return
            acknowledge_batch(held.queue, held.deliveries, at, at + LEASED_PER_TURN)

    async def _may_continue(self, at: int) -> bool:
        """True if the messages from number `at` on may be settled; waits for a new turn."""
        if at:
            await NextTurn(self._dependencies.later)
        return not self._is_closed

    async def _expire(self, id: str) -> None:
        try:
            await self.end(id, LeaseState.EXPIRED, INTERNAL_USER)
        except (InternalError, ResourceError):
            # It cannot be written now, which was reported already.
            self._dependencies.after(REMOVAL_RETRY_MS, lambda: self._expire_again(id))
        else:
            self._ending.discard(id)

    def _expire_again(self, id: str) -> None:
        self._ending.discard(id)
        if not self._is_closed:
            self._schedule()

    def _schedule(self) -> None:
        """Schedule a wake-up for the next expiry."""
        times = [lease.expires_at for lease in self.leases.active() if self._may_expire(lease.id)]
        if times and not self._is_closed:
            self._vhost.expiry.schedule(self, min(times))
        else:
            self._vhost.expiry.forget(self)


class _PendingGrant:
    """An awaitable that completes when a lease was granted or refused."""

    __slots__ = ("_callbacks", "_is_over", "messages_max")

    def __init__(self, messages_max: int) -> None:
        # The maximum number of messages.
        self.messages_max = messages_max
        self._callbacks: list[Callable[[object], None]] = []
        self._is_over = False

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once, when the lease was granted or refused."""
        self._callbacks.append(callback)

    def end(self) -> None:
        """Complete the awaitable."""
        self._is_over = True
        for callback in self._callbacks:
            callback(self)

    def __await__(self) -> Generator["_PendingGrant", None, None]:
        if not self._is_over:
            yield self


def _take_again(lease: LeaseRecord, held: LeasedMessages) -> Iterator[None]:
    """Take the existing messages of `lease` out of their queue, a turn's work with each step."""
    queue = held.queue
    before = 0
    for begin, end in zip(lease.places[::2], lease.places[1::2], strict=True):
        place = begin
        while place < end:
            count = min(LEASED_PER_TURN, scan_batch_max(queue), end - place)
            found = queue.peek(queue.place_here(place), count)
            place = end
            for peeked in found:
                lasting = queue.lasting_place(peeked.place)
                if lasting < end:
                    held.deliveries[before + lasting - begin] = queue.take_unacked(peeked)
                place = lasting + 1
            yield
        before += end - begin
