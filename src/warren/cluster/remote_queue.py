"""A queue whose home is another node: what a channel of this node has instead of it.

Publishes, settlements and the methods of clients go to the home, where the messages are and all decisions are
taken. What the queue says of itself is what the home has last answered.
"""

from collections.abc import Iterator

from warren.cluster.home_node import HomeNode
from warren.cluster.home_request import HomeAnswer, HomeRequest
from warren.cluster.queue_traffic import QueueTraffic
from warren.cluster.remote_codec import ASK, COMMIT, GET, INSPECT, NO_ACK, PURGE
from warren.errors import NotFound, PreconditionFailed
from warren.metadata.records import QueueRecord
from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.queue import ACCEPTED, NACKED, Consumer, Delivery
from warren.queues.queue_counts import QueueCounts
from warren.queues.vhost_queue import VhostQueue
from warren.vhost.vhost import VirtualHost

# How a delivery leaves its queue, as in `session/subscriber`.
_ACKNOWLEDGE = 0
_REJECT = 1
_ACCEPTED = ACCEPTED
_NO_TABLE = bytes(4)


class RemoteQueue(VhostQueue):
    """A queue on another node."""

    __slots__ = ("_counts", "_home", "_is_paused", "_traffic")

    def __init__(
        self, record: QueueRecord, vhost: VirtualHost, settings: QueueSettings, home: HomeNode
    ) -> None:
        """The queue of `record` in `vhost`."""
        super().__init__(record.name, vhost.name, vhost, settings)
        self.owner = record.owner
        self.is_auto_delete = record.auto_delete
        self._home = home
        self._traffic = QueueTraffic(self, record.name, record.number, is_durable=record.survives_restart)
        # What the home has last answered.
        self._counts = QueueCounts(0, 0)
        self._is_paused = False

    # --- for each message -----------------------------------------------------------------------------

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Send `message` to the home: ACCEPTED, with BEHIND if that takes too little.

        REFUSED with UNAVAILABLE while the home is away.
        """
        if self.is_deleted:
            return _ACCEPTED
        return self._home.publish(self._traffic, message, confirmation, sequence)

    def acknowledge(self, delivery: Delivery) -> None:
        """Settle `delivery`; without effect if its session has ended, as for all that follow."""
        self._home.settle(delivery, _ACKNOWLEDGE)

    def requeue(self, delivery: Delivery, reason: int = NACKED) -> None:
        """Return `delivery` to its place for `reason`, to be redelivered."""
        self._home.settle(delivery, reason)

    def reject(self, delivery: Delivery) -> None:
        """Dead-letter or drop `delivery`, which was rejected."""
        self._home.settle(delivery, _REJECT)

    def consumer_ready(self, consumer: Consumer) -> None:
        """Unpark `consumer`, which can take messages again."""
        self.unpark(consumer)

    def unpark(self, consumer: Consumer) -> None:
        """Unpark `consumer`: the home may deliver more to it, if it has little left."""
        consumer.is_parked = False
        attachment = self._traffic.attachments.get(consumer)
        if attachment is not None:
            self._home.renew(attachment)

    # --- for each method ------------------------------------------------------------------------------

    def check_reachable(self) -> None:
        """HomeDown while the home is away, if the queue is durable: one that is not ends with its home."""
        if self._traffic.is_durable:
            self._home.check_up(self._traffic)

    async def inspect(self) -> QueueCounts:
        """The numbers of its messages and of its consumers. NotFound while the home is away.

        If it is not durable, this waits until the home is back, or down and the queue with it.
        """
        try:
            ready, consumers, delayed = await self._ask(INSPECT)
        except NotFound:
            if self._traffic.is_durable or self._home.is_up or self.is_deleted:
                raise
            await self._home.absence.wait(self._traffic)
            ready, consumers, delayed = await self._ask(INSPECT)
        self._counts = QueueCounts(ready, consumers, delayed)
        return self._counts

    async def fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        """Take the first ready message for basic.get, with the number of those behind it.

        None if there is none. With `no_ack` it is settled when it has arrived.
        """
        answer = await self._answer(self._home.request(GET, self._traffic, NO_ACK if no_ack else 0))
        delivery, left = answer[:2]
        if not isinstance(delivery, Delivery):
            return None
        if no_ack:
            self._home.settle(delivery, _ACKNOWLEDGE)
        return delivery, left

    async def purge(self) -> int:
        """Drop the ready messages; returns their number."""
        count, _, _ = await self._ask(PURGE)
        return count

    async def committed(self) -> None:
        """Wait until the home has written what was done with its messages before."""
        await self._ask(COMMIT)

    async def admit(self, consumer: Consumer) -> None:
        """Raise an AmqpError if the home does not admit `consumer`; otherwise it has its place there."""
        request = self._home.attach(self._traffic, consumer, self.read_arguments_of(consumer))
        is_admitted = False
        try:
            await self._answer(request)
            is_admitted = True
        finally:
            if not is_admitted:
                self.remove_consumer(consumer)

    def read_arguments_of(self, consumer: Consumer) -> bytes:
        """Those arguments of `consumer` that its home needs, as an encoded table: none of most queues."""
        return _NO_TABLE

    def add_consumer(self, consumer: Consumer) -> None:
        """Let `consumer` get messages, which was admitted in this turn."""
        self._home.admitted(self._traffic.attachments[consumer])

    async def end_deliveries(self, consumer: Consumer) -> None:
        """Have `consumer` removed at the home, and wait until what was sent to it has arrived."""
        attachment = self._traffic.attachments.get(consumer)
        if attachment is None:
            return
        try:
            await self._answer(self._home.end_deliveries(self._traffic, attachment))
        except NotFound:
            # The session or the queue has ended, and with it the consumer.
            return
        self._home.drop(attachment)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove `consumer`; what is on its way to it returns to its place."""
        attachment = self._traffic.attachments.get(consumer)
        if attachment is not None:
            self._home.detach(attachment)

    def check_positioned(self) -> None:
        """PreconditionFailed: the positions are remembered where the messages are."""
        raise PreconditionFailed(
            f"queue '{self.name}' in vhost '{self.vhost_name}' is on another node, and cannot receive"
            " messages exactly once from here"
        )

    def exists(self) -> bool:
        """False if the queue was deleted."""
        return not self.is_deleted

    # --- what the metadata say ------------------------------------------------------------------------

    def pause(self) -> None:
        """Show that it is paused; its home pauses it."""
        self._is_paused = True

    def resume(self) -> None:
        """Show that it is not paused."""
        self._is_paused = False

    def touch(self) -> None:
        """Restart the timer of x-expires at the home."""
        self._home.tell_touched(self._traffic)

    def delete(self) -> int:
        """Cancel the consumers of this node, since the queue was deleted; returns 0."""
        self.is_deleted = True
        attachments = list(self._traffic.attachments.values())
        for attachment in attachments:
            self._home.detach(attachment)
        for attachment in attachments:
            if not attachment.is_ending:
                attachment.consumer.cancelled()
        self._home.forget(self._traffic)
        return 0

    # --- what is known here ---------------------------------------------------------------------------

    @property
    def message_count(self) -> int:
        """The number of ready messages, as the home has last said."""
        return self._counts.message_count

    @property
    def consumer_count(self) -> int:
        """The number of consumers, as the home has last said."""
        return self._counts.consumer_count

    @property
    def is_paused(self) -> bool:
        """True while deliveries are paused."""
        return self._is_paused

    def consumers(self) -> Iterator[Consumer]:
        """The consumers of this node, oldest first."""
        return iter(list(self._traffic.attachments))

    # --- private --------------------------------------------------------------------------------------

    async def _ask(self, what: int) -> tuple[int, int, int]:
        answer = await self._answer(self._home.request(ASK, self._traffic, what))
        assert len(answer) == 3
        return answer

    async def _answer(self, request: HomeRequest) -> HomeAnswer:
        """The answer to `request`, which is withdrawn if nobody waits for it any more."""
        try:
            return await request
        finally:
            if not request.is_done:
                self._home.withdraw(request)
