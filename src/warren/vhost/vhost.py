"""A virtual host: where names meet things, and a message meets its queues."""

from collections.abc import Callable

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.local import LocalQueue
from warren.queues.queue import Queue, QueueHost
from warren.routing.exchange import Exchange
from warren.routing.router import Route, Router, decode_name
from warren.store.stores import Stores
from warren.store.streams.stream_store import StreamStore
from warren.vhost.dead_letter_router import DeadLetterRouter
from warren.vhost.expiry import Expiry
from warren.vhost.write_barrier import WriteBarrier

# What `publish` answers: the first is 0, as for queues.
ROUTED = 0
UNROUTED = 2

_UNROUTED = UNROUTED


class VirtualHost(QueueHost):
    """The live exchanges, bindings and queues of one virtual host."""

    __slots__ = (
        "_dead_letter_router", "expiry", "has_store", "history", "name", "octets_received", "octets_sent",
        "permission_generation", "queue_unused", "queues", "router", "stores", "streams", "tracer",
    )  # fmt: skip

    def __init__(self, name: str, router: Router, now: int) -> None:
        super().__init__(now)
        self.name = name
        self.router = router
        self.queues: dict[str, LocalQueue] = {}
        self.expiry = Expiry()
        # Advances when what a user may do here changes.
        self.permission_generation = 0
        # Of all its connections, as far as somebody has added them up.
        self.octets_received = 0
        self.octets_sent = 0
        # Whoever samples its counters keeps them here, so that they go with it.
        self.history: object = None
        # Deletes a queue that has outlived its use, with its bindings; set by who declares.
        self.queue_unused: Callable[[LocalQueue], None] = _nobody
        self._dead_letter_router = DeadLetterRouter(self, router)
        # Where the persistent messages of durable queues are kept; None: nowhere.
        self.stores: Stores | None = None
        # And those of streams.
        self.streams: StreamStore | None = None
        self.has_store = False
        # Makes copies of what is published and delivered; None while nobody asked for them.
        self.tracer: object = None

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Give `message` to each queue that it is routed to: ROUTED, UNROUTED, or REFUSED by any of them.

        NotFound when its exchange does not exist.
        """
        destinations = self.router.route(message.address, message)
        return self.publish_routed(destinations, message, confirmation, sequence)

    def publish_routed(
        self,
        destinations: tuple[object, ...],
        message: Message,
        confirmation: ConfirmListener | None,
        sequence: int,
    ) -> int:
        """The same, for who knows already where `message` is routed to."""
        exchange: Exchange = self.router.exchanges[decode_name(message.address, 0)]
        exchange.published_in += 1
        exchange.published_out += len(destinations)
        return self.publish_to_queues(destinations, message, confirmation, sequence)

    def publish_by_route(
        self, route: Route, message: Message, confirmation: ConfirmListener | None, sequence: int
    ) -> int:
        """The same for a message without copies, whose address is that of `route`."""
        exchange = route.source
        exchange.published_in += 1
        if route.sole is None:
            exchange.published_out += len(route.destinations)
            return self.publish_to_queues(route.destinations, message, confirmation, sequence)
        exchange.published_out += 1
        queue: Queue = route.sole  # type: ignore[assignment]
        self.published += 1
        self.work += 1
        return queue.publish(message, confirmation, sequence)

    def publish_to_queues(
        self,
        destinations: tuple[object, ...],
        message: Message,
        confirmation: ConfirmListener | None,
        sequence: int,
    ) -> int:
        """Give `message` to all `destinations`, which no exchange has found."""
        self.published += 1
        if not destinations:
            return _UNROUTED
        outcome = 0
        for destination in destinations:
            queue: Queue = destination  # type: ignore[assignment]
            outcome |= queue.publish(message, confirmation, sequence)
        self.work += len(destinations)
        return outcome

    def distribute(self, message: Message) -> None:
        """Give `message`, which the broker itself has made, to each queue that it is routed to.

        Nobody is told what becomes of it, and nobody counts as its publisher.
        """
        for destination in self.router.route(message.address, message):
            queue: Queue = destination  # type: ignore[assignment]
            queue.publish(message, None, 0)
            if isinstance(queue, LocalQueue):
                queue.broker_published_count += 1

    def trace_with(self, tracer: object) -> None:
        """Have `tracer` make copies from now on, or nobody if it is None; publishers look again."""
        self.tracer = tracer
        self.is_traced = tracer is not None
        self.permission_generation += 1

    def attach_store(self, stores: Stores) -> None:
        """Have persistent messages kept in `stores` from here on."""
        self.stores = stores
        self.has_store = True

    def attach_stream_store(self, store: StreamStore) -> None:
        """Have the messages of streams kept in `store` from here on."""
        self.streams = store

    async def written(self) -> None:
        """Wait until everything that was published before is safe."""
        stores, streams = self.stores, self.streams
        if stores is not None and not stores.persistent.is_idle:
            await WriteBarrier(stores.persistent)
        if streams is not None and not streams.is_idle:
            await WriteBarrier(streams)

    def generation(self) -> int:
        """A number that differs whenever a permission or the topology does."""
        return self.router.generation + self.permission_generation

    def expire(self, now: int) -> None:
        """Wake the queues that are due."""
        self.now = now
        self.expiry.run(now)

    @property
    def dead_letter_counts(self) -> dict[str, int]:
        """Reason -> how many messages died of it and were routed again, since the start."""
        return self._dead_letter_router.counts

    def dead_letter(self, queue: Queue, message: Message, reason: str) -> None:
        """`message` died in `queue`: route it again."""
        self._dead_letter_router.take(queue, message, reason)  # type: ignore[arg-type]

    @property
    def discarded_counts(self) -> dict[str, int]:
        """Reason -> how many messages died of it without an exchange to route them again, since the start."""
        return self._dead_letter_router.discarded_counts

    def set_discard_logger(self, log_discard: Callable[[str], None]) -> None:
        """Have `log_discard` called, now and then, of messages that were delivered too often and lost."""
        self._dead_letter_router.log_discard = log_discard

    def count_discarded(self, queue: Queue, reason: str) -> None:
        """A message died in `queue`, which has no dead-letter exchange."""
        self._dead_letter_router.count_discarded(queue, reason)  # type: ignore[arg-type]

    def wake_at(self, queue: Queue, when: int) -> None:
        """Call `queue.expire()` at `when` (ms) and at no time given before; -1: never."""
        if when < 0:
            self.expiry.forget(queue)
        else:
            self.expiry.schedule(queue, when)

    def delete_queue(self, queue: Queue) -> None:
        """`queue` has outlived its use."""
        self.queue_unused(queue)  # type: ignore[arg-type]


def _nobody(queue: LocalQueue) -> None:
    """Before a topology is attached."""
