"""Messages as columns that refer to their original bytes, from chunks of a stream or messages of a queue."""

from array import array
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from warren.model.blind_copies import strip_bcc
from warren.model.message import Message
from warren.queues.batches import MessageColumns
from warren.store.streams.chunk import Chunk
from warren.store.streams.span import Span

# The address (exchange and routing key) and the property list of a message, as encoded in `Message`.
MessageShape = tuple[bytes, bytes]

# Estimated size of a row in a batch without body and shape, and the growth of a shape as text, in two
# columns.
_ROW_SIZE = 512
_SHAPE_FACTOR = 6


class MessageRows(Struct, kw_only=True):
    """Messages of one queue; their bodies are not copied."""

    queue: str
    # Positions in the queue, or offsets in the stream.
    offsets: "range | array[int]"
    shapes: list[MessageShape]
    # The index of the shape of each row; None: all rows have the only one.
    kinds: "array[int] | None"
    # The time of publication (ms) of each row, or of all.
    times: "array[int] | int"
    # True for rows delivered before; None: none of them.
    redelivered: list[bool] | None
    # The ends of bodies in `bodies`, preceded by the start of the first one; the first row has index `at`.
    ends: "array[int]"
    bodies: memoryview
    at: int = 0
    # The indexes of the rows in `ends`, if they are not consecutive from `at` on.
    places: "array[int] | None" = None

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.offsets)

    @property
    def byte_count(self) -> int:
        """The total size of the bodies, in bytes."""
        ends = self.ends
        if self.places is None:
            return ends[self.at + self.count] - ends[self.at]
        return sum(ends[place + 1] - ends[place] for place in self.places)

    @property
    def memory(self) -> int:
        """Estimated memory until they are sent (bytes): original bodies, Arrow column, and encoded stream."""
        return 3 * self.byte_count + self.count * self.row_size

    @property
    def row_size(self) -> int:
        """Estimated size of a row in a batch without its body (bytes), assuming the longest shape."""
        longest = max((len(address) + len(listed) for address, listed in self.shapes), default=0)
        return _ROW_SIZE + _SHAPE_FACTOR * longest

    def used_shapes(self) -> "tuple[list[MessageShape], array[int] | None]":
        """Return a list with the shapes of these rows, and the index of each in it; None: in order."""
        kinds = self.kinds
        if kinds is None:
            return self.shapes[:1], array("I", bytes(4 * self.count))
        first, end = min(kinds), max(kinds) + 1
        shapes = self.shapes[first:end]
        if end - first == len(kinds) and kinds == array("I", range(first, end)):
            return shapes, None
        return shapes, array("I", [kind - first for kind in kinds]) if first else kinds

    def part(self, first: int, count: int) -> "MessageRows":
        """Return at most `count` rows from row number `first` on."""
        end = min(first + count, self.count)
        times, kinds, places = self.times, self.kinds, self.places
        return MessageRows(
            queue=self.queue,
            offsets=self.offsets[first:end],
            shapes=self.shapes,
            kinds=None if kinds is None else kinds[first:end],
            times=times if isinstance(times, int) else times[first:end],
            redelivered=None if self.redelivered is None else self.redelivered[first:end],
            ends=self.ends,
            bodies=self.bodies,
            at=self.at + first,
            places=None if places is None else places[first:end],
        )

    def within(self, bytes_max: int) -> "MessageRows":
        """Return the first rows whose bodies together have at most `bytes_max` bytes; at least one row."""
        if self.byte_count <= bytes_max:
            return self
        byte_count = count = 0
        for place in self.places if self.places is not None else range(self.at, self.at + self.count):
            byte_count += self.ends[place + 1] - self.ends[place]
            if byte_count > bytes_max and count:
                break
            count += 1
        return self.part(0, count)


class RowFilter(Struct, frozen=True, kw_only=True):
    """Selects rows by exchange and routing key; None selects all."""

    exchanges: Collection[bytes] | None = None
    routing_keys: Collection[bytes] | None = None

    @property
    def is_all(self) -> bool:
        """True if every row is selected."""
        return self.exchanges is None and self.routing_keys is None

    def fits(self, address: bytes) -> bool:
        """True if messages published with `address` are selected."""
        key_at = 2 + address[0]
        if self.exchanges is not None and address[1 : key_at - 1] not in self.exchanges:
            return False
        return self.routing_keys is None or address[key_at:] in self.routing_keys


ALL_ROWS = RowFilter()


def rows_of_chunk(
    queue: str, chunk: Chunk | Span, start: int, end: int, *, wanted: RowFilter = ALL_ROWS
) -> MessageRows:
    """Return the messages of `chunk` with offsets from `start` to before `end` that `wanted` selects."""
    first, behind = max(start, chunk.first), min(end, chunk.end)
    at = first - chunk.first
    kinds = chunk.kinds
    times: array[int] | int
    if isinstance(chunk, Chunk):
        ends, times = chunk.ends, chunk.time
        shapes = [(shape.address, shape.property_list) for shape in chunk.shapes]
    else:
        ends, times = chunk.ends_and_times()
        times = times[at : behind - chunk.first]
        shapes = chunk.shapes
    rows = MessageRows(
        queue=queue,
        offsets=range(first, max(behind, first)),
        shapes=shapes,
        kinds=None if kinds is None else kinds[at : behind - chunk.first],
        times=times,
        redelivered=None,
        ends=ends,
        bodies=chunk.bodies,
        at=at,
    )
    return rows if wanted.is_all else _filtered(rows, wanted)


def rows_of_messages(
    queue: str, messages: Collection[tuple[int, Message, bool]], wanted: RowFilter = ALL_ROWS
) -> MessageRows:
    """Return the messages, with positions and redelivered flags, that `wanted` selects."""
    columns = MessageColumns(len(messages))
    for place, message, is_redelivered in messages:
        if wanted.is_all or wanted.fits(message.address):
            columns.add(place, message, is_redelivered)
    return rows_of_columns(queue, columns)


def rows_of_columns(queue: str, columns: MessageColumns) -> MessageRows:
    """Return all messages in `columns`."""
    return MessageRows(
        queue=queue,
        offsets=columns.places,
        shapes=[(address, strip_bcc(property_list)) for address, property_list in columns.shapes],
        kinds=columns.kinds,
        times=columns.times,
        redelivered=columns.redelivered,
        ends=columns.ends,
        bodies=memoryview(columns.bodies),
    )


def combined(
    source: Iterator[MessageRows | None], size_max: Callable[[], int]
) -> Iterator[list[MessageRows] | None]:
    """Combine rows of `source` into lists with at most `size_max` bytes of memory, or a single element.

    Yields None for each element without rows. An exception is raised after the rows before it are yielded.
    """
    held: list[MessageRows] = []
    size = 0
    try:
        for rows in source:
            wanted = rows if rows is not None and rows.count else None
            more = wanted.memory if wanted is not None else 0
            if held and (wanted is None or size + more > size_max()):
                yield held
                held, size = [], 0
            if wanted is None:
                yield None
                continue
            held.append(wanted)
            size += more
            if size >= size_max():
                yield held
                held, size = [], 0
    except Exception:
        if held:
            yield held
        raise
    if held:
        yield held


def _filtered(rows: MessageRows, wanted: RowFilter) -> MessageRows:
    """Return those of the consecutive `rows` that `wanted` selects; the filter runs once for each shape."""
    fitting = [wanted.fits(address) for address, _ in rows.shapes]
    kinds = rows.kinds
    if all(fitting) or not rows.count:
        return rows
    places: array[int] = array("I")
    if kinds is not None:
        places.extend(place for place, kind in enumerate(kinds) if fitting[kind])
    first, times = rows.offsets[0], rows.times
    return MessageRows(
        queue=rows.queue,
        offsets=array("q", [first + place for place in places]),
        shapes=rows.shapes,
        kinds=None if kinds is None else array("I", [kinds[place] for place in places]),
        times=times if isinstance(times, int) else array("q", [times[place] for place in places]),
        redelivered=None,
        ends=rows.ends,
        bodies=rows.bodies,
        places=array("I", [rows.at + place for place in places]),
    )
