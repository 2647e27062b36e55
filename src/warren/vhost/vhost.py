"""A virtual host: routes published messages to its queues."""

from collections.abc import Callable

from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.model.samples import Samples
from warren.model.turn import Turn
from warren.queues.leadership_listener import LeadershipListener
from warren.queues.queue import UNAVAILABLE, Expirable, Queue, QueueHost
from warren.queues.vhost_queue import VhostQueue
from warren.routing.exchange import Exchange
from warren.routing.router import Route, Router, decode_name
from warren.store.stores import Stores
from warren.store.streams.stream_store import StreamStore
from warren.vhost.dead_letter_router import DeadLetterRouter
from warren.vhost.expiry import Expiry
from warren.vhost.failed_queues import FailedQueues
from warren.vhost.message_tracer import MessageTracer
from warren.vhost.published_positions import PublishedPositions
from warren.vhost.queue_removals import QueueRemovals
from warren.vhost.remote_replies import RemoteReplies
from warren.vhost.write_barrier import WriteBarrier

# The results of `publish`; ROUTED is 0, as it is for queues.
ROUTED = 0
UNROUTED = 2

_UNROUTED = UNROUTED
_UNAVAILABLE = UNAVAILABLE


class VirtualHost(QueueHost):
    """The live exchanges, bindings and queues of one virtual host."""

    __slots__ = (
        "_dead_letter_router", "_rerouted", "bytes_received", "bytes_sent", "expiry", "failures", "has_store",
        "history", "is_recovered", "leadership_listener", "name", "permission_generation",
        "published_positions", "queue_unused", "queues", "remote_replies", "removals", "router", "stores",
        "streams", "tracer",
    )  # fmt: skip

    def __init__(self, name: str, router: Router, turn: Turn) -> None:
        super().__init__(turn)
        self.name = name
        self.router = router
        self.queues: dict[str, VhostQueue] = {}
        self.expiry = Expiry()
        # Ends queues that an error has broken; None if an error is to be raised. Set by `contain_failures`.
        self.failures: FailedQueues | None = None
        # Advances when the permissions of a user in this virtual host change.
        self.permission_generation = 0
        # The totals of all its connections, as last added up.
        self.bytes_received = 0
        self.bytes_sent = 0
        # The sampled history of its counters, kept here so that it is dropped with the virtual host.
        self.history: Samples | None = None
        # Deletes a queue that expired or is unused, with its bindings; set by the owner.
        self.queue_unused: Callable[[VhostQueue], None] = _nobody
        # The deletions of its queues on this node that are not over.
        self.removals = QueueRemovals()
        self._dead_letter_router = DeadLetterRouter(self, router)
        # Who wants to be woken when a route changes.
        self._rerouted: dict[Expirable, None] = {}
        # The stores of the messages of queues; None if messages are in memory only.
        self.stores: Stores | None = None
        # The store of the messages of streams.
        self.streams: StreamStore | None = None
        self.has_store = False
        # True once the queues exist that were declared when it began: this node hears of each other one for
        # the first time. Set by the owner.
        self.is_recovered = False
        # The positions of other brokers' queues that were published here; None while nobody has asked.
        self.published_positions: PublishedPositions | None = None
        # The requesters of direct replies on other nodes; None if there can be none. Set by the owner.
        self.remote_replies: RemoteReplies | None = None
        # Who is told which replicated queues this node leads; set by the owner.
        self.leadership_listener: LeadershipListener | None = None
        # Publishes traces of messages; None while tracing is off.
        self.tracer: MessageTracer | None = None

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Publish `message` to each queue that it is routed to; returns ROUTED, UNROUTED, or REFUSED if any
        refused it.

        BEHIND is added if one of them asks the publisher to wait, UNAVAILABLE if all are on nodes that are
        away, so that no queue has the message.

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

    def publish_found(
        self,
        destinations: tuple[object, ...],
        message: Message,
        confirmation: ConfirmListener | None,
        sequence: int,
    ) -> int:
        """Publish `message` again, which had no queue before, to the `destinations` that it has now.

        Returns as `publish` does.
        """
        # It has been counted.
        self.published -= 1
        self.router.exchanges[decode_name(message.address, 0)].published_in -= 1
        return self.publish_routed(destinations, message, confirmation, sequence)

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
            if self.remote_replies is not None:
                self.remote_replies.publish(message)
            return _UNROUTED
        outcome = 0
        common = _UNAVAILABLE
        for destination in destinations:
            queue: Queue = destination  # type: ignore[assignment]
            answer = queue.publish(message, confirmation, sequence)
            outcome |= answer
            common &= answer
        self.work += len(destinations)
        return outcome if common else outcome & ~_UNAVAILABLE

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
    def dead_letter_counts(self) -> dict[str, dict[str, int]]:
        """The number of dead-lettered messages by type of the queue and reason, since the start."""
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
    def discarded_counts(self) -> dict[str, dict[str, int]]:
        """The number of messages lost for want of a dead-letter exchange, by type of the queue and reason."""
        return self._dead_letter_router.discarded_counts

    def set_discard_logger(self, log_discard: Callable[[str], None]) -> None:
        """Call `log_discard`, at a limited rate, when messages that exceeded the delivery limit were lost, or
        when dead letters that are kept cannot be routed.
        """
        self._dead_letter_router.log_discard = log_discard

    def check_dead_lettering(self, queue: VhostQueue) -> None:
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

    def contain_failures(self, failures: FailedQueues) -> None:
        """Let `failures` end what an error has broken from now on."""
        self.failures = failures
        self.expiry.failed = lambda woken, error: failures.end_expirable(self, woken, error)

    def end_failed(self, queue: Queue, error: Exception) -> None:
        """End `queue`, in which `error` was raised outside of any connection; others go on."""
        if self.failures is None:
            raise error
        self.failures.end(self, queue.name, error)  # type: ignore[attr-defined]

    def substitute(self, name: str, settings: QueueSettings, error: Exception) -> VhostQueue:
        """What stands for the queue `name`, which could not be made because of `error`."""
        if self.failures is None:
            raise error
        return self.failures.made_in_its_place(self, name, settings, error)

    def note_failure(self, text: str, error: Exception) -> None:
        """Log and count that something that belongs to one queue has raised `error`, which `text` names."""
        if self.failures is None:
            raise error
        self.failures.note(text, error)

    def count_failure(self) -> None:
        """Count a job or a link that an error has ended, which was logged."""
        if self.failures is not None:
            self.failures.count += 1

    @property
    def failure_count(self) -> int:
        """The number of queues, leases, jobs, links and listeners that an error has ended since the start."""
        return 0 if self.failures is None else self.failures.count

    def delete_queue(self, queue: Queue) -> None:
        """Delete `queue`, which expired or is unused."""
        self.queue_unused(queue)  # type: ignore[arg-type]


def _nobody(queue: VhostQueue) -> None:
    """The default callback, which does nothing."""
