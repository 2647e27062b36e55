"""A virtual host: routes published messages to its queues."""

from collections.abc import Callable

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.model.samples import Samples
from warren.model.turn import Turn
from warren.queues.local import LocalQueue
from warren.queues.queue import Expirable, Queue, QueueHost
from warren.routing.exchange import Exchange
from warren.routing.router import Route, Router, decode_name
from warren.store.stores import Stores
from warren.store.streams.stream_store import StreamStore
from warren.vhost.dead_letter_router import DeadLetterRouter
from warren.vhost.expiry import Expiry
from warren.vhost.message_tracer import MessageTracer
from warren.vhost.published_positions import PublishedPositions
from warren.vhost.write_barrier import WriteBarrier

# The results of `publish`; ROUTED is 0, as it is for queues.
ROUTED = 0
UNROUTED = 2

_UNROUTED = UNROUTED


class VirtualHost(QueueHost):
    """The live exchanges, bindings and queues of one virtual host."""

    __slots__ = (
        "_dead_letter_router", "_rerouted", "bytes_received", "bytes_sent", "expiry", "has_store", "history",
        "name", "permission_generation", "published_positions", "queue_unused", "queues", "router", "stores",
        "streams", "tracer",
    )  # fmt: skip

    def __init__(self, name: str, router: Router, turn: Turn) -> None:
        super().__init__(turn)
        self.name = name
        self.router = router
        self.queues: dict[str, LocalQueue] = {}
        self.expiry = Expiry()
        # Advances when the permissions of a user in this virtual host change.
        self.permission_generation = 0
        # The totals of all its connections, as last added up.
        self.bytes_received = 0
        self.bytes_sent = 0
        # The sampled history of its counters, kept here so that it is dropped with the virtual host.
        self.history: Samples | None = None
        # Deletes a queue that expired or is unused, with its bindings; set by the owner.
        self.queue_unused: Callable[[LocalQueue], None] = _nobody
        self._dead_letter_router = DeadLetterRouter(self, router)
        # Who wants to be woken when a route changes.
        self._rerouted: dict[Expirable, None] = {}
        # The stores of the messages of queues; None if messages are in memory only.
        self.stores: Stores | None = None
        # The store of the messages of streams.
        self.streams: StreamStore | None = None
        self.has_store = False
        # The positions of other brokers' queues that were published here; None while nobody has asked.
        self.published_positions: PublishedPositions | None = None
        # Publishes traces of messages; None while tracing is off.
        self.tracer: MessageTracer | None = None

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Publish `message` to each queue that it is routed to; returns ROUTED, UNROUTED, or REFUSED if any
        refused it.

        Raises NotFound if the exchange does not exist.
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
        """Publish `message` to `destinations`, to which its exchange has routed it.

        Returns as `publish` does.
        """
        exchange: Exchange = self.router.exchanges[decode_name(message.address, 0)]
        exchange.published_in += 1
        exchange.published_out += len(destinations)
        return self.publish_to_queues(destinations, message, confirmation, sequence)

    def publish_by_route(
        self, route: Route, message: Message, confirmation: ConfirmListener | None, sequence: int
    ) -> int:
        """Publish `message`, which has no CC or BCC copies, by the cached `route` of its address.

        Returns as `publish` does.
        """
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
        """Publish `message` to `destinations` without counting it for an exchange.

        Returns as `publish` does.
        """
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
        """Publish `message`, made by the broker itself, to each queue that it is routed to.

        There is no confirm, and it does not count as published by a client.
        """
        for destination in self.router.route(message.address, message):
            queue: Queue = destination  # type: ignore[assignment]
            queue.publish(message, None, 0)
            queue.count_broker_published()

    def trace_with(self, tracer: MessageTracer | None) -> None:
        """Trace messages with `tracer` from now on, or stop tracing if it is None."""
        self.tracer = tracer
        self.is_traced = tracer is not None
        self.permission_generation += 1

    def attach_store(self, stores: Stores) -> None:
        """Store persistent messages in `stores` from now on."""
        self.stores = stores
        self.has_store = True

    def attach_stream_store(self, store: StreamStore) -> None:
        """Store the messages of streams in `store` from now on."""
        self.streams = store

    async def written(self) -> None:
        """Wait until everything published before is synced."""
        stores, streams = self.stores, self.streams
        if stores is not None and not stores.persistent.is_idle:
            await WriteBarrier(stores.persistent)
        if streams is not None and not streams.is_idle:
            await WriteBarrier(streams)

    def generation(self) -> int:
        """A number that changes whenever a permission or the topology changes."""
        return self.router.generation + self.permission_generation

    def expire(self) -> None:
        """Wake the queues and leases that are due."""
        self.expiry.run(self.turn.begin())

    @property
    def dead_letter_counts(self) -> dict[str, int]:
        """The number of dead-lettered messages by reason, since the start."""
        return self._dead_letter_router.counts

    def dead_letter(self, queue: Queue, message: Message, reason: str) -> None:
        """Route `message`, which `queue` has dead-lettered for `reason`."""
        self._dead_letter_router.take(queue, message, reason)  # type: ignore[arg-type]

    def route_dead_letter(
        self, queue: Queue, message: Message, reason: str
    ) -> tuple[Message, list[Queue]] | None:
        """The dead letter that `message` of `queue` becomes, and its targets; None if it cannot be routed."""
        return self._dead_letter_router.route(queue, message, reason)  # type: ignore[arg-type]

    def retry_dead_letters(self, waiting: Expirable, when: int) -> None:
        """Call `waiting.expire()` once, at or soon after `when` (ms), or after a route has changed.

        -1 cancels.
        """
        if when < 0:
            self.expiry.forget(waiting)
            self._rerouted.pop(waiting, None)
        else:
            self.expiry.schedule(waiting, when)
            self._rerouted[waiting] = None
            self.router.changed = self._routes_changed

    def _routes_changed(self) -> None:
        """Wake, in another turn, those whose dead letters wait."""
        self.router.changed = None
        waiting, self._rerouted = self._rerouted, {}
        now = self.turn.now()
        for each in waiting:
            self.expiry.schedule(each, now)

    @property
    def discarded_counts(self) -> dict[str, int]:
        """The number of messages lost by reason for want of a dead-letter exchange, since the start."""
        return self._dead_letter_router.discarded_counts

    def set_discard_logger(self, log_discard: Callable[[str], None]) -> None:
        """Call `log_discard`, at a limited rate, when messages that exceeded the delivery limit were lost, or
        when dead letters that are kept cannot be routed.
        """
        self._dead_letter_router.log_discard = log_discard

    def check_dead_lettering(self, queue: LocalQueue) -> None:
        """Log if `queue` cannot dead-letter as its settings ask for."""
        self._dead_letter_router.check(queue)

    def count_discarded(self, queue: Queue, reason: str) -> None:
        """Count a message lost by `queue`, which has no dead-letter exchange."""
        self._dead_letter_router.count_discarded(queue, reason)  # type: ignore[arg-type]

    def wake_at(self, queue: Queue, when: int) -> None:
        """Call `queue.expire()` at `when` (ms) instead of an earlier scheduled time; -1 cancels."""
        if when < 0:
            self.expiry.forget(queue)
        else:
            self.expiry.schedule(queue, when)

    def delete_queue(self, queue: Queue) -> None:
        """Delete `queue`, which expired or is unused."""
        self.queue_unused(queue)  # type: ignore[arg-type]


def _nobody(queue: LocalQueue) -> None:
    """The default callback, which does nothing."""
