"""Publishes the rows of a batch exactly once, even across crashes: in slices, each with a commit marker.

    rows ─▶ slice: routed, published, and the row count so far ─▶ one commit group ─ synced ─▶ durable

A slice is in the log together with the number of rows published so far, or neither is (store/markers). So
after a crash that number is right, and publishing continues behind it. A row that a full queue would refuse
ends the slice before it, and waits.

A stream has a log of its own. Rows that go to a stream are written there first, with the query as the
producer and with a sequence number each, and are durable there before the slice is published anywhere else;
after a crash the stream recognises repeated rows and drops them. The destinations of a row are determined
once for both, since bindings may change in between; a random exchange chooses by the number of the row, and
so chooses the same queue again.

The entry that proposes the messages of a slice to a quorum queue is in the same commit group. While the queue
could not propose them with the next write, the slice waits.
"""

from collections.abc import Callable

from msgspec.structs import replace

from warren.errors import NotFound
from warren.limits import STAGED_ROW_BITS, STAGED_ROWS_PER_SLICE, STAGED_SLICES_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import (
    HAS_HEADERS,
    PERSISTENT,
    Message,
    body_size_of,
    new_message,
    new_stored_message,
)
from warren.queues.capabilities import existing, refusing_queue, stream_queue, taking_queue
from warren.queues.stream import StreamQueue
from warren.routing.copies import has_copies
from warren.routing.exchange import BY_CHANCE
from warren.routing.random_choice import RandomExchange
from warren.routing.router import Route, decode_name
from warren.store.message_store import MessageStore
from warren.store.staged.commit_progress import CommitProgress, CommitState, progress_key
from warren.store.streams.chunk import Chunk
from warren.vhost.move_router import FULL
from warren.vhost.vhost import VirtualHost

# The prefix of the producer name of a query in streams; clients cannot publish under it.
STAGED_PRODUCER = "staged:"
# Why a slice waits whose messages could not be proposed together with its marker.
BEHIND = "queue '{}' has to commit earlier messages first"
# Called with each published message and its destinations.
OnPublished = Callable[[Message, tuple[object, ...]], None]


class BatchCommit(ConfirmListener):
    """The commit of one batch of one query."""

    def __init__(self, vhost: VirtualHost, query: str, progress: CommitProgress) -> None:
        """Continue where `progress` says; the virtual host must have a store."""
        assert vhost.stores is not None
        self.progress = progress
        # Called when more rows are synced; and called with each message, if set.
        self.wake: Callable[[], None] = _nobody
        self.published: OnPublished | None = None
        self._vhost = vhost
        self._store: MessageStore = vhost.stores.persistent
        self._key = progress_key(query)
        self._producer = f"{STAGED_PRODUCER}{query}"
        # The row up to which streams have their rows; and the route of these rows, if it leads to streams
        # only.
        self._streamed = 0
        self._route: Route | None = None
        # The destinations of these rows, from row number `_routed_from` on.
        self._routed: list[tuple[object, ...]] = []
        self._routed_from = 0
        # The exchanges that route at random, as of a generation of the router.
        self._random_exchanges: list[RandomExchange] = []
        self._generation = -1
        self._streams = _StreamConfirms(self)
        # Numbers of the last slice published, and of the last slice synced.
        self._sent = 0
        self._safe = 0

    @property
    def is_full(self) -> bool:
        """True if so many slices wait for a sync that no more may be published."""
        return self._streams.due > 0 or self._sent - self._safe >= STAGED_SLICES_MAX

    @property
    def is_safe(self) -> bool:
        """True if everything published was synced, together with its marker."""
        return self._sent == self._safe

    def publish(self, chunk: Chunk, place: int) -> tuple[int, str]:
        """Publish rows of `chunk` from `place` on, as many as fit into a turn.

        Returns the place behind the last published row, and the reason for stopping, if any.
        """
        self._store.begin_group()
        first, unroutable, reason = place, 0, ""
        before = self.progress.published - place
        try:
            if self._route is not None and self.published is None:
                place += self._count_streamed(self._route)
            end = min(chunk.count, place + STAGED_ROWS_PER_SLICE)
            while place < end:
                message = _row(chunk, place, self._vhost.turn.now())
                destinations, reason = self._destinations_of(message, before + place)
                if reason:
                    break
                if before + place < self._streamed:
                    elsewhere = tuple(queue for queue in destinations if stream_queue(queue) is None)
                elif _has_stream(destinations):
                    break
                else:
                    elsewhere = destinations
                place += 1
                unroutable += not destinations
                if self.published is not None:
                    self.published(message, destinations)
                self._vhost.publish_routed(elsewhere, message, None, 0)
        finally:
            if place > first:
                self._end_slice(CommitState.PUBLISHING, place - first, unroutable)
        if place == first and not reason:
            self._stream(chunk, place)
        return place, reason

    def end(self, state: CommitState) -> None:
        """End the commit with `state`; rows that were published stay published."""
        self._store.begin_group()
        self._end_slice(state, 0, 0)

    def expect(self, sequence: int) -> None:
        """Slice number `sequence` is being written."""

    def done(self, first: int, last: int) -> None:
        """All slices up to `last` were synced."""
        self._safe = last
        self.wake()

    def _stream(self, chunk: Chunk, place: int) -> None:
        """Append rows of `chunk` from `place` on to the streams they go to, up to a row that cannot be
        published.
        """
        streams: dict[StreamQueue, None] = {}
        row = self._routed_from = self._streamed = self.progress.published
        end = min(chunk.count, place + STAGED_ROWS_PER_SLICE)
        self._route = None
        self._routed = []
        while place < end:
            message = _row(chunk, place, self._vhost.turn.now())
            destinations, reason = self._destinations_of(message, row)
            if reason:
                break
            count = 1
            if chunk.kinds is None and row == self.progress.published:
                self._route = self._sole_route(message)
                if self._route is not None:
                    count = chunk.count - place
            number = self._number(row)
            for queue in filter(None, map(stream_queue, destinations)):
                if count == 1:
                    queue.publish_as(message, self._producer, number)
                else:
                    queue.publish_run_as(chunk.run(place, message), self._producer, number)
                streams[queue] = None
            self._routed += [destinations] * count
            place += count
            row += count
        self._streamed = row
        for queue in streams:
            queue.confirm(self._streams, row)

    def _sole_route(self, message: Message) -> Route | None:
        """The route of all rows like `message`, if it leads to streams only; else None."""
        if message.flags & HAS_HEADERS and has_copies(message.property_list):
            return None
        route = self._vhost.router.find(message.address, message)
        is_sole = route.destinations and all(map(stream_queue, route.destinations))
        return route if is_sole and route.decides != BY_CHANCE else None

    def _count_streamed(self, route: Route) -> int:
        """Count the rows that streams received by `route` as published, and return their number."""
        count = self._streamed - self.progress.published
        self._route = None
        route.source.published_in += count
        route.source.published_out += count * len(route.destinations)
        self._vhost.published += count
        return count

    def _number(self, row: int) -> int:
        """The sequence number of `row` in streams; it increases with each row and each batch."""
        return self.progress.batch << STAGED_ROW_BITS | row + 1

    def _destinations_of(self, message: Message, row: int) -> tuple[tuple[object, ...], str]:
        """The destinations of `message`, row number `row` of the batch.

        Or the reason why it cannot be published now.
        """
        router = self._vhost.router
        if row < self._streamed:
            name = decode_name(message.address, 0)
            if name not in router.exchanges:
                return (), f"no exchange '{name}' in vhost '{self._vhost.name}'"
            known = self._routed[row - self._routed_from]
            destinations = existing(known)
        else:
            self._seed_random_exchanges(row)
            try:
                destinations = router.rehearse(message.address, message)
            except NotFound as error:
                return (), error.message
            finally:
                self._seed_random_exchanges(None)
        full = refusing_queue(destinations, message)
        if full is not None:
            return (), FULL.format(full.name)
        for queue in filter(None, map(taking_queue, destinations)):
            if queue.is_behind(body_size_of(message)):
                return (), BEHIND.format(queue.name)
        return destinations, ""

    def _seed_random_exchanges(self, row: int | None) -> None:
        """Make random exchanges choose the same destinations for `row` at each attempt; None ends this."""
        router = self._vhost.router
        if router.generation != self._generation:
            self._generation = router.generation
            self._random_exchanges = [
                one for one in router.exchanges.values() if isinstance(one, RandomExchange)
            ]
        for one in self._random_exchanges:
            one.choice_seed = None if row is None else f"{self._key.hex()} {self._number(row)} ".encode()

    def _end_slice(self, state: CommitState, rows: int, unroutable: int) -> None:
        """End the commit group of this slice, with the new progress as its marker."""
        before = self.progress
        self.progress = replace(
            before,
            state=state,
            published=before.published + rows,
            unroutable=before.unroutable + unroutable,
            at=self._vhost.turn.now(),
        )
        self._store.end_group(self._key, self.progress.encode())
        self._sent += 1
        self._store.confirm(self, self._sent)


class _StreamConfirms(ConfirmListener):
    """Counts streams that have not synced their rows yet."""

    def __init__(self, committing: BatchCommit) -> None:
        self._committing = committing
        # The number of streams that have not confirmed.
        self.due = 0

    def expect(self, sequence: int) -> None:
        """Count a stream that will confirm."""
        self.due += 1

    def done(self, first: int, last: int) -> None:
        """Count confirms; wakes the commit when all streams have confirmed."""
        self.due -= last - first + 1
        if not self.due:
            self._committing.wake()


def _has_stream(destinations: tuple[object, ...]) -> bool:
    return any(map(stream_queue, destinations))


def _row(chunk: Chunk, place: int, now: int) -> Message:
    """The message at `place` of `chunk`, published at `now` (ms)."""
    shape = chunk.shapes[chunk.shape_at(place)]
    make = new_stored_message if shape.flags & PERSISTENT else new_message
    message: Message = make(shape.address, shape.property_list, chunk.content(place), now)
    message.flags = shape.flags
    message.priority = shape.priority
    return message


def _nobody() -> None:
    """The default callback, which does nothing."""
