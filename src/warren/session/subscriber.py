"""The consuming side of a channel: consumers, delivery tags, prefetch, settling."""

from collections.abc import Collection, Iterable, Mapping

from warren.errors import NotAllowed
from warren.framing.outbox import Outbox
from warren.limits import FRAME_OVERHEAD
from warren.metadata.records import NO_ARGUMENTS
from warren.model.counters import Counters
from warren.model.message import Message
from warren.queues.queue import (
    CHANNEL_ENDED,
    NACKED,
    TIMED_OUT,
    UNLIMITED,
    Consumer,
    Delivery,
    Queue,
    QueueHost,
)
from warren.queues.stream_read_options import READ_ARGUMENTS
from warren.queues.vhost_queue import VhostQueue
from warren.session.channel_origin import ChannelOrigin
from warren.session.events.event_publisher import printed
from warren.session.late_acknowledgements import LateAcknowledgements
from warren.session.unacked import Unacked
from warren.vhost.vhost import VirtualHost
from warren.wire.methods import BasicCancel
from warren.wire.table import Value

# How a delivery is settled, if it does not return to its queue; else it is why it returns, from `NACKED` on.
ACKNOWLEDGE = 0
REJECT = 1
# Argument of basic.consume: the consumer timeout (ms) of that consumer, as in RabbitMQ 4.3.
CONSUMER_TIMEOUT_ARGUMENT = "x-consumer-timeout"

_ACKNOWLEDGE = ACKNOWLEDGE
_REJECT = REJECT
_CHANNEL_ENDED = CHANNEL_ENDED
_UNLIMITED = UNLIMITED
_HEAD_SIZE = FRAME_OVERHEAD - 1
_DELIVER_IDS = b"\x00\x3c\x00\x3c"
_GET_OK_IDS = b"\x00\x3c\x00\x47"


class Subscriber(Counters):
    """The consumers and unacknowledged deliveries of one channel."""

    __slots__ = (
        "_consumers", "_got_count", "_held_cancels", "_host", "_late", "channel_number", "is_flowing",
        "origin", "outbox", "prefetch", "prefetch_max", "sends_cancel", "unacked",
    )  # fmt: skip

    def __init__(self, host: QueueHost, outbox: Outbox, channel_number: int, *, sends_cancel: bool) -> None:
        super().__init__()
        self.outbox = outbox
        self.channel_number = channel_number
        self.unacked = Unacked()
        # basic.qos with global set: the limit of unacknowledged deliveries of the channel; 0 is no limit.
        self.prefetch_max = 0
        # False after channel.flow with active=false, and while the channel closes.
        self.is_flowing = True
        self._host = host
        self.sends_cancel = sends_cancel
        # basic.qos without global: the prefetch of each new consumer; 0 is no limit.
        self.prefetch = 0
        # Consumers by tag; with a limit per channel, the least recently served comes first.
        self._consumers: dict[str, ChannelSubscription] = {}
        # The number of unacknowledged deliveries of basic.get, which no limit counts.
        self._got_count = 0
        # The tags of cancelled consumers whose basic.cancel is delayed; None while it is sent at once.
        self._held_cancels: list[str] | None = None
        # What consumers held that have timed out; None if none has.
        self._late: LateAcknowledgements | None = None
        # The origin that traces and events name.
        self.origin: ChannelOrigin | None = None

    def set_prefetch(self, count: int, *, is_global: bool) -> None:
        """Execute basic.qos (RabbitMQ: global=false is per new consumer, global=true per channel).

        global=false removes an earlier limit per channel; in the other order both limits apply.
        """
        if not is_global:
            self.prefetch = count
        self.prefetch_max = count if is_global else 0
        self.resume()

    def consume(self, queue: VhostQueue, consumer: "ChannelSubscription") -> None:
        """Let `consumer`, which `queue` has accepted, get messages."""
        self._host.holders[self] = None
        self._consumers[consumer.tag] = consumer
        if self.origin is not None and self.origin.is_heard():
            more = {
                "arguments": printed(consumer.arguments),
                "prefetch_count": consumer.prefetch,
                "ack_required": not consumer.no_ack,
                "exclusive": consumer.is_exclusive,
            }
            self.origin.publish_consumer_event(
                "consumer.created", queue.vhost_name, queue.name, consumer.tag, more=more
            )
        queue.add_consumer(consumer)

    def check_tag(self, tag: str) -> None:
        """NotAllowed when `tag` is in use (0-9-1 basic.consume.consumer-tag)."""
        if tag in self._consumers:
            raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")

    def find(self, tag: str) -> "ChannelSubscription | None":
        """The consumer with `tag`, if there is one."""
        return self._consumers.get(tag)

    def cancel(self, tag: str) -> None:
        """Cancel a consumer; its deliveries remain unacknowledged. An unknown tag is no error."""
        consumer = self._consumers.pop(tag, None)
        if consumer is not None:
            self._publish_consumer_deleted(consumer)
            consumer.queue.remove_consumer(consumer)
            consumer.queue.pump()

    def cancel_by_server(self, consumer: "ChannelSubscription") -> None:
        """Cancel `consumer` and notify the client; its deliveries remain unacknowledged."""
        consumer.queue.remove_consumer(consumer)
        self.forget(consumer)
        consumer.queue.pump()

    def forget(self, consumer: "ChannelSubscription") -> None:
        """Remove `consumer`, ended by its queue; notify the client if it has consumer_cancel_notify."""
        if self._consumers.pop(consumer.tag, None) is None:
            return
        self._publish_consumer_deleted(consumer)
        if not self.sends_cancel:
            return
        if self._held_cancels is None:
            self.outbox.method(self.channel_number, BasicCancel(consumer.tag, True))
        else:
            self._held_cancels.append(consumer.tag)

    def hold_cancels(self) -> None:
        """Delay basic.cancel until after the pending answer (RabbitMQ's order)."""
        self._held_cancels = []

    def send_cancels(self) -> None:
        """Send the delayed basic.cancel methods, after the answer."""
        held = self._held_cancels or []
        self._held_cancels = None
        for tag in held:
            self.outbox.method(self.channel_number, BasicCancel(tag, True))

    def count_got_empty(self) -> None:
        """Count a basic.get of a queue without a ready message."""
        self.got_empty += 1
        self._host.got_empty += 1

    def send_fetched(self, queue: VhostQueue, delivery: Delivery, no_ack: bool, left: int) -> None:
        """Send `delivery`, fetched from `queue`, which has `left` more messages (basic.get-ok)."""
        delivery.delivered_at = self._host.turn.now()
        if delivery.attempts:
            self._count_redelivered()
        if no_ack:
            tag = self.unacked.next_tag()
            self.got_no_ack += 1
            self._host.got_no_ack += 1
        else:
            tag = self.unacked.add(delivery)
            self._host.holders[self] = None
            self._got_count += 1
            self.got += 1
            self._host.got += 1
        message = queue.outgoing(delivery)
        after = left.to_bytes(4, "big")
        size = len(_GET_OK_IDS) + 9 + len(message.address) + len(after)
        head = b"\x01" + self.channel_number.to_bytes(2, "big") + size.to_bytes(4, "big") + _GET_OK_IDS
        before = head + tag.to_bytes(8, "big") + (b"\x01" if delivery.attempts else b"\x00")
        self.outbox.content(self.channel_number, before, message, after)
        if self._host.is_traced:
            self._trace(queue, message, delivery.attempts > 0)

    def settle(self, tag: int, multiple: bool, how: int) -> None:
        """Settle one delivery, or all up to it. PreconditionFailed for an unknown tag."""
        if self._late is not None and how == _ACKNOWLEDGE:
            self._count_acknowledged(self._late.acknowledge(tag, multiple))
        if multiple:
            self.settle_all(self.unacked.take_to(tag), how)
        else:
            self._settle_one(self.unacked.take(tag), how)

    def settle_all(self, deliveries: list[Delivery], how: int) -> None:
        """Settle `deliveries`, which are unacked no longer, in order."""
        self._host.work += len(deliveries)
        if how == _ACKNOWLEDGE:
            self._count_acknowledged(len(deliveries))
        was_limited = self._is_limited(len(deliveries))
        waiting: dict[ChannelSubscription, None] = {}
        queues: dict[Queue, None] = {}
        for delivery in deliveries:
            consumer: ChannelSubscription = delivery.consumer  # type: ignore[assignment]
            self._finish(delivery, how)
            if how > _REJECT:
                queues[delivery.queue] = None
            if consumer is None:
                self._got_count -= 1
                continue
            consumer.unsettled -= 1
            if consumer.is_parked:
                waiting[consumer] = None
        for queue in queues:
            queue.pump()
        if was_limited:
            self.resume()
            return
        for consumer in waiting:
            consumer.queue.consumer_ready(consumer)

    def recover(self) -> None:
        """Requeue all unacknowledged deliveries (basic.recover)."""
        self.settle_all(self.unacked.take_to(0), NACKED)

    def revoke(self, tags: Iterable[int]) -> int:
        """Requeue the unacknowledged deliveries among `tags` for an operator; return their number."""
        deliveries = self.unacked.revoke(tags)
        self.settle_all(deliveries, NACKED)
        return len(deliveries)

    def resume(self) -> None:
        """Resume the consumers of the channel, after a limit on all of them has ended.

        All are marked ready before any queue delivers; otherwise one could use up the capacity of the others.
        """
        queues: dict[VhostQueue, None] = {}
        for consumer in self._consumers.values():
            if consumer.is_parked:
                consumer.queue.unpark(consumer)
                queues[consumer.queue] = None
        for queue in queues:
            queue.pump()

    def time_out(
        self, now: int, timeout_ms: int | None, settled: Collection[int] = ()
    ) -> list["ChannelSubscription"]:
        """Cancel and return the consumers that hold a delivery longer than queue or `timeout_ms` allows.

        Their deliveries are requeued, and the client is notified; it may still acknowledge them, see
        `LateAcknowledgements`. Deliveries of basic.get have no consumer, see `fetch_timed_out`. None is no
        timeout. Tags in `settled` wait for tx.commit: the client does not hold them any more.
        """
        guilty: dict[ChannelSubscription, None] = {}
        held = self.unacked.tagged(settled)
        for _, delivery in held:
            consumer: ChannelSubscription = delivery.consumer  # type: ignore[assignment]
            if consumer is None:
                continue
            limit = consumer.timeout_ms(timeout_ms)
            if limit is not None and delivery.delivered_at + limit <= now:
                guilty[consumer] = None
        for consumer in guilty:
            consumer.queue.remove_consumer(consumer)
            self.forget(consumer)
        revoked = [(tag, delivery) for tag, delivery in held if delivery.consumer in guilty]
        if revoked and self._late is None:
            self._late = LateAcknowledgements()
        for tag, delivery in revoked:
            self._late.expect(tag, delivery)  # type: ignore[union-attr]
        self.settle_all(self.unacked.revoke([tag for tag, _ in revoked]), TIMED_OUT)
        for consumer in guilty:
            consumer.queue.pump()
        return list(guilty)

    def fetch_timed_out(self, now: int, timeout_ms: int | None, settled: Collection[int] = ()) -> int | None:
        """The timeout (ms) that a delivery of basic.get has exceeded: of its queue, or else `timeout_ms`."""
        if not self._got_count:
            return None
        for _, delivery in self.unacked.tagged(settled):
            if delivery.consumer is None:
                queue: VhostQueue = delivery.queue  # type: ignore[assignment]
                limit = _timeout_ms(queue, timeout_ms)
                if limit is not None and delivery.delivered_at + limit <= now:
                    return limit
        return None

    def stop(self) -> None:
        """Deliver nothing more, and tell the client of no cancelled consumer: its connection ends."""
        self.is_flowing = False
        self.sends_cancel = False

    def leave(self, queues: dict[VhostQueue, None]) -> None:
        """Remove all consumers and requeue all unacknowledged deliveries, because the channel ends.

        The affected `queues` are added, for the caller to pump: only when the deliveries of all channels that
        end together are requeued are they delivered in order.
        """
        self.is_flowing = False
        self._host.holders.pop(self, None)
        consumers = self._consumers
        self._consumers = {}
        for consumer in consumers.values():
            self._publish_consumer_deleted(consumer)
            consumer.queue.remove_consumer(consumer)
            queues[consumer.queue] = None
        deliveries = self.unacked.take_to(0)
        self._host.work += len(deliveries)
        latest: Queue | None = None
        for delivery in deliveries:
            queue: Queue = delivery.queue
            queue.requeue(delivery, _CHANNEL_ENDED)
            if queue is not latest:
                # A queue may have a million of them.
                queues[queue] = None  # type: ignore[index]
                latest = queue
        self._got_count = 0

    def held(self) -> list[Delivery]:
        """The deliveries that are not settled."""
        return [delivery for _, delivery in self.unacked.tagged()]

    def note_oldest(self, found: dict[Queue, int]) -> None:
        """Note in `found` when the oldest unsettled delivery of each queue was made, if that is earlier.

        What basic.get fetched, and what cancelled consumers hold, has no order of its own, and is looked for
        among all deliveries of the channel.
        """
        others = self.unacked.count
        for consumer in self._consumers.values():
            if consumer.unsettled:
                others -= consumer.unsettled
                _note(found, consumer.oldest())
        if not others:
            return
        for _, delivery in self.unacked.tagged():
            owner: ChannelSubscription = delivery.consumer  # type: ignore[assignment]
            if owner is None or self._consumers.get(owner.tag) is not owner:
                _note(found, delivery)
                others -= 1
                if not others:
                    return

    @property
    def consumers(self) -> "Collection[ChannelSubscription]":
        """The consumers of the channel."""
        return self._consumers.values()

    def _settle_one(self, delivery: Delivery, how: int) -> None:
        """Settle one delivery; this takes 155 ns for an acknowledgement, `settle_all` 280."""
        was_limited = self._is_limited(1)
        if how == _ACKNOWLEDGE:
            self._count_acknowledged(1)
        consumer: ChannelSubscription = delivery.consumer  # type: ignore[assignment]
        self._finish(delivery, how)
        if consumer is None:
            self._got_count -= 1
        else:
            consumer.unsettled -= 1
        if how > _REJECT:
            delivery.queue.pump()
        if was_limited:
            self.resume()
        elif consumer is not None and consumer.is_parked:
            consumer.queue.consumer_ready(consumer)

    def _count_acknowledged(self, count: int) -> None:
        self.acknowledged += count
        self._host.acknowledged += count

    def _count_redelivered(self) -> None:
        self.redelivered += 1
        self._host.redelivered += 1

    def _finish(self, delivery: Delivery, how: int) -> None:
        queue: Queue = delivery.queue
        if how == _ACKNOWLEDGE:
            queue.acknowledge(delivery)
        elif how == _REJECT:
            queue.reject(delivery)
        else:
            queue.requeue(delivery, how)

    def _is_limited(self, settled: int) -> bool:
        """True if the channel's limit held its consumers back before `settled` deliveries were settled."""
        return self.prefetch_max > 0 and self.unacked.count - self._got_count + settled >= self.prefetch_max

    def _has_room(self) -> bool:
        """True if the channel's limit, if any, permits one more delivery."""
        return not self.prefetch_max or self.unacked.count - self._got_count < self.prefetch_max

    def publish_channel_closed(self) -> None:
        """Publish the event that the channel is closed."""
        if self.origin is not None:
            self.origin.channel_closed()

    def _publish_consumer_deleted(self, consumer: "ChannelSubscription") -> None:
        if self.origin is not None and consumer.queue is not None:
            queue = consumer.queue
            self.origin.publish_consumer_event("consumer.deleted", queue.vhost_name, queue.name, consumer.tag)

    def _trace(self, queue: VhostQueue | None, message: Message, is_redelivered: bool) -> None:
        """Trace the delivery of `message`; a direct reply has no queue and is not traced."""
        vhost: VirtualHost = self._host  # type: ignore[assignment]
        tracer = vhost.tracer
        if tracer is not None and queue is not None and self.origin is not None:
            tracer.delivered(queue.name, message, is_redelivered, self.origin)

    def _serve(self, consumer: "ChannelSubscription") -> None:
        """Move `consumer`, which is served within the channel's limit, behind the others."""
        if self._consumers.pop(consumer.tag, None) is not None:
            self._consumers[consumer.tag] = consumer


class ChannelSubscription(Consumer):
    """One consumer of a channel."""

    __slots__ = (
        "_buffer", "_oldest_tag", "_subscriber", "_tag_at", "_template", "arguments", "prefetch", "queue",
        "unsettled",
    )  # fmt: skip

    def __init__(
        self, subscriber: Subscriber, tag: str, *, no_ack: bool, is_exclusive: bool, priority: int
    ) -> None:
        super().__init__(tag, no_ack=no_ack, is_exclusive=is_exclusive, priority=priority)
        self._subscriber = subscriber
        self.queue: VhostQueue = None  # type: ignore[assignment]
        # The arguments of basic.consume.
        self.arguments: Mapping[str, Value] = NO_ARGUMENTS
        # The limit of unacknowledged deliveries (0: no limit), and their current number.
        self.prefetch = 0
        self.unsettled = 0
        # The tag from which `oldest` looks.
        self._oldest_tag = 0
        name = tag.encode("utf-8", "surrogateescape")
        number = subscriber.channel_number.to_bytes(2, "big")
        ids = b"\x01" + number + bytes(4) + _DELIVER_IDS
        # A basic.deliver frame up to the exchange; size, delivery tag and redelivered change each time.
        self._template = bytearray(ids + bytes((len(name),)) + name + bytes(9))
        # The template; compiled, a pointer to its bytes, which saves access to the object.
        self._buffer = self._template
        self._tag_at = len(self._template) - 9

    def start(self, queue: VhostQueue, prefetch: int) -> None:
        """Set the queue, and the limit of unacknowledged deliveries (0: no limit)."""
        self.queue = queue
        self.prefetch = prefetch

    def is_ready(self) -> bool:
        """True if prefetch, flow and socket permit one more delivery."""
        subscriber = self._subscriber
        if not self.no_ack and self.prefetch and self.unsettled >= self.prefetch:
            return False
        if not subscriber.is_flowing:
            return False
        # A direct reply consumer has no queue and no limit.
        if not subscriber._has_room() and self.queue is not None:
            return False
        if subscriber.outbox.is_full():
            subscriber.outbox.wait_for_room(subscriber)
            return False
        return True

    def prefetch_limit(self) -> int:
        """How many unacknowledged deliveries the client may have of it; 0 is no limit."""
        return self.prefetch

    def shared_capacity(self) -> int:
        """How many more deliveries the limit of the channel permits."""
        subscriber = self._subscriber
        most = subscriber.prefetch_max
        if not most:
            return _UNLIMITED
        return max(0, most - subscriber.unacked.count + subscriber._got_count)

    def read_arguments(self) -> Mapping[str, Value]:
        """Those of its arguments that select what it gets of a stream."""
        return {name: self.arguments[name] for name in READ_ARGUMENTS if name in self.arguments}

    def deliver(self, delivery: Delivery) -> None:
        """Send `delivery`, which the client must acknowledge."""
        subscriber = self._subscriber
        host = subscriber._host
        host.delivered += 1
        delivery.delivered_at = host.turn.now()
        subscriber.delivered += 1
        message = delivery.message
        if delivery.attempts:
            subscriber._count_redelivered()
            message = delivery.queue.outgoing(delivery)
        self.unsettled += 1
        if subscriber.prefetch_max:
            subscriber._serve(self)
        self._send(message, subscriber.unacked.add(delivery), delivery.attempts > 0)

    def deliver_message(self, message: Message, redelivered: bool) -> None:
        """Send `message` without expecting an acknowledgement."""
        subscriber = self._subscriber
        subscriber.delivered_no_ack += 1
        subscriber._host.delivered_no_ack += 1
        if redelivered:
            subscriber._count_redelivered()
        self._send(message, subscriber.unacked.next_tag(), redelivered)

    def timeout_ms(self, default_ms: int | None) -> int | None:
        """The consumer timeout (ms): its own, or that of its queue, or `default_ms`; None is no timeout."""
        own = self.arguments.get(CONSUMER_TIMEOUT_ARGUMENT)
        return _timeout_ms(self.queue, default_ms) if own is None else own

    def oldest(self) -> Delivery:
        """The oldest delivery of which it holds one at least.

        The search begins at the last one found: what was before it is settled, and a new delivery has a
        higher tag. So each delivery is passed once, however often this is asked.
        """
        unacked = self._subscriber.unacked
        self._oldest_tag = unacked.first_of(self, self._oldest_tag)
        return unacked.get(self._oldest_tag)

    def cancelled(self) -> None:
        """Remove the consumer, because its queue was deleted or has cancelled it."""
        self._subscriber.forget(self)

    def _send(self, message: Message, tag: int, redelivered: bool) -> None:
        data = self._buffer
        at = self._tag_at
        size = at + 9 - _HEAD_SIZE + len(message.address)
        data[3] = (size >> 24) & 0xFF
        data[4] = (size >> 16) & 0xFF
        data[5] = (size >> 8) & 0xFF
        data[6] = size & 0xFF
        data[at] = (tag >> 56) & 0xFF
        data[at + 1] = (tag >> 48) & 0xFF
        data[at + 2] = (tag >> 40) & 0xFF
        data[at + 3] = (tag >> 32) & 0xFF
        data[at + 4] = (tag >> 24) & 0xFF
        data[at + 5] = (tag >> 16) & 0xFF
        data[at + 6] = (tag >> 8) & 0xFF
        data[at + 7] = tag & 0xFF
        data[at + 8] = redelivered
        subscriber = self._subscriber
        # Compiled, this is bytes; interpreted, a bytearray, which joins as well.
        before: bytes = data[: at + 9]  # type: ignore[assignment]
        subscriber.outbox.content(subscriber.channel_number, before, message, b"")
        if subscriber._host.is_traced:
            subscriber._trace(self.queue, message, redelivered)


def _timeout_ms(queue: VhostQueue, default_ms: int | None) -> int | None:
    """The consumer timeout (ms) of `queue`, or else `default_ms`; None is no timeout."""
    own = queue.settings.consumer_timeout_ms
    return default_ms if own is None else own


def _note(found: dict[Queue, int], delivery: Delivery) -> None:
    """Note in `found` when `delivery` was made, if no earlier one of its queue is there."""
    at = found.get(delivery.queue)
    if at is None or delivery.delivered_at < at:
        found[delivery.queue] = delivery.delivered_at
