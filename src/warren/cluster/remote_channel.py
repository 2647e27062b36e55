"""What another node does with queues of this node, in one virtual host and one session: the far side.

It is to the queues what a channel is: it publishes, and has consumers and unsettled deliveries. When the
session ends its consumers are removed and its deliveries are requeued, as when a channel ends.

Payloads that name a queue that is not here wait until the metadata that their sender knew are applied, and
those behind them wait as well. After that, the queue was deleted: what is published to it counts as routed.
"""

from collections.abc import Callable, Coroutine

from msgspec import Struct

from warren.cluster.addressed_queue import AddressedQueue
from warren.cluster.node_channel import NodeChannel
from warren.cluster.parked_payloads import ParkedPayloads, ParkingDependencies
from warren.cluster.payload_reader import PayloadReader
from warren.cluster.payload_writer import PayloadWriter
from warren.cluster.remote_codec import (
    ANSWER,
    ASK,
    ASK_REPLY,
    ATTACH,
    CANCELLED,
    COMMIT,
    CONFIRM,
    CREDIT,
    DETACH,
    FORGET,
    FROM_HOME,
    GET,
    INSPECT,
    IS_EXCLUSIVE,
    LOST,
    NAME,
    NO_ACK,
    PUBLISH,
    PURGE,
    REFUSE,
    REPLY,
    RETURNED,
    SAME_QUEUES,
    SETTLE,
    START,
    TO_LEADER,
    TOUCH,
    WANTS_CONFIRM,
    MalformedPayload,
    encode_head,
)
from warren.cluster.remote_consumer import RemoteConsumer, RemoteDeliveries
from warren.cluster.replicated.served_queue import ServingChannel
from warren.cluster.request_errors import code_of
from warren.errors import AmqpError
from warren.limits_cluster import REMOTE_NAMED_MAX
from warren.metadata.machine import Metadata
from warren.model.coroutine_driver import Later, Pending, drive
from warren.model.message import BODY_END, NO_PROPERTIES, Message, encode_address
from warren.model.ring import Ring
from warren.queues.capabilities import reply_queue, stream_queue, taking_queue
from warren.queues.queue import CHANNEL_ENDED, REFUSED, Delivery, Queue
from warren.queues.reply import REPLY_ADDRESS_PREFIX, ReplyQueue
from warren.queues.stream_read_options import StreamReadOptions
from warren.vhost.vhost import VirtualHost

# How a delivery is settled, as in `session/subscriber`, and why it returns.
_ACKNOWLEDGE = 0
_REJECT = 1
_CHANNEL_ENDED = CHANNEL_ENDED
_RETURNED = RETURNED
_REFUSED = REFUSED
_PUBLISH = PUBLISH
_SETTLE = SETTLE
_SAME_QUEUES = SAME_QUEUES
_WANTS_CONFIRM = WANTS_CONFIRM
# Routed to find out whether a name is known.
_NO_MESSAGE = Message(b"\0\0", NO_PROPERTIES, BODY_END, 0)


class RemoteChannelDependencies(Struct, frozen=True, kw_only=True):
    """What a remote channel needs: the port to its node, and the parts of this one."""

    channel: NodeChannel
    metadata: Metadata
    later: Later
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    # The number of the other node.
    node: int = 0


class RemoteChannel(RemoteDeliveries):
    """The consumers, deliveries and publishes of one node, in one virtual host and one session."""

    __slots__ = (
        "_answering", "_attaching", "_channel", "_consumers", "_first", "_head", "_is_flush_due", "_later",
        "_metadata", "_parked", "_pumping", "_queues", "_sent_no_ack", "_serving", "_settling", "_takes",
        "_unsettled", "_waking", "_writer", "is_over", "vhost",
    )  # fmt: skip

    def __init__(self, vhost: VirtualHost, generation: int, dependencies: RemoteChannelDependencies) -> None:
        self.vhost = vhost
        # True when the session has ended.
        self.is_over = False
        self._channel = dependencies.channel
        self._metadata = dependencies.metadata
        self._later = dependencies.later
        self._head = encode_head(generation, 0, vhost.name)
        self._writer = PayloadWriter()
        self._is_flush_due = False
        # Whether the channel took payloads when this one last looked: after each payload, in both directions.
        self._takes = True
        # By number; and those of them that may have answers to send.
        self._queues: dict[int, AddressedQueue] = {}
        self._answering: dict[AddressedQueue, None] = {}
        # By number: the consumers, and those that are not admitted yet.
        self._consumers: dict[int, RemoteConsumer] = {}
        self._attaching: dict[int, RemoteConsumer] = {}
        # Unsettled deliveries; `_first` is the number of the front.
        self._first = 1
        self._unsettled = Ring()
        # Those of basic.get without acknowledgement: settled when they have arrived, or if that is not known.
        self._sent_no_ack: dict[Delivery, None] = {}
        # What happens at the end of a payload: queues deliver, and consumers that were parked are ready.
        self._settling: dict[AddressedQueue, None] = {}
        self._pumping: dict[Queue, None] = {}
        self._waking: dict[RemoteConsumer, None] = {}
        self._serving = ServingChannel(
            vhost, self._metadata, self._later,
            dependencies.node, self._writer, self._send_soon, self.can_deliver, self.cancelled,
            self._consumers, self._attaching, self._pumping, self._waking, self._run,
        )  # fmt: skip
        self._parked = ParkedPayloads(
            self._handle,
            ParkingDependencies(
                metadata=dependencies.metadata,
                later=dependencies.later,
                after=dependencies.after,
                end_session=dependencies.channel.end_session,
            ),
        )

    # --- what the link calls --------------------------------------------------------------------------

    def received(self, reader: PayloadReader) -> None:
        """Handle a payload, or park it. MalformedPayload if it is not what a node sends to a home."""
        self._parked.received(reader)

    def writable(self) -> None:
        """The channel takes payloads again: so do consumers."""
        self.flush()
        for consumer in list(self._consumers.values()):
            if consumer.is_parked:
                consumer.queue.consumer_ready(consumer)

    def end(self) -> None:
        """End the session: remove all consumers, and requeue all deliveries. Does nothing a second time."""
        if self.is_over:
            return
        self.is_over = True
        self._parked.end()
        self._writer.clear()
        queues: dict[Queue, None] = {}
        consumers = list(self._consumers.values())
        self._consumers.clear()
        self._attaching.clear()
        for consumer in consumers:
            consumer.queue.remove_consumer(consumer)
            queues[consumer.queue] = None
        for addressed in self._queues.values():
            if addressed.served is not None:
                addressed.served.end()
        unsettled = self._unsettled
        self.vhost.work += unsettled.count
        while unsettled.count:
            delivery: Delivery = unsettled.popleft()  # type: ignore[assignment]
            if delivery in self._sent_no_ack:
                delivery.queue.acknowledge(delivery)
            elif delivery is not None:
                delivery.queue.requeue(delivery, _CHANNEL_ENDED)
                queues[delivery.queue] = None
        for queue in queues:
            queue.pump()

    def lose(self) -> None:
        """End the session, and tell the other node, because the virtual host ends here."""
        self.end()
        self._writer.add(LOST)
        self._channel.send(FROM_HOME, self._writer.take(self._head))

    # --- what consumers call --------------------------------------------------------------------------

    def can_deliver(self) -> bool:
        """False while the other node cannot take more."""
        if not self._takes:
            self._takes = self._channel.is_writable
        return self._takes and not self.is_over

    def deliver(self, consumer: RemoteConsumer, delivery: Delivery) -> None:
        """Send `delivery`, which will be settled."""
        message = delivery.message
        if delivery.attempts:
            message = delivery.queue.outgoing(delivery)
        self._unsettled.append(delivery)
        self._writer.deliver(message, consumer.id, delivery.attempts, 0)
        self._send_soon()

    def deliver_message(self, consumer: RemoteConsumer, message: Message, attempts: int) -> None:
        """Send `message`, which will not be settled."""
        self._writer.deliver(message, consumer.id, attempts, NO_ACK)
        self._send_soon()

    def cancelled(self, consumer: RemoteConsumer) -> None:
        """The queue has cancelled `consumer`."""
        if self._consumers.pop(consumer.id, None) is not None:
            self._writer.add(CANCELLED, consumer.id)
            self._flush_later()

    def flush(self) -> None:
        """Send what was collected, if the channel takes it."""
        self._takes = self._channel.is_writable
        if self.is_over or not self._takes:
            return
        writer = self._writer
        if self._answering:
            answering, self._answering = self._answering, {}
            for addressed in answering:
                for is_refused, count in addressed.answers.take():
                    writer.add(REFUSE if is_refused else CONFIRM, addressed.number, count)
        if not writer.is_empty():
            self._channel.send(FROM_HOME, writer.take(self._head))
            self._takes = self._channel.is_writable

    # --- payloads ---------------------------------------------------------------------------------------

    def _handle(self, reader: PayloadReader, is_final: bool) -> bool:
        """Handle `reader` to its end; False if it has to wait for metadata, unless it `is_final`."""
        self._takes = self._channel.is_writable
        kind = reader.next()
        while kind:
            if kind == _PUBLISH:
                self._publish(reader)
            elif kind == _SETTLE:
                self._settle(reader)
            elif kind == NAME:
                if not self._name(reader, is_final=is_final):
                    reader.rewind()
                    self._end_payload()
                    return False
            else:
                handler = _HANDLERS.get(kind)
                if handler is not None:
                    handler(self, reader)
                elif kind in TO_LEADER:
                    addressed = self._addressed(reader)
                    addressed.serve(self._serving).handle(kind, reader)
                    self._settling[addressed] = None
                else:
                    raise MalformedPayload(f"an item of kind {kind}")
            kind = reader.next()
        self._end_payload()
        return True

    def _end_payload(self) -> None:
        """Deliver what a payload has returned or made room for."""
        if self._settling:
            settling, self._settling = self._settling, {}
            for addressed in settling:
                if addressed.served is not None:
                    addressed.served.end_payload()
        if self._pumping:
            pumping = list(self._pumping)
            self._pumping.clear()
            for queue in pumping:
                queue.pump()
        if self._waking:
            waking = list(self._waking)
            self._waking.clear()
            for consumer in waking:
                consumer.queue.consumer_ready(consumer)

    def _publish(self, reader: PayloadReader) -> None:
        flags = reader.number(1)
        vhost = self.vhost
        message = reader.published(flags, vhost.turn.now(), vhost.has_store)
        if not flags & _SAME_QUEUES:
            reader.targets = [self._addressed(reader) for _ in range(reader.number(2))]
        targets = reader.targets
        if not targets:
            raise MalformedPayload("a message for no queue")
        for target in targets:
            addressed: AddressedQueue = target  # type: ignore[assignment]
            queue = addressed.queue
            if queue is None or queue.is_deleted:
                self._publish_absent(addressed, message, flags)
            elif flags & _WANTS_CONFIRM:
                answers = addressed.answers
                sequence = answers.next()
                if queue.publish(message, answers, sequence) & _REFUSED:
                    answers.refuse(sequence)
            else:
                queue.publish(message, None, 0)

    def _publish_absent(self, addressed: AddressedQueue, message: Message, flags: int) -> None:
        """Publish to a queue that was not here; it is refused if that is so still, unless it was deleted."""
        if addressed.served is not None:
            addressed.served.publish(message)
            return
        if addressed.queue is None and not addressed.is_gone:
            addressed.find(self.vhost, self._metadata)
        queue, answers = addressed.queue, addressed.answers
        sequence = answers.next() if flags & _WANTS_CONFIRM else 0
        if queue is not None and not queue.is_deleted:
            if queue.publish(message, answers if sequence else None, sequence) & _REFUSED and sequence:
                answers.refuse(sequence)
        elif sequence and queue is None and not addressed.is_gone:
            answers.refuse(sequence)

    def _settle(self, reader: PayloadReader) -> None:
        how = reader.number(1)
        first = reader.number(8)
        count = reader.number(4)
        unsettled = self._unsettled
        left = unsettled.count
        # If it is below the front, this is no place, and it is not used.
        place = first - self._first
        if how > _RETURNED or first < self._first or not count or place >= left or count > left - place:
            raise MalformedPayload(f"{count} deliveries from {first} on are settled")
        for at in range(place, place + count):
            delivery: Delivery = unsettled.take(at)  # type: ignore[assignment]
            if delivery is None:
                raise MalformedPayload(f"delivery {self._first + at} is settled again")
            self._settle_one(delivery, how)
        while unsettled.count and unsettled.get(0) is None:
            unsettled.popleft()
            self._first += 1

    def _settle_one(self, delivery: Delivery, how: int) -> None:
        consumer: RemoteConsumer = delivery.consumer  # type: ignore[assignment]
        queue = delivery.queue
        if self._sent_no_ack:
            self._sent_no_ack.pop(delivery, None)
        if how == _ACKNOWLEDGE:
            queue.acknowledge(delivery)
        elif how == _REJECT:
            queue.reject(delivery)
        else:
            if how == _RETURNED:
                _give_back(delivery)
            else:
                queue.requeue(delivery, how)
            self._pumping[queue] = None
        if consumer is not None:
            consumer.unsettled -= 1
            if consumer.is_parked:
                self._waking[consumer] = None

    def _name(self, reader: PayloadReader, *, is_final: bool) -> bool:
        """Note which queue a number is; False if the metadata may say so later, unless this `is_final`."""
        number = reader.number(8)
        addressed = AddressedQueue(number, reader.text(), reader.index, self._answer_later)
        if number in self._queues or len(self._queues) >= REMOTE_NAMED_MAX:
            raise MalformedPayload(f"queue {number} is named again, or too many are")
        if not addressed.find(self.vhost, self._metadata) and not is_final:
            return False
        self._queues[number] = addressed
        return True

    def _addressed(self, reader: PayloadReader) -> AddressedQueue:
        """The queue whose number is next."""
        number = reader.number(8)
        addressed = self._queues.get(number)
        if addressed is None:
            raise MalformedPayload(f"queue {number} was not named")
        return addressed

    # --- private --------------------------------------------------------------------------------------

    def _send_soon(self) -> None:
        if not self._is_flush_due:
            self._flush_later()
        if self._writer.is_full():
            self.flush()

    def _flush_later(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._later(self._flush)

    def _flush(self, now: int) -> None:
        self._is_flush_due = False
        self.flush()

    def _answer_later(self, addressed: AddressedQueue) -> None:
        self._answering[addressed] = None
        self._flush_later()

    # --- requests -------------------------------------------------------------------------------------

    def _attach(self, reader: PayloadReader) -> None:
        id = reader.number(4)
        addressed = self._addressed(reader)
        flags, priority = reader.number(1), reader.signed()
        tag, read_options = reader.text(), _read_options(reader)
        if id in self._consumers or id in self._attaching:
            raise MalformedPayload(f"consumer {id} is attached again")

        async def attach() -> tuple[int, int, int] | None:
            queue = addressed.live(self.vhost, self._metadata)
            consumer = self._attaching[id] = RemoteConsumer(
                self,
                id,
                queue,
                tag,
                no_ack=flags & NO_ACK != 0,
                is_exclusive=flags & IS_EXCLUSIVE != 0,
                priority=priority,
            )
            try:
                await queue.admit(consumer)
            finally:
                is_wanted = self._attaching.pop(id, None) is not None
            if is_wanted:
                self._consumers[id] = consumer
                # Where it begins is decided before its client hears that it may consume.
                queue.set_read_options(consumer, read_options)
                # In front of what it gets.
                self._writer.add(ANSWER, id, 0, 0, 0)
                self._flush_later()
                queue.add_consumer(consumer)
                return None
            queue.remove_consumer(consumer)
            return 0, 0, 0

        self._run(id, attach())

    def _start(self, reader: PayloadReader) -> None:
        id, prefetch = reader.number(4), reader.number(4)
        consumer = self._consumers.get(id) or self._attaching.get(id)
        if consumer is not None:
            consumer.prefetch = prefetch
        self._grant(reader, consumer)

    def _credit(self, reader: PayloadReader) -> None:
        self._grant(reader, self._consumers.get(reader.number(4)))

    def _grant(self, reader: PayloadReader, consumer: RemoteConsumer | None) -> None:
        """Let `consumer` get so much in all."""
        messages_to, bytes_to = reader.number(8), reader.number(8)
        if consumer is not None:
            consumer.messages_to = messages_to
            consumer.bytes_to = bytes_to
            if consumer.is_parked:
                self._waking[consumer] = None

    def _detach(self, reader: PayloadReader) -> None:
        request, id = reader.number(4), reader.number(4)
        # What was granted before comes first.
        self._end_payload()
        self._attaching.pop(id, None)
        consumer = self._consumers.pop(id, None)
        if consumer is not None:
            queue = consumer.queue
            queue.remove_consumer(consumer)
            self._pumping[queue] = None
        if request:
            self._writer.add(ANSWER, request, 0, 0, 0)
            self._flush_later()

    def _get(self, reader: PayloadReader) -> None:
        request = reader.number(4)
        addressed = self._addressed(reader)
        no_ack = reader.number(1) & NO_ACK != 0
        self._run(request, self._fetch(request, addressed, no_ack))

    async def _fetch(
        self, request: int, addressed: AddressedQueue, no_ack: bool
    ) -> tuple[int, int, int] | None:
        if addressed.served is not None:
            return await addressed.served.fetch(request)
        queue = addressed.live(self.vhost, self._metadata)
        fetched = await queue.fetch(False)
        if fetched is None:
            return 0, 0, 0
        delivery, left = fetched
        if self.is_over:
            _give_back(delivery)
            queue.pump()
            return None
        self._unsettled.append(delivery)
        if no_ack:
            self._sent_no_ack[delivery] = None
        message = queue.outgoing(delivery) if delivery.attempts else delivery.message
        self._writer.got(message, request, delivery.attempts, left)
        return None

    def _ask(self, reader: PayloadReader) -> None:
        request = reader.number(4)
        addressed = self._addressed(reader)
        told = self._told(addressed, reader.number(1))
        self._run(request, told if addressed.served is None else addressed.served.led(told))

    async def _told(self, addressed: AddressedQueue, what: int) -> tuple[int, int, int]:
        queue = addressed.live(self.vhost, self._metadata)
        if what == INSPECT:
            if await self.vhost.removals.wait(queue.name):
                queue = addressed.live(self.vhost, self._metadata)
            counts = await queue.inspect()
            return counts.message_count, counts.consumer_count, counts.delayed_count
        if what == PURGE:
            return await queue.purge(), 0, 0
        if what == COMMIT:
            await self.vhost.written()
            await queue.committed()
        return 0, 0, 0

    def _touch(self, reader: PayloadReader) -> None:
        queue = self._addressed(reader).queue
        if queue is not None and not queue.is_deleted:
            queue.touch()

    def _reply(self, reader: PayloadReader) -> None:
        """Deliver a direct reply, or drop it if its requester is gone."""
        message = reader.published(reader.number(1), self.vhost.turn.now(), False)
        if not message.address.startswith(REPLY_ADDRESS_PREFIX):
            raise MalformedPayload("a direct reply to nobody")
        requester = self._requester(message.address, message)
        if requester is not None:
            requester.publish(message, None, 0)

    def _ask_reply(self, reader: PayloadReader) -> None:
        request, name = reader.number(4), reader.text()
        requester = self._requester(encode_address("", name), _NO_MESSAGE)
        self._writer.add(ANSWER, request, 0 if requester is None else 1, 0, 0)
        self._flush_later()

    def _requester(self, address: bytes, message: Message) -> ReplyQueue | None:
        """Who gets the direct replies to `address`; None if it is gone."""
        return reply_queue(self.vhost.router.find(address, message).sole)

    def _forget(self, reader: PayloadReader) -> None:
        addressed = self._addressed(reader)
        del self._queues[addressed.number]
        if addressed.served is not None:
            addressed.served.end()

    def _run(self, request: int, coroutine: Coroutine[Pending, None, tuple[int, int, int] | None]) -> None:
        """Answer `request` with what `coroutine` returns, or with its error."""
        drive(self._answered(request, coroutine))

    async def _answered(
        self, request: int, coroutine: Coroutine[Pending, None, tuple[int, int, int] | None]
    ) -> None:
        try:
            answer = await coroutine
        except AmqpError as error:
            self._writer.fail(request, code_of(error), error.message)
        else:
            if answer is not None:
                self._writer.add(ANSWER, request, *answer)
        self._flush_later()


def _read_options(reader: PayloadReader) -> StreamReadOptions:
    """Where the consumer begins whose arguments are next, and what it selects."""
    arguments = reader.table()
    try:
        return StreamReadOptions(arguments)
    except ValueError as error:
        raise MalformedPayload(str(error)) from None


def _give_back(delivery: Delivery) -> None:
    """Return `delivery`, which no client has seen, to its place."""
    stream, taking = stream_queue(delivery.queue), taking_queue(delivery.queue)
    if stream is not None:
        stream.read_again(delivery)
    elif taking is not None:
        delivery.consumer = None
        taking.give_back(delivery)


_HANDLERS: dict[int, Callable[[RemoteChannel, PayloadReader], None]] = {
    ATTACH: RemoteChannel._attach,
    START: RemoteChannel._start,
    CREDIT: RemoteChannel._credit,
    DETACH: RemoteChannel._detach,
    GET: RemoteChannel._get,
    ASK: RemoteChannel._ask,
    TOUCH: RemoteChannel._touch,
    FORGET: RemoteChannel._forget,
    REPLY: RemoteChannel._reply,
    ASK_REPLY: RemoteChannel._ask_reply,
}
