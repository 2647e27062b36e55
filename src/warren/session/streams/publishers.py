"""The publishing side of a stream connection: publishers by the client's number."""

from collections.abc import Callable, Iterator

from warren import limits
from warren.framing.outbox import Outbox
from warren.limits import STREAM_FILTER_SIZE_MAX, STREAM_REFERENCE_SIZE_MAX
from warren.model.message import (
    ADDRESSED,
    BODY_END,
    FROM_STREAM,
    HAS_EXPIRATION,
    HAS_HEADERS,
    UNWRAPPED,
    Message,
    encode_address,
    new_message,
)
from warren.queues.stream import StreamQueue
from warren.session.streams.confirms import StreamConfirms
from warren.session.streams.counts import StreamCounts
from warren.vhost.batch_commit import STAGED_PRODUCER
from warren.vhost.vhost import VirtualHost
from warren.wire.streams.codes import MalformedFrame, ResponseCode
from warren.wire.streams.commands import PublishError
from warren.wire.streams.conversion import MessageConverter, MessageHead
from warren.wire.streams.fields import PublishingError
from warren.wire.streams.publish import Publication, SubEntryBatch


class StreamPublishers:
    """The publishers of one connection."""

    __slots__ = (
        "_converter", "_outbox", "_publishers", "_resume", "_resumed_below", "_totals", "_unconfirmed_max",
        "_vhost", "is_full", "unconfirmed",
    )  # fmt: skip

    def __init__(
        self, vhost: VirtualHost, outbox: Outbox, totals: StreamCounts, resume: Callable[[], None]
    ) -> None:
        """`resume` is called when `is_full` becomes false, or the last publisher is deleted."""
        self._resume = resume
        self._totals = totals
        self._vhost = vhost
        self._outbox = outbox
        self._converter = MessageConverter()
        self._publishers: dict[int, DeclaredPublisher] = {}
        # The number of unconfirmed messages.
        self.unconfirmed = 0
        # True from when too many are unconfirmed until they are few enough.
        self.is_full = False
        self.limit(limits.STREAM_UNCONFIRMED_MAX, 0)

    def __len__(self) -> int:
        return len(self._publishers)

    def limit(self, unconfirmed_max: int, unblocking_min: int) -> None:
        """Be full with `unconfirmed_max` messages, until `unblocking_min` more could be published."""
        self._unconfirmed_max = unconfirmed_max
        # With none unconfirmed it is never full.
        self._resumed_below = max(unconfirmed_max - unblocking_min, 1)

    def __iter__(self) -> "Iterator[DeclaredPublisher]":
        return iter(list(self._publishers.values()))

    def declare(self, number: int, reference: str, stream: StreamQueue) -> ResponseCode:
        """Declare a publisher of `stream`; with a `reference`, its messages are deduplicated."""
        if len(reference.encode("utf-8", "surrogateescape")) > STREAM_REFERENCE_SIZE_MAX:
            return ResponseCode.PRECONDITION_FAILED
        if reference.startswith(STAGED_PRODUCER):
            # Publishing under the name of a streaming query would make it skip its own rows.
            return ResponseCode.ACCESS_REFUSED
        is_taken = number in self._publishers or any(
            reference and known.reference == reference and known.stream is stream
            for known in self._publishers.values()
        )
        if is_taken:
            return ResponseCode.PRECONDITION_FAILED
        confirms = StreamConfirms(self._outbox, number, totals=self._totals, settled=self._settled)
        self._publishers[number] = DeclaredPublisher(number, stream, reference, confirms)
        return ResponseCode.OK

    def delete(self, number: int) -> ResponseCode:
        """Delete a publisher."""
        if self._publishers.pop(number, None) is None:
            return ResponseCode.PUBLISHER_DOES_NOT_EXIST
        self._resume_if_none()
        return ResponseCode.OK

    def forget(self, is_over: Callable[[StreamQueue], bool]) -> set[str]:
        """Delete the publishers of streams for which `is_over` is true; return the names of these streams."""
        gone = {number for number, one in self._publishers.items() if is_over(one.stream)}
        names = {self._publishers.pop(number).stream.name for number in gone}
        self._resume_if_none()
        return names

    def close(self) -> None:
        """Stop calling `resume`, because the connection has ended."""
        self._resume = _nothing

    def publish(self, publication: Publication) -> None:
        """Store the messages of a Publish."""
        publisher = self._publishers.get(publication.publisher)
        if publisher is None or publisher.stream.is_deleted:
            code = ResponseCode.PUBLISHER_DOES_NOT_EXIST
            failures = tuple(PublishingError(sequence, code) for sequence, _ in publication.entries)
            self._totals.failures[code] += len(failures)
            if failures:
                self._outbox.raw(PublishError(publication.publisher, failures).encode())
            return
        filters = publication.filters
        for place, (sequence, entry) in enumerate(publication.entries):
            value = None if filters is None else filters[place]
            if value is not None and len(value.encode("utf-8", "surrogateescape")) > STREAM_FILTER_SIZE_MAX:
                publisher.confirms.fail(sequence, ResponseCode.PRECONDITION_FAILED)
            elif isinstance(entry, SubEntryBatch):
                self._publish_batch(publisher, sequence, entry, value)
            else:
                self._count_one()
                publisher.publish(self._message(publisher, entry, value), sequence)

    def _publish_batch(
        self, publisher: "DeclaredPublisher", sequence: int, batch: SubEntryBatch, value: str | None
    ) -> None:
        """Store the messages of a batch; the sequence is recorded with the last of them."""
        if not batch.is_readable:
            publisher.confirms.fail(sequence, ResponseCode.PRECONDITION_FAILED)
            return
        try:
            messages = batch.messages()
        except MalformedFrame:
            publisher.confirms.fail(sequence, ResponseCode.PRECONDITION_FAILED)
            return
        if not messages:
            publisher.confirms.fail(sequence, ResponseCode.PRECONDITION_FAILED)
            return
        self._count_one()
        publisher.publish_all([self._message(publisher, message, value) for message in messages], sequence)

    def _message(self, publisher: "DeclaredPublisher", data: bytes, value: str | None) -> Message:
        """Decode `data` to a message with the filter value `value`."""
        head, begin, end, is_data = self._converter.split(data)
        if value is not None:
            head = self._converter.filtered(head, value)
        property_list, address, flags = publisher.known(head, is_data=is_data)
        message = new_message(address, property_list, data[begin:end] + BODY_END, self._vhost.turn.now())
        message.flags = flags
        message.priority = head.priority
        return message

    def _settled(self, count: int) -> None:
        self.unconfirmed -= count
        if self.is_full and self.unconfirmed < self._resumed_below:
            self.is_full = False
            self._resume()

    def _count_one(self) -> None:
        self.unconfirmed += 1
        if self.unconfirmed >= self._unconfirmed_max:
            self.is_full = True

    def _resume_if_none(self) -> None:
        if not self._publishers:
            self._resume()


def _nothing() -> None:
    """Placeholder after the connection is closed."""


class DeclaredPublisher:
    """One publisher: its stream, and the reference for deduplication."""

    __slots__ = ("_address", "_known", "_shape", "confirms", "number", "reference", "stream")

    def __init__(self, number: int, stream: StreamQueue, reference: str, confirms: StreamConfirms) -> None:
        self.number = number
        self.stream = stream
        self.reference = reference
        self.confirms = confirms
        self._address = encode_address("", stream.name)
        # The last message head: equal messages share its property list and address.
        self._known: MessageHead | None = None
        self._shape: tuple[bytes, bytes, int] = (b"", b"", 0)

    def publish(self, message: Message, sequence: int) -> None:
        """Store `message`, unless it is a duplicate."""
        number = self.confirms.next(sequence)
        if self.reference:
            self.stream.publish_as(message, self.reference, sequence)
            self.stream.confirm(self.confirms, number)
        else:
            self.stream.publish(message, self.confirms, number)

    def publish_all(self, messages: list[Message], sequence: int) -> None:
        """Store `messages`, which share one sequence, unless they are duplicates.

        The sequence is recorded with the last: if not all are safe after a crash, all may be sent again.
        """
        number = self.confirms.next(sequence)
        stream = self.stream
        last = stream.producer_sequence(self.reference) if self.reference else None
        if last is None or sequence > last:
            *others, final = messages
            for message in others:
                stream.publish(message, None, 0)
            if self.reference:
                stream.publish_as(final, self.reference, sequence)
            else:
                stream.publish(final, None, 0)
        stream.confirm(self.confirms, number)

    def known(self, head: MessageHead, *, is_data: bool) -> tuple[bytes, bytes, int]:
        """The property list, address and flags of messages with `head`."""
        _, _, flags = self._shape
        if head is not self._known or is_data == bool(flags & UNWRAPPED):
            self._known = head
            self._shape = self._made(head, is_data=is_data)
        return self._shape

    def _made(self, head: MessageHead, *, is_data: bool) -> tuple[bytes, bytes, int]:
        flags = FROM_STREAM
        if not is_data:
            flags |= UNWRAPPED
        if head.has_headers:
            flags |= HAS_HEADERS
        if head.has_expiration:
            flags |= HAS_EXPIRATION
        address = self._address
        if head.exchange is not None and head.routing_key is not None:
            flags |= ADDRESSED
            address = encode_address(head.exchange, head.routing_key)
        return head.property_list, address, flags
