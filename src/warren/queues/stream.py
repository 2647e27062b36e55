"""The stream queue: a log that any number of consumers read from any offset, without removing messages.

Invariants:

- Only synced messages are delivered: `log.committed` is the end of what consumers see.
- A reader is in one of three states: parked, because its consumer cannot take messages
  (`Consumer.is_parked`); in `_waiting`, because it has read everything; or in `_ready`, to be served by the
  next `pump`.

Messages are removed by retention only, so there are no limits, no dead-lettering and no redelivery: an
acknowledgement only means that the consumer has room for more.
"""

from collections.abc import Callable, Iterator

from warren.limits import STREAM_SEGMENT_SIZE, STREAM_WORK_PER_TURN_MAX
from warren.model.arguments import QueueSettings
from warren.model.blind_copies import without_bcc
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import HAS_HEADERS, Message, new_message, presume_died
from warren.queues.local import LocalQueue
from warren.queues.offset_header import OffsetHeader
from warren.queues.queue import (
    ACCEPTED,
    CHANNEL_ENDED,
    NACKED,
    Consumer,
    Delivery,
    PeekedMessage,
    QueueHost,
    new_delivery,
)
from warren.queues.stream_read_options import StreamReadOptions
from warren.queues.stream_refusals import (
    GET,
    PURGE,
    check_acknowledging,
    check_prefetching,
    refuse_positions,
    unsupported,
)
from warren.store.streams.chunk import Chunk, ChunkShape, MessageRun
from warren.store.streams.stream_log import Retention, StreamLog
from warren.store.streams.stream_store import StreamStore

_ACCEPTED = ACCEPTED
_HAS_HEADERS = HAS_HEADERS


class StreamQueue(LocalQueue):
    """A queue of type stream."""

    __slots__ = (
        "_chunk_readers", "_deferred", "_is_paused", "_offset_header", "_readers", "_ready", "_store",
        "_waiting", "_watchers", "log",
    )  # fmt: skip

    def __init__(self, name: str, vhost_name: str, host: QueueHost, settings: QueueSettings) -> None:
        super().__init__(name, vhost_name, host, settings)
        # Set by `attach_store`, before anything is published.
        self._store: StreamStore = None  # type: ignore[assignment]
        self.log: StreamLog = None  # type: ignore[assignment]
        self._is_paused = False
        # In order of arrival.
        self._readers: dict[Consumer, _Reader] = {}
        self._ready: dict[_Reader, None] = {}
        self._waiting: dict[_Reader, None] = {}
        # The number of readers of whole chunks, which are not consumers.
        self._chunk_readers = 0
        # Called when more was written, and when the stream is deleted.
        self._watchers: dict[Callable[[], None], None] = {}
        # Called in later turns, one in each.
        self._deferred: dict[Callable[[], None], None] = {}
        # For the last property list: most messages have the same one.
        self._offset_header = OffsetHeader(b"\0\0")

    def attach_store(self, store: StreamStore, number: int) -> None:
        """Store its messages in `store` as the stream with `number`, which may exist already."""
        self._store = store
        self.log = store.log(number)
        store.begin(self.log, self.settings.initial_offset)
        self.log.listener = self._committed
        self.log.failed = self._failed
        self._retain()

    def apply_settings(self, settings: QueueSettings) -> None:
        """Use `settings` from now on."""
        self.settings = settings
        self._retain()

    def _retain(self) -> None:
        settings = self.settings
        segment_size = settings.segment_size_max
        self.log.retention = Retention(
            bytes_max=settings.length_bytes_max,
            age_ms_max=settings.age_ms_max,
            segment_size=STREAM_SEGMENT_SIZE if segment_size is None else segment_size,
        )
        self._store.trim(self.log, self._host.turn.now())

    @property
    def epoch(self) -> str:
        """Identifies the stream: a deleted and recreated stream of the same name has another epoch."""
        return self.log.epoch.hex()

    @property
    def message_count(self) -> int:
        """The number of messages that can be read."""
        return self.log.committed - self.log.first

    @property
    def ready_bytes(self) -> int:
        """The size of the stream on disk in bytes."""
        return self.log.byte_count

    @property
    def paged_count(self) -> int:
        """The number of messages on disk only, which is all of them."""
        return self.message_count

    @property
    def persistent_count(self) -> int:
        """The number of messages that survive a restart, which is all of them."""
        return self.message_count

    @property
    def persistent_bytes(self) -> int:
        """The size of the stream on disk in bytes, all of which survives a restart."""
        return self.log.byte_count

    @property
    def head_timestamp(self) -> int | None:
        """None: streams do not report it."""
        return None

    @property
    def is_paused(self) -> bool:
        """True while deliveries are paused; messages are accepted all the same."""
        return self._is_paused

    @property
    def consumer_count(self) -> int:
        """The number of consumers over any protocol."""
        return len(self._readers) + self._chunk_readers

    @property
    def is_due_for_deletion(self) -> bool:
        """False: a stream is never auto-deleted."""
        return False

    def consumers(self) -> Iterator[Consumer]:
        """Its consumers, oldest first."""
        return iter(list(self._readers))

    def offset_of(self, consumer: Consumer) -> int:
        """The offset of the next message for `consumer`, which must be a consumer of this stream."""
        return int(self._readers[consumer].offset)

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Append `message`; it is confirmed when it is synced, whether it is persistent or not."""
        self.published_count += 1
        if not self.is_dirty:
            self.mark_stats_dirty()
        if message.flags & _HAS_HEADERS:
            message = without_bcc(message)
        self._store.append(self.log, message)
        if confirmation is not None:
            self._store.confirm(confirmation, sequence)
        return _ACCEPTED

    def publish_as(self, message: Message, producer: str, sequence: int) -> bool:
        """Append `message`; False if `producer` has sent it or a later one before."""
        if message.flags & _HAS_HEADERS:
            message = without_bcc(message)
        if not self._store.append_as(self.log, message, producer, sequence):
            return False
        self.published_count += 1
        if not self.is_dirty:
            self.mark_stats_dirty()
        return True

    def publish_run_as(self, run: MessageRun, producer: str, sequence: int) -> None:
        """Append those messages of `run` that `producer` has not sent before.

        The first has the given `sequence`.
        """
        kept = self._store.append_run_as(self.log, run, producer, sequence)
        if kept:
            self.published_count += kept
            if not self.is_dirty:
                self.mark_stats_dirty()

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Call `confirmation` with `sequence` when everything appended before is synced."""
        self._store.confirm(confirmation, sequence)
        self._store.mark_dirty(self.log)

    def producer_sequence(self, producer: str) -> int | None:
        """The sequence of the last message from `producer`; None if it is not known."""
        return self.log.sequence_of(producer)

    def store_offset(self, reference: str, offset: int) -> None:
        """Store `offset` for the consumer `reference`."""
        self._store.store_offset(self.log, reference, offset)

    def stored_offset(self, reference: str) -> int | None:
        """The stored offset of the consumer `reference`; None if there is none."""
        return self.log.stored_offset(reference)

    def stored_offsets(self) -> dict[str, int]:
        """The stored offsets of all consumers."""
        return self.log.stored_offsets()

    def producer_sequences(self) -> dict[str, int]:
        """The sequence of the last message of each producer."""
        return self.log.sequences()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when more was written, on resume, and when the stream is deleted."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Stop calling `watcher`."""
        self._watchers.pop(watcher, None)

    def defer(self, reader: Callable[[], None]) -> None:
        """Call `reader` in a later turn, since it has examined much in this one."""
        self._deferred[reader] = None
        self._host.wake_at(self, self._host.turn.now())

    def count_reader(self, change: int) -> None:
        """Count a new reader of whole chunks (1), or one that has ended (-1)."""
        self._chunk_readers += change
        self._host.consumer_count += change
        self.used_at = self._host.turn.now()

    def count_delivered(self, count: int) -> None:
        """Count `count` messages sent to a reader of whole chunks."""
        self.delivered_count += count
        if not self.is_dirty:
            self.mark_stats_dirty()

    def check_consumer(self, consumer: Consumer) -> None:
        """AmqpNotImplemented for automatic acknowledgement, since a reader must say when it has room."""
        check_acknowledging(self, consumer)

    def check_reader(self, consumer: Consumer, prefetch: int) -> None:
        """AmqpError without acknowledgements or without a prefetch count."""
        check_acknowledging(self, consumer)
        check_prefetching(self, prefetch)

    def check_positioned(self) -> None:
        """PreconditionFailed: a stream does not remember which positions were published."""
        refuse_positions(self)

    def set_read_options(self, consumer: Consumer, stream_read_options: StreamReadOptions) -> None:
        """Deliver the messages that `stream_read_options` select to `consumer`, which is added next."""
        reader = self._readers[consumer] = _Reader(
            consumer, stream_read_options.offset(self.log, self._host.turn.now())
        )
        if stream_read_options.is_filtered:
            reader.stream_read_options = stream_read_options

    def add_consumer(self, consumer: Consumer) -> None:
        """Add `consumer`, which was admitted."""
        consumer.is_parked = False
        reader = self._readers.get(consumer)
        if reader is None:
            reader = self._readers[consumer] = _Reader(consumer, self.log.committed)
        self._host.consumer_count += 1
        self._ready[reader] = None
        self.pump()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove `consumer`."""
        reader = self._readers.pop(consumer, None)
        if reader is None:
            return
        self._ready.pop(reader, None)
        self._waiting.pop(reader, None)
        self._host.consumer_count -= 1
        self.used_at = self._host.turn.now()

    def consumer_ready(self, consumer: Consumer) -> None:
        """Unpark `consumer`, which can take messages again."""
        self.unpark(consumer)
        self.pump()

    def unpark(self, consumer: Consumer) -> None:
        """Unpark `consumer`; the next `pump` delivers messages."""
        reader = self._readers.get(consumer)
        if reader is not None and consumer.is_parked:
            consumer.is_parked = False
            self._ready[reader] = None

    def pump(self) -> None:
        """Deliver committed messages to ready consumers."""
        if self._is_paused:
            return
        ready = self._ready
        work_max = self._host.work + STREAM_WORK_PER_TURN_MAX
        while ready:
            if self._host.work >= work_max:
                self._host.wake_at(self, self._host.turn.now())
                return
            reader, _ = ready.popitem()
            self._serve(reader, work_max)

    def expire(self) -> None:
        """Continue work that was left for a later turn."""
        self.pump()
        if self._deferred:
            deferred = next(iter(self._deferred))
            del self._deferred[deferred]
            deferred()
        if self._deferred:
            self._host.wake_at(self, self._host.turn.now())

    def pause(self) -> None:
        """Pause deliveries until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        """Resume deliveries."""
        self._is_paused = False
        self.pump()
        self._tell_watchers()

    def acknowledge(self, delivery: Delivery) -> None:
        """Note that the consumer has room for another message; the message stays."""
        self.acknowledged_count += 1
        if not self.is_dirty:
            self.mark_stats_dirty()

    def requeue(self, delivery: Delivery, reason: int = NACKED) -> None:
        """Do what `acknowledge` does (RabbitMQ 4): the message stays in the stream and does not come back."""
        if reason != CHANNEL_ENDED:
            self.acknowledge(delivery)

    def reject(self, delivery: Delivery) -> None:
        """Do what `acknowledge` does (RabbitMQ 4)."""
        self.acknowledge(delivery)

    def read_again(self, delivery: Delivery) -> None:
        """Have its consumer read again from `delivery` on, which no client has seen; `pump` delivers it."""
        reader = None if delivery.consumer is None else self._readers.get(delivery.consumer)
        if reader is not None and delivery.position < reader.offset:
            reader.offset = delivery.position
            reader.begin = -1
            if reader in self._waiting:
                del self._waiting[reader]
                self._ready[reader] = None

    def get(self, no_ack: bool = False) -> Delivery | None:
        """Raise AmqpNotImplemented: streams do not support basic.get."""
        raise unsupported(GET, self)

    def clear(self) -> int:
        """Raise AmqpNotImplemented: streams do not support purging."""
        raise unsupported(PURGE, self)

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from offset `first` on; unreadable ones are skipped."""
        peeked: list[PeekedMessage] = []
        while len(peeked) < count:
            chunk = self.log.read(first)
            if chunk is None:
                break
            first = max(first, chunk.first)
            end = min(chunk.end, first + count - len(peeked))
            messages = [chunk.message(at - chunk.first) for at in range(first, end)]
            for message in messages:
                # Read only: nothing is dead-lettered or redriven from here, and older chunks lack the flag.
                presume_died(message)
            peeked += [PeekedMessage(at, message, 0) for at, message in enumerate(messages, first)]
            first = end
        return peeked

    def extent(self) -> list[range]:
        """The offsets of all messages that can be read now."""
        return [range(self.log.first, self.log.committed)]

    def delete(self) -> int:
        """Delete the stream with all messages; returns their number."""
        count = self.message_count
        self.is_deleted = True
        self._ready = {}
        self._waiting = {}
        self._deferred = {}
        self._host.wake_at(self, -1)
        readers, self._readers = self._readers, {}
        for consumer in readers:
            self._host.consumer_count -= 1
            consumer.cancelled()
        self._store.delete(self.log)
        self._tell_watchers()
        return count

    def abandon(self) -> None:
        """End for good, since an error has broken it or its log."""
        self._store.abandon(self.log)
        super().abandon()
        self._tell_watchers()

    # --- private -------------------------------------------------------------------------------

    def _failed(self, error: Exception) -> None:
        self._host.end_failed(self, error)

    def _committed(self) -> None:
        """Deliver newly committed messages."""
        if not self.is_dirty:
            self.mark_stats_dirty()
        self._ready |= self._waiting
        self._waiting = {}
        self.pump()
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        for watcher in list(self._watchers):
            watcher()

    def _serve(self, reader: "_Reader", work_max: int) -> None:
        """Deliver messages until the consumer is full, no more are left, or the turn is over."""
        consumer, log = reader.consumer, self.log
        chunk: Chunk | None = None
        while True:
            if chunk is None or reader.offset >= chunk.end:
                chunk = log.read(reader.offset, reader.begin)
                if chunk is None:
                    reader.begin = -1
                    self._waiting[reader] = None
                    return
                reader.begin = chunk.first
                # Skips messages that were trimmed or are damaged.
                reader.offset = max(reader.offset, chunk.first)
            if not consumer.is_ready():
                consumer.is_parked = True
                return
            if self._host.work >= work_max:
                self._ready[reader] = None
                return
            offset = reader.offset
            reader.offset += 1
            if reader.offset >= chunk.end:
                reader.begin = -1
            self._host.work += 1
            if reader.stream_read_options is not None and not reader.wants(chunk, offset):
                continue
            delivery = new_delivery(self, self._message(chunk, offset), offset)
            self.delivered_count += 1
            if not self.is_dirty:
                self.mark_stats_dirty()
            delivery.consumer = consumer
            consumer.deliver(delivery)

    def _message(self, chunk: Chunk, offset: int) -> Message:
        """The message at `offset` as consumers get it."""
        place = offset - chunk.first
        shape = chunk.shapes[chunk.shape_at(place)]
        offset_header = self._offset_header
        if shape.property_list != offset_header.source:
            offset_header = self._offset_header = OffsetHeader(shape.property_list)
        message = new_message(
            shape.address, offset_header.with_offset(offset), chunk.content(place), chunk.time
        )
        message.flags = shape.flags | _HAS_HEADERS
        message.priority = shape.priority
        return message


class _Reader:
    """The position of one consumer in the stream."""

    __slots__ = ("_shape", "_wants", "begin", "consumer", "offset", "stream_read_options")

    def __init__(self, consumer: Consumer, offset: int) -> None:
        self.consumer = consumer
        # The offset of the next message; and the first offset of its chunk, if known (else -1).
        self.offset = offset
        self.begin = -1
        # The filter, if any; and its result for the last shape.
        self.stream_read_options: StreamReadOptions | None = None
        self._shape: ChunkShape | None = None
        self._wants = False

    def wants(self, chunk: Chunk, offset: int) -> bool:
        """True if the message at `offset` of `chunk` is selected by `stream_read_options`."""
        assert self.stream_read_options is not None
        shape = chunk.shapes[chunk.shape_at(offset - chunk.first)]
        if shape is not self._shape:
            self._shape = shape
            self._wants = self.stream_read_options.wants(shape)
        return self._wants
