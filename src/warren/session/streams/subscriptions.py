"""The consuming side of a stream connection: subscriptions by the client's number.

Each credit sends one whole chunk: a client that asked for an offset within it, or for filter values, skips
the rest. Chunks without any of the filter values are not sent, and use no credit.
"""

from collections.abc import Callable, Iterator, Mapping

from warren.framing.outbox import Outbox
from warren.limits import STREAM_ANSWER_MS, STREAM_CHUNK_WORK, STREAM_CREDIT_MAX, STREAM_WORK_PER_TURN_MAX
from warren.queues.stream import StreamQueue
from warren.session.streams.single_active_groups import GroupKey, GroupMember
from warren.session.streams.stream_server import StreamServer
from warren.store.streams.bloom_filter import FilterMatcher
from warren.store.streams.chunk import Chunk
from warren.wire.streams.codes import OffsetType, ResponseCode
from warren.wire.streams.commands import ConsumerUpdate, Subscribe
from warren.wire.streams.delivery import DeliverFrame, deliver_head
from warren.wire.streams.fields import Offset

_FILTER = "filter."
_MATCH_UNFILTERED = "match-unfiltered"
# The number of filter values compared with a chunk per unit of work.
_WANTED_PER_WORK = 16


class StreamSubscriptions:
    """The subscriptions of one connection."""

    __slots__ = (
        "_correlation", "_outbox", "_pending_updates", "_serial", "_stream_server", "_subscriptions",
        "has_asked", "sends_committed_chunk",
    )  # fmt: skip

    def __init__(
        self, stream_server: StreamServer, outbox: Outbox, serial: int, has_asked: Callable[[], None]
    ) -> None:
        """`has_asked` is called when a request was sent to the client: see `note_questions`."""
        self._stream_server = stream_server
        self.has_asked = has_asked
        # The serial number of the connection.
        self._serial = serial
        self._outbox = outbox
        self._subscriptions: dict[int, StreamSubscription] = {}
        # Correlation number -> subscription whose client was asked where to begin, or whether it has stopped;
        # a subscription has one request at a time.
        self._pending_updates: dict[int, StreamSubscription] = {}
        self._correlation = 0
        # True if the client supports version 2 of Deliver.
        self.sends_committed_chunk = False

    def __iter__(self) -> "Iterator[StreamSubscription]":
        return iter(list(self._subscriptions.values()))

    @property
    def pending_update_count(self) -> int:
        """The number of unanswered requests to the client."""
        return len(self._pending_updates)

    @property
    def answer_due(self) -> int | None:
        """The deadline of the oldest request to the client (ms)."""
        asked = [one.asked_at for one in self._pending_updates.values() if one.asked_at >= 0]
        return min(asked) + STREAM_ANSWER_MS if asked else None

    def note_questions(self, now: int, *, is_excused: bool = False) -> None:
        """Start the timeouts of new requests at `now`; of all requests if `is_excused`."""
        for subscription in self._pending_updates.values():
            if is_excused or subscription.asked_at < 0:
                subscription.asked_at = now

    def has(self, number: int) -> bool:
        """True if a subscription has `number`."""
        return number in self._subscriptions

    def of(self, number: int) -> "StreamSubscription":
        """The subscription with `number`."""
        return self._subscriptions[number]

    def subscribe(self, command: Subscribe, stream: StreamQueue) -> None:
        """Create the subscription of `command`, whose number is free; `begin` starts its deliveries."""
        subscription = StreamSubscription(command, stream, self._stream_server, self._outbox)
        subscription.sends_committed_chunk = self.sends_committed_chunk
        self._subscriptions[command.subscription] = subscription
        stream.count_reader(1)

    def begin(self, subscription: "StreamSubscription", key: GroupKey | None, partition: int) -> None:
        """Start deliveries, immediately or when it becomes the active one of the group `key`."""
        if key is None:
            subscription.start(subscription.offset)
        else:
            subscription.send_update = self._send_update
            subscription.key = key
            self._stream_server.groups.join(key, subscription, partition)

    def unsubscribe(self, number: int) -> None:
        """Remove the subscription `number`, if any; another of its group becomes active."""
        subscription = self._subscriptions.pop(number, None)
        if subscription is not None:
            self._leave(subscription)

    def credit(self, number: int, credit: int) -> ResponseCode:
        """Add `credit` chunks to the credit of subscription `number`."""
        subscription = self._subscriptions.get(number)
        if subscription is None:
            return ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST
        subscription.credit = min(subscription.credit + credit, STREAM_CREDIT_MAX)
        if not subscription.is_active:
            return ResponseCode.PRECONDITION_FAILED
        subscription.resume()
        return ResponseCode.OK

    def updated(self, correlation: int, offset: Offset) -> None:
        """Process the client's answer to request `correlation`: where to begin, or that it has stopped."""
        subscription = self._pending_updates.pop(correlation, None)
        if subscription is None:
            return
        assert subscription.key is not None
        subscription.update_id = 0
        subscription.asked_at = -1
        if subscription.is_to_be_active:
            subscription.start(subscription.offset if offset.type is OffsetType.NONE else offset)
        else:
            self._stream_server.groups.deactivated(subscription.key, subscription)

    def forget(self, is_over: Callable[[StreamQueue], bool]) -> set[str]:
        """Remove the subscriptions of streams for which `is_over` is true; return the streams' names."""
        gone = [one for one in self._subscriptions.values() if is_over(one.stream)]
        for subscription in gone:
            self.unsubscribe(subscription.number)
        return {subscription.stream.name for subscription in gone}

    def close(self) -> None:
        """Remove all subscriptions, because the connection has ended."""
        for number in list(self._subscriptions):
            self.unsubscribe(number)

    def _leave(self, subscription: "StreamSubscription") -> None:
        subscription.stop()
        self._pending_updates.pop(subscription.update_id, None)
        subscription.stream.count_reader(-1)
        if subscription.key is not None:
            self._stream_server.groups.leave(subscription.key, subscription)
        self._stream_server.server.event_publisher.unsubscribed(
            self._serial, subscription.stream, subscription.number
        )

    def _send_update(self, subscription: "StreamSubscription", *, is_active: bool) -> None:
        """Send a new request: an answer to the previous one is ignored, but its timeout still runs."""
        if subscription.stream.is_deleted:
            return
        self._pending_updates.pop(subscription.update_id, None)
        self._correlation += 1
        subscription.update_id = self._correlation
        self._pending_updates[self._correlation] = subscription
        self._outbox.raw(ConsumerUpdate(subscription.number, int(is_active)).encode(self._correlation))
        if subscription.asked_at < 0:
            self.has_asked()


class StreamSubscription(GroupMember):
    """One subscription: its position, and its credit."""

    __slots__ = (
        "_begin", "_is_waiting_for_turn", "_outbox", "_stream_server", "_wanted", "_work", "asked_at",
        "credit", "delivered_count", "is_active", "is_to_be_active", "key", "next", "number", "offset",
        "properties", "send_update", "sends_committed_chunk", "stream", "update_id",
    )  # fmt: skip

    def __init__(
        self, command: Subscribe, stream: StreamQueue, stream_server: StreamServer, outbox: Outbox
    ) -> None:
        self.number = command.subscription
        self.stream = stream
        # The requested start.
        self.offset = command.offset
        # The properties that the client has set, including its name.
        self.properties = command.properties
        self.credit = command.credit
        # Whether it receives messages; and whether it will, once the client has said where to begin.
        self.is_active = False
        self.is_to_be_active = True
        # The key of its group, if any; and the function that sends requests to the client.
        self.key: GroupKey | None = None
        self.send_update: Callable[..., None] = _nobody
        # The number of the unanswered request, or 0, and its time (ms), or -1.
        self.update_id = 0
        self.asked_at = -1
        # True if Deliver includes the offset of the last chunk.
        self.sends_committed_chunk = False
        self._stream_server = stream_server
        self._outbox = outbox
        # The number of delivered messages.
        self.delivered_count = 0
        # The next offset, and the first offset of its chunk if known (else -1).
        self.next = 0
        self._begin = -1
        # The wanted filter values, if any; the remaining work of this turn for finding them, and whether
        # another turn must continue.
        self._wanted = wanted_values(command.properties)
        self._work = 0
        self._is_waiting_for_turn = False

    def start(self, offset: Offset) -> None:
        """Deliver from `offset` on."""
        self.next = first_offset(self.stream, offset)
        self._begin = -1
        if not self.is_active:
            self.is_active = True
            self.stream.watch(self.resume)
        self.resume()

    def stop(self) -> None:
        """Stop deliveries."""
        if self.is_active:
            self.is_active = False
            self.stream.unwatch(self.resume)

    def activate(self) -> None:
        """Ask the client where to begin, because it becomes the active one of its group."""
        self.is_to_be_active = True
        self.send_update(self, is_active=True)

    def deactivate(self) -> None:
        """Ask the client to say when it has stopped, because another one is to be active."""
        self.is_to_be_active = False
        self.stop()
        self.send_update(self, is_active=False)

    def resume(self) -> None:
        """Send chunks while there is credit and there are chunks."""
        outbox, log = self._outbox, self.stream.log
        self._work = STREAM_WORK_PER_TURN_MAX
        while self._may_send:
            if outbox.is_full():
                outbox.wait_for_room(self)
                return
            chunk = (
                log.read(self.next, self._begin) if self._wanted is None else self._find_wanted(self._wanted)
            )
            if chunk is None:
                return
            data = self._stream_server.entries(chunk)
            delivered = DeliverFrame(
                subscription=self.number, first=chunk.first, time=chunk.time, epoch=log.number, messages=(),
                committed=log.last_chunk() if self.sends_committed_chunk else None,
            )  # fmt: skip
            outbox.raw(deliver_head(delivered, chunk.count, data) + data)
            self.credit -= 1
            self.delivered_count += chunk.count
            self._stream_server.counts.delivered += chunk.count
            self.stream.count_delivered(chunk.count)
            self.next = chunk.end
            self._begin = -1

    @property
    def _may_send(self) -> bool:
        stream = self.stream
        is_at_rest = self._is_waiting_for_turn or stream.is_deleted or stream.is_paused
        return bool(self.is_active and self.credit and not is_at_rest)

    def _find_wanted(self, wanted: FilterMatcher) -> Chunk | None:
        """The next chunk that may have `wanted` values; None if there is none, or none found in this turn."""
        log = self.stream.log
        while self._work > 0:
            self._work -= 1 + wanted.count // _WANTED_PER_WORK
            end = log.end_of_nonmatching(self.next, wanted)
            if end is None:
                chunk = log.read(self.next, self._begin)
                if chunk is None or log.may_contain(chunk, wanted):
                    return chunk
                self._work -= STREAM_CHUNK_WORK + len(chunk.shapes)
                end = chunk.end
            self.next = end
            self._begin = -1
        self._is_waiting_for_turn = True
        self.stream.defer(self._next_turn)
        return None

    def _next_turn(self) -> None:
        """Continue in another turn."""
        self._is_waiting_for_turn = False
        self.resume()


def wanted_values(properties: Mapping[str, str]) -> FilterMatcher | None:
    """The filter that `properties` ask for; None without one."""
    values = filter_values(properties)
    if not values:
        return None
    return FilterMatcher(values, has_unfiltered=properties.get(_MATCH_UNFILTERED) == "true")


def filter_values(properties: Mapping[str, str]) -> list[str]:
    """The filter values in `properties`, with any suffix after the dot of the key."""
    return [value for name, value in properties.items() if name.startswith(_FILTER)]


def first_offset(stream: StreamQueue, offset: Offset) -> int:
    """Resolve `offset` to a number now."""
    log = stream.log
    match offset.type:
        case OffsetType.FIRST | OffsetType.NONE:
            return log.first
        case OffsetType.LAST:
            chunk = log.read(log.committed - 1) if log.committed else None
            return log.committed if chunk is None else chunk.first
        case OffsetType.NEXT:
            return log.committed
        case OffsetType.OFFSET:
            return min(offset.value, log.committed)
        case OffsetType.TIMESTAMP:
            return log.offset_at(max(offset.value, 0))


def _nobody(subscription: StreamSubscription, *, is_active: bool) -> None:
    """Placeholder before it is a member of a group."""
