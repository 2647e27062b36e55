"""What another node does with a quorum queue that this node leads, in one session: the far side.

It is to the queue what a channel is, and outlives no session: the deliveries of a node that is away are kept
by `ReplicatedQueue`, until the node claims them in its next session, or is known to be down.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol, TypeVar

from msgspec import Struct

from warren.cluster.payload_reader import PayloadReader
from warren.cluster.payload_writer import PayloadWriter
from warren.cluster.publish_answers import PublishAnswers
from warren.cluster.remote_codec import (
    ANSWER,
    ATTACH_AT,
    CLAIM,
    CLAIMED,
    ENQUEUER,
    IS_ATTACHED_AGAIN,
    IS_EXCLUSIVE,
    LEADING,
    NO_ACK,
    NOT_LEADER,
    RESUME,
    RETURNED,
    SETTLE_AT,
    SETTLED,
    MalformedPayload,
)
from warren.cluster.remote_consumer import RemoteConsumer, RemoteDeliveries
from warren.errors import InternalError, NotFound, NotLeading
from warren.limits_cluster import REMOTE_PLACES_MAX
from warren.metadata.events import Event, QueueDeclared
from warren.metadata.machine import Metadata
from warren.model.coroutine_driver import Later, Pending
from warren.model.message import Message
from warren.queues.queue import REFUSED, Delivery, Queue
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.vhost.vhost import VirtualHost

Value = TypeVar("Value")
_ACKNOWLEDGE = 0
_REJECT = 1
_RETURNED = RETURNED
_REFUSED = REFUSED


class LeadingQueue(Protocol):
    """Port: the queue in front of the one that leads."""

    def serve(self, served: "ServedQueue") -> QuorumQueue | None:
        """Serve another node from now on; None if this node does not lead: `leads` is called when it does."""

    def end_serving(self, served: "ServedQueue", held: dict[int, Delivery]) -> None:
        """The session has ended, and what the node had is `held`, until it claims it again."""

    def claim(self, enqueuer: Enqueuer, place: int) -> Delivery | None:
        """Take what the node of `enqueuer` says it holds at `place`; None if it does not any more."""

    def claimed(self, enqueuer: Enqueuer) -> None:
        """The node of `enqueuer` has said everything that it holds."""


class NamedQueue(Protocol):
    """Port: the queue as the other node has named it."""

    number: int
    name: str

    @property
    def is_gone(self) -> bool:
        """True if it was deleted."""

    def front(self, vhost: VirtualHost, metadata: Metadata) -> LeadingQueue | None:
        """The queue; None if it is not here yet, or gone."""

    def new_answers(self) -> PublishAnswers:
        """Answer what is published from now on, and nothing that was published before."""


class ServingChannel(Struct, frozen=True):
    """What a served queue uses of the channel of its session."""

    vhost: VirtualHost
    metadata: Metadata
    later: Later
    # The number of the other node.
    node: int
    writer: PayloadWriter
    # Sends at the end of the turn, or at once if it is much.
    send_soon: Callable[[], None]
    can_deliver: Callable[[], bool]
    cancelled: Callable[[RemoteConsumer], None]
    # The consumers of the session by number, and those that are not admitted yet.
    consumers: dict[int, RemoteConsumer]
    attaching: dict[int, RemoteConsumer]
    # What happens at the end of a payload.
    pumping: dict[Queue, None]
    waking: dict[RemoteConsumer, None]
    # Answers a request with what a coroutine returns.
    run: Callable[[int, Coroutine[Pending, None, tuple[int, int, int] | None]], None]


class ServedQueue(RemoteDeliveries):
    """One queue that another node has named."""

    __slots__ = (
        "_answers", "_channel", "_enqueuer", "_front", "_handed", "_is_listening", "_is_refusing",
        "_leader", "_next_number", "_number", "_served", "_settled_count", "_term",
    )  # fmt: skip

    def __init__(self, served: NamedQueue, channel: ServingChannel) -> None:
        """`served` is the queue as the other node has named it."""
        self._served = served
        self._number = served.number
        self._front: LeadingQueue | None = None
        self._channel = channel
        self._answers = served.new_answers()
        # True while the metadata are listened to, which do not have the queue yet.
        self._is_listening = False
        self._enqueuer = Enqueuer(channel.node, 0)
        self._next_number = 0
        # True from a publish that is refused until the other node knows that.
        self._is_refusing = False
        # None while this node does not lead; what belongs to an earlier leadership has another term.
        self._leader: QuorumQueue | None = None
        self._term = 0
        # Place -> what the other node has not settled.
        self._handed: dict[int, Delivery] = {}
        # The items SETTLE_AT of a payload.
        self._settled_count = 0

    # --- items --------------------------------------------------------------------------------------

    def handle(self, kind: int, reader: PayloadReader) -> None:
        """Handle an item for the leader, whose queue number was read."""
        if kind == SETTLE_AT:
            self._settle(reader)
        elif kind == ENQUEUER:
            self._begin(reader.number(8), reader.number(8))
        elif kind == RESUME:
            self._is_refusing = False
        elif kind == ATTACH_AT:
            self._attach(reader)
        elif kind == CLAIM:
            self._claim(reader)
        elif kind == CLAIMED and self._leader is not None and self._front is not None:
            self._front.claimed(self._enqueuer)
            self._channel.pumping[self._leader] = None

    def publish(self, message: Message) -> None:
        """Publish `message`, which has the next number; it counts as routed if the queue was deleted."""
        leader, answers = self._leader, self._answers
        if leader is None or leader.is_deleted:
            if leader is not None or self._served.is_gone:
                answers.next()
            return
        sequence = answers.next()
        if self._is_refusing:
            answers.refuse(sequence)
            return
        try:
            result = leader.publish_as(
                message, answers, sequence, enqueuer=self._enqueuer, number=self._next_number
            )
        except ValueError as error:
            raise MalformedPayload(str(error)) from None
        if result & _REFUSED:
            self._is_refusing = True
            answers.refuse(sequence)
        else:
            self._next_number += 1

    def leader(self) -> QuorumQueue:
        """The queue that leads here. NotLeading if there is none; NotFound if it was deleted."""
        if self._served.is_gone:
            raise NotFound(f"no queue '{self._served.name}' in vhost '{self._channel.vhost.name}'")
        if self._leader is None:
            raise NotLeading("this node does not lead the queue")
        return self._leader

    async def fetch(self, request: int) -> tuple[int, int, int]:
        """Take the first message for basic.get."""
        leader, term = self.leader(), self._term
        fetched = await self.led(leader.fetch(False))
        if fetched is None:
            return 0, 0, 0
        delivery, left = fetched
        if term != self._term:
            if leader.is_restored:
                leader.give_back(delivery)
                leader.pump()
            raise NotLeading("the session has ended")
        place = leader.group_place(delivery)
        self._handed[place] = delivery
        self._channel.writer.deliver_at(leader.outgoing(delivery), request, delivery.attempts, place)
        return left, 1, 0

    async def led(self, coroutine: Awaitable[Value]) -> Value:
        """What `coroutine` returns. NotLeading if this node leads no more: another one has to be asked."""
        try:
            return await coroutine
        except InternalError:
            if self._leader is None or not self._leader.is_restored:
                raise NotLeading("the leader has changed") from None
            raise

    def end_payload(self) -> None:
        """Answer what was settled in a payload when it is committed."""
        count, self._settled_count = self._settled_count, 0
        leader, term = self._leader, self._term
        if not count or leader is None:
            return

        def committed() -> None:
            if self._term == term:
                self._channel.writer.add(SETTLED, self._number, count)
                self._channel.send_soon()

        leader.when_settled(committed)

    # --- what the queue in front calls ----------------------------------------------------------------

    @property
    def enqueuer(self) -> Enqueuer:
        """The run of the other node, as it publishes."""
        return self._enqueuer

    def leads(self) -> None:
        """This node leads now: the other one has begun, or is to begin again."""
        self._channel.writer.add(LEADING, self._number)
        self._channel.send_soon()

    def stopped(self) -> None:
        """This node leads no more: nothing of what the other one has from it counts here."""
        if self._leader is not None:
            self._reset()
            self._channel.writer.add(NOT_LEADER, self._number)
            self._channel.send_soon()

    def end(self) -> None:
        """The session has ended, or the queue is not used any more; the consumers are removed already."""
        handed = self._handed
        self._reset()
        if self._front is not None:
            self._front.end_serving(self, handed)

    # --- what consumers call ----------------------------------------------------------------------------

    def can_deliver(self) -> bool:
        """False while the other node cannot take more."""
        return self._channel.can_deliver()

    def deliver(self, consumer: RemoteConsumer, delivery: Delivery) -> None:
        """Send `delivery`, which will be settled."""
        leader = self._leader
        assert leader is not None
        place = leader.group_place(delivery)
        self._handed[place] = delivery
        message = leader.outgoing(delivery) if delivery.attempts else delivery.message
        self._channel.writer.deliver_at(message, consumer.id, delivery.attempts, place)
        self._channel.send_soon()

    def deliver_message(self, consumer: RemoteConsumer, message: Message, attempts: int) -> None:
        """Send `message`, which will not be settled."""
        self._channel.writer.deliver(message, consumer.id, attempts, NO_ACK)
        self._channel.send_soon()

    def cancelled(self, consumer: RemoteConsumer) -> None:
        """The queue has cancelled `consumer`."""
        self._channel.cancelled(consumer)

    # --- private --------------------------------------------------------------------------------------

    def _begin(self, run: int, first: int) -> None:
        """Begin with publish `first` of a run of the other node."""
        handed = self._handed
        self._reset()
        if handed and self._front is not None:
            self._front.end_serving(self, handed)
        channel = self._channel
        front = self._front = self._served.front(channel.vhost, channel.metadata)
        if self._served.is_gone:
            return
        self._enqueuer = Enqueuer(self._channel.node, run)
        self._next_number = first
        if front is None:
            self._listen()
        else:
            self._leader = front.serve(self)
        if self._leader is None:
            self._channel.writer.add(NOT_LEADER, self._number)
            self._channel.send_soon()
        else:
            self.leads()
            self._leader.forget_runs_before(self._enqueuer)

    def _listen(self) -> None:
        """Look for the queue again when the metadata change."""
        if not self._is_listening:
            self._is_listening = True
            self._channel.metadata.listen(self._on_event, (QueueDeclared,))

    def _on_event(self, event: Event) -> None:
        self._channel.later(self._look)

    def _look(self, now: int) -> None:
        channel = self._channel
        if self._is_listening and self._served.front(channel.vhost, channel.metadata) is not None:
            self._stop_listening()
            self.leads()

    def _stop_listening(self) -> None:
        if self._is_listening:
            self._is_listening = False
            self._channel.metadata.ignore(self._on_event)

    def _reset(self) -> None:
        """Forget what belongs to the leadership that has ended."""
        self._term += 1
        self._stop_listening()
        self._leader = None
        self._handed = {}
        self._is_refusing = False
        self._settled_count = 0
        self._answers = self._served.new_answers()
        consumers = self._channel.consumers
        for id in [id for id, consumer in consumers.items() if consumer.serves(self)]:
            consumer = consumers.pop(id)
            consumer.queue.remove_consumer(consumer)

    def _attach(self, reader: PayloadReader) -> None:
        id = reader.number(4)
        flags, priority, stamp = reader.number(1), reader.signed(), reader.number(8)
        tag = reader.text()
        channel, leader = self._channel, self._leader
        if id in channel.consumers or id in channel.attaching:
            raise MalformedPayload(f"consumer {id} is attached again")
        if leader is None:
            channel.run(id, self._not_leading())
            return
        consumer = RemoteConsumer(
            self,
            id,
            leader,
            tag,
            no_ack=flags & NO_ACK != 0,
            is_exclusive=flags & IS_EXCLUSIVE != 0,
            priority=priority,
        )
        if flags & IS_ATTACHED_AGAIN:
            channel.consumers[id] = consumer
            leader.claims.attach(consumer, stamp)
            channel.writer.add(ANSWER, id, 0, 0, 0)
            channel.send_soon()
        else:
            channel.attaching[id] = consumer
            channel.run(id, self._admit(id, consumer, leader))

    async def _not_leading(self) -> tuple[int, int, int]:
        raise NotLeading("this node does not lead the queue")

    async def _admit(self, id: int, consumer: RemoteConsumer, leader: QuorumQueue) -> tuple[int, int, int]:
        channel, term = self._channel, self._term
        try:
            await self.led(leader.admit(consumer))
        finally:
            is_wanted = channel.attaching.pop(id, None) is not None
        if term != self._term:
            raise NotLeading("the leader has changed")
        if is_wanted:
            channel.consumers[id] = consumer
            leader.add_consumer(consumer)
        return 0, 0, 0

    def _claim(self, reader: PayloadReader) -> None:
        consumer = self._channel.consumers.get(reader.number(4))
        leader, front = self._leader, self._front
        for place in _places(reader):
            delivery = None if leader is None or front is None else front.claim(self._enqueuer, place)
            if delivery is not None:
                delivery.consumer = consumer
                if consumer is not None:
                    consumer.unsettled += 1
                self._handed[place] = delivery

    def _settle(self, reader: PayloadReader) -> None:
        how = reader.number(1)
        if how > _RETURNED:
            raise MalformedPayload(f"settled in way {how}")
        handed = self._handed
        for place in _places(reader):
            # Who leads since the message was delivered may not know of that.
            delivery = handed.pop(place, None)
            if delivery is not None:
                self._settle_one(delivery, how)
        self._settled_count += 1

    def _settle_one(self, delivery: Delivery, how: int) -> None:
        leader, consumer = self._leader, delivery.consumer
        assert leader is not None
        if how == _ACKNOWLEDGE:
            leader.acknowledge(delivery)
        elif how == _REJECT:
            leader.reject(delivery)
        else:
            if how == _RETURNED:
                delivery.consumer = None
                leader.give_back(delivery)
            else:
                leader.requeue(delivery, how)
            self._channel.pumping[leader] = None
        if isinstance(consumer, RemoteConsumer):
            consumer.unsettled -= 1
            if consumer.is_parked:
                self._channel.waking[consumer] = None


def _places(reader: PayloadReader) -> range:
    """The places of an item, which are next."""
    first, count = reader.number(8), reader.number(4)
    if not 0 < count <= REMOTE_PLACES_MAX:
        raise MalformedPayload(f"{count} places from {first} on")
    return range(first, first + count)
