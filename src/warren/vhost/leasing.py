"""Messages that somebody has on lease: out of their queue until the lease ends, or is over.

    taken ─ all written ─▶ granted (metadata) ─▶ read, again and again ─▶ ended (metadata) ─▶ settled

Invariants: nobody is told of a lease before the metadata has it, and all its messages are as safe as they are
going to be; what it ends with is in the metadata before any of its messages is acknowledged or goes back. So
after a crash the metadata says what becomes of each: those of a lease are taken out of their queues again,
those of one that was settled are acknowledged again, as far as they are there.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

from warren.errors import InternalError, NotFound, ResourceError
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
from warren.queues.batches import acknowledge_batch, extend_ranges, take_batch
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery
from warren.vhost.errand import Later, NextTurn, run
from warren.vhost.looking import fitting
from warren.vhost.vhost import VirtualHost


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseWish:
    """What somebody wants to have on lease: no more messages, and octets of them, than this."""

    id: str
    user: str
    key: str
    messages: int
    octets: int
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class Held:
    """The messages of a lease, by their place in it; None is one that did not survive a restart."""

    queue: ClassicQueue
    deliveries: list[Delivery | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasingWorld:
    """What leasing needs beside its virtual host."""

    metadata: Metadata
    proposals: Proposals
    later: Later
    # Calls an action after so many milliseconds.
    after: Callable[[int, Callable[[], None]], None]


class Leasing:
    """The leases of one virtual host, as they live."""

    __slots__ = (
        "_ending",
        "_granting",
        "_is_closed",
        "_is_restored",
        "_letting_go",
        "_vhost",
        "_world",
        "ended_counts",
        "granted_count",
        "held",
    )

    def __init__(self, vhost: VirtualHost, world: LeasingWorld) -> None:
        self._vhost = vhost
        self._world = world
        # By the id of the lease, which the metadata may not have yet.
        self.held: dict[str, Held] = {}
        # Since the virtual host lives: how many were granted, and how many ended in which way.
        self.granted_count = 0
        self.ended_counts: Counter[LeaseState] = Counter()
        # Leases that are being granted, by what they go by in the metadata.
        self._granting: dict[tuple[str, str, str], _Granting] = {}
        # Those that are being ended because their time is over.
        self._ending: set[str] = set()
        # How many have ended of which the disk does not know yet what became of their messages.
        self._letting_go = 0
        self._is_closed = False
        # Before that, the metadata is looked at only.
        self._is_restored = False
        world.metadata.listen(self._heed, vhost=vhost.name)

    @property
    def leases(self) -> Leases:
        """What the metadata knows."""
        vhost = self._world.metadata.vhost(self._vhost.name)
        return Leases() if vhost is None else vhost.topology.leases

    def close(self) -> None:
        """The virtual host is gone, or is going to be another."""
        if not self._is_closed:
            self._is_closed = True
            self._world.metadata.ignore(self._heed, vhost=self._vhost.name)

    def restore(self) -> Iterator[None]:
        """Have the messages of leases again, after a restart, a turn's work with each step."""
        for lease in list(self.leases.by_id.values()):
            queue = self._vhost.queues.get(lease.queue)
            if not isinstance(queue, ClassicQueue):
                continue
            held = Held(queue, [None] * lease.messages)
            yield from _take_again(lease, held)
            if lease.is_active:
                self.held[lease.id] = held
            else:
                for delivery in filter(None, held.deliveries):
                    queue.let_go(delivery)
        self._is_restored = True
        self._schedule()

    async def grant(self, queue: ClassicQueue, wish: LeaseWish) -> LeaseRecord | None:
        """The lease that `wish` is for, which may be there already; None if nothing is ready.

        ResourceError if there are too many, or the disk cannot have one.
        """
        key = queue.name, wish.user, wish.key
        while True:
            known = self.leases.of_key(*key)
            if known is not None:
                return known
            if key not in self._granting:
                break
            await self._granting[key]
        if len(self.held) + len(self._granting) + self._letting_go >= LEASES_MAX:
            raise ResourceError(f"vhost '{self._vhost.name}' has {LEASES_MAX} leases already")
        room = self._room()
        if room <= 0:
            raise ResourceError(
                f"vhost '{self._vhost.name}' has {LEASED_MESSAGES_MAX} messages on lease already"
            )
        wish = replace(wish, messages=min(wish.messages, room))
        granting = self._granting[key] = _Granting(wish.messages)
        try:
            return await self._grant(queue, wish)
        finally:
            del self._granting[key]
            granting.end()

    async def end(self, id: str, state: LeaseState, user: str) -> None:
        """End a lease, if it has not ended; durable when this returns."""
        await self._world.proposals.propose(EndLease(vhost=self._vhost.name, id=id, state=state), user)

    def expire(self) -> None:
        """The time of some leases is over."""
        now = self._vhost.now
        for lease in list(self.leases.active()):
            if lease.expires_at <= now and lease.id not in self._ending:
                self._ending.add(lease.id)
                run(self._expire(lease.id))
        self._schedule()

    # --- private -------------------------------------------------------------------------------

    def _room(self) -> int:
        """How many more messages may be on lease."""
        held = sum(len(each.deliveries) for each in self.held.values())
        return LEASED_MESSAGES_MAX - held - sum(each.messages_max for each in self._granting.values())

    async def _grant(self, queue: ClassicQueue, wish: LeaseWish) -> LeaseRecord | None:
        deliveries: list[Delivery | None] = []
        ranges: list[int] = []
        try:
            octets = await self._take(queue, wish, deliveries, ranges)
            await self._vhost.written()
        except BaseException:
            await self._give_back(Held(queue, deliveries))
            raise
        if not deliveries:
            return None
        now = self._vhost.now
        lease = LeaseRecord(
            id=wish.id,
            queue=queue.name,
            user=wish.user,
            key=wish.key,
            places=tuple(ranges),
            messages=len(deliveries),
            octets=octets,
            granted_at=now,
            expires_at=now + wish.ttl_ms,
        )
        self.held[lease.id] = Held(queue, deliveries)
        try:
            command = GrantLease(vhost=self._vhost.name, lease=lease)
            reply = await self._world.proposals.propose(command, wish.user)
        except BaseException:
            await self._give_back(self.held.pop(lease.id))
            raise
        if reply.outcome is not Outcome.DONE:
            # Its queue has gone meanwhile.
            await self._give_back(self.held.pop(lease.id, Held(queue, [])))
            raise NotFound(f"no queue '{queue.name}' in vhost '{self._vhost.name}'")
        return self.leases.by_id.get(lease.id, lease)

    async def _take(
        self,
        queue: ClassicQueue,
        wish: LeaseWish,
        taken: list[Delivery | None],
        ranges: list[int],
    ) -> int:
        """Take what is ready out of `queue`, as it goes out; answers its octets.

        `ranges` get where ranges of their places begin and end, in the order in which they were taken: so
        they are found again after a restart.
        """
        octets = 0
        while len(taken) < wish.messages and len(ranges) < 2 * LEASE_RANGES_MAX and not queue.is_deleted:
            if taken:
                await NextTurn(self._world.later)
            first = len(taken)
            count = min(LEASED_PER_TURN, fitting(queue), wish.messages - first)
            octets += take_batch(queue, taken, count, wish.octets - octets)
            extend_ranges(queue, taken, first, ranges)
            queue.lighten()
            if len(taken) < first + count:
                break
        return octets

    def _heed(self, event: Event) -> None:
        if not self._is_restored:
            return
        match event:
            case LeaseGranted(lease=lease):
                self.granted_count += 1
                if lease.id not in self.held:
                    # Whoever took its messages was shut down before the metadata had it.
                    run(self._hold(lease))
                self._schedule()
            case LeaseRenewed():
                self._schedule()
            case LeaseEnded(lease=lease, state=state):
                self.ended_counts[state] += 1
                held = self.held.pop(lease.id, None)
                if held is not None:
                    self._letting_go += 1
                    run(self._let_go(held, state))
                self._schedule()
            case QueueDeleted(queue=queue):
                for id in [id for id, held in self.held.items() if held.queue.name == queue.name]:
                    del self.held[id]
                self._schedule()
            case _:
                pass

    async def _hold(self, lease: LeaseRecord) -> None:
        queue = self._vhost.queues.get(lease.queue)
        if isinstance(queue, ClassicQueue):
            held = self.held[lease.id] = Held(queue, [None] * lease.messages)
            for _ in _take_again(lease, held):
                await NextTurn(self._world.later)

    async def _let_go(self, held: Held, state: LeaseState) -> None:
        """Settle all messages of a lease that has ended, once who is being told of that is."""
        try:
            await NextTurn(self._world.later)
            if state is LeaseState.SETTLED:
                await self._acknowledge(held)
                await self._vhost.written()
            else:
                await self._give_back(held)
        finally:
            self._letting_go -= 1

    async def _give_back(self, held: Held) -> None:
        for at in range(0, len(held.deliveries), LEASED_PER_TURN):
            if not await self._may_go_on(at):
                return
            for delivery in filter(None, held.deliveries[at : at + LEASED_PER_TURN]):
                held.queue.requeue(delivery)
        if not held.queue.is_deleted:
            held.queue.pump()

    async def _acknowledge(self, held: Held) -> None:
        for at in range(0, len(held.deliveries), LEASED_PER_TURN):
            if not await self._may_go_on(at):
                return
            acknowledge_batch(held.queue, held.deliveries, at, at + LEASED_PER_TURN)

    async def _may_go_on(self, at: int) -> bool:
        """Whether the messages from number `at` on may be settled, in a turn of their own."""
        if at:
            await NextTurn(self._world.later)
        return not self._is_closed

    async def _expire(self, id: str) -> None:
        try:
            await self.end(id, LeaseState.EXPIRED, INTERNAL_USER)
        except (InternalError, ResourceError):
            # It cannot be written now, and whoever looks after the disk was told.
            self._world.after(REMOVAL_RETRY_MS, lambda: self._expire_again(id))
        else:
            self._ending.discard(id)

    def _expire_again(self, id: str) -> None:
        self._ending.discard(id)
        if not self._is_closed:
            self._schedule()

    def _schedule(self) -> None:
        """Be woken when the next lease is over."""
        times = [lease.expires_at for lease in self.leases.active() if lease.id not in self._ending]
        if times and not self._is_closed:
            self._vhost.expiry.schedule(self, min(times))
        else:
            self._vhost.expiry.forget(self)


class _Granting:
    """Something to await: a lease is there, or will not be."""

    __slots__ = ("_callbacks", "_is_over", "messages_max")

    def __init__(self, messages_max: int) -> None:
        # What it may have.
        self.messages_max = messages_max
        self._callbacks: list[Callable[[object], None]] = []
        self._is_over = False

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once, when it is so far."""
        self._callbacks.append(callback)

    def end(self) -> None:
        """It is so far."""
        self._is_over = True
        for callback in self._callbacks:
            callback(self)

    def __await__(self) -> Generator["_Granting", None, None]:
        if not self._is_over:
            yield self


def _take_again(lease: LeaseRecord, held: Held) -> Iterator[None]:
    """Take the messages of `lease` that are there out of their queue, a turn's work with each step."""
    queue = held.queue
    before = 0
    for begin, end in zip(lease.places[::2], lease.places[1::2], strict=True):
        place = begin
        while place < end:
            found = queue.peek(place, min(LEASED_PER_TURN, fitting(queue), end - place))
            place = found[-1].place + 1 if found else end
            for peeked in found:
                if peeked.place < end:
                    held.deliveries[before + peeked.place - begin] = queue.hold(peeked)
            yield
        before += end - begin
