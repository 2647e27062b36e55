"""Bloom filters of the filter values in a chunk, all of the same small size.

A value is represented by two bits of `STREAM_BLOOM_BITS`, and a message without a value by the lowest bit.
The filter of a chunk is the union of its messages' bits: a chunk that lacks a bit of every wanted value has
no wanted message. A chunk that has the bits may still lack the value, so the reader must check each message.
"""

from collections import OrderedDict
from collections.abc import Iterable

from google_crc32c import value as checksum_of

from warren.limits import STREAM_BLOOM_BITS, STREAM_BLOOM_FILTERS_MAX
from warren.store.streams.chunk import Chunk
from warren.wire.properties import decode_some_headers
from warren.wire.streams.conversion import FILTER_HEADER
from warren.wire.table import Value

_UNFILTERED = 1
# The lowest bit stands for no value.
_PLACES = STREAM_BLOOM_BITS - 1
_HALF = 16
_KEY = bytes((len(FILTER_HEADER),)) + FILTER_HEADER.encode()
_WANTED = {FILTER_HEADER: 0}


class FilterMatcher:
    """The filter values that a consumer asks for; a chunk matches if it may have one of them."""

    __slots__ = ("_bits", "count")

    def __init__(self, values: Iterable[str], *, has_unfiltered: bool) -> None:
        """Match messages with one of `values`, and with `has_unfiltered` also messages without a value."""
        bits = {bloom_bits(value) for value in values}
        if has_unfiltered:
            bits.add(_UNFILTERED)
        self._bits = tuple(bits)
        self.count = len(bits)

    def may_match(self, bloom_filter: int) -> bool:
        """False if a chunk with `bloom_filter` has no wanted message."""
        return any(bits & bloom_filter == bits for bits in self._bits)


class BloomFilterCache:
    """The Bloom filters of recently read chunks of all streams of a virtual host; kept longer than the
    chunks.

    Adjacent chunks with the same filter are stored as one run, so that all of them are skipped at once.
    Entries never become stale, since chunks do not change and offsets are not reused.
    """

    __slots__ = ("_begins", "_known")

    def __init__(self) -> None:
        # By stream and first offset: the offset behind the run, and its filter.
        self._known: OrderedDict[tuple[int, int], tuple[int, int]] = OrderedDict()
        # By stream and the offset behind the run: its first offset.
        self._begins: dict[tuple[int, int], int] = {}

    def of(self, stream: int, first: int) -> tuple[int, int] | None:
        """The end offset and the filter of the run of `stream` that begins with `first`.

        None if it is not cached.
        """
        found = self._known.get((stream, first))
        if found is not None:
            self._known.move_to_end((stream, first))
        return found

    def note(self, stream: int, chunk: Chunk, bloom_filter: int) -> None:
        """Cache `bloom_filter` as the filter of `chunk` of `stream`."""
        known, begins = self._known, self._begins
        first, end = chunk.first, chunk.end
        if (stream, first) in known:
            return
        before, within = begins.get((stream, first)), begins.get((stream, end))
        begin = first if before is None or known[stream, before][1] != bloom_filter else before
        if within is not None:
            if within <= begin:
                return
            # A run that begins later, because its reader started there.
            del known[stream, within]
        if begin != first:
            del begins[stream, first]
        known[stream, begin] = end, bloom_filter
        known.move_to_end((stream, begin))
        begins[stream, end] = begin
        if len(known) > STREAM_BLOOM_FILTERS_MAX:
            (stream, _), (end, _) = known.popitem(last=False)
            del begins[stream, end]


def bloom_filter_of(chunk: Chunk) -> int:
    """The Bloom filter of `chunk`; messages with the same shape are examined once."""
    bloom_filter = 0
    for shape in chunk.shapes:
        value = filter_value(shape.property_list)
        if value is None:
            bloom_filter |= _UNFILTERED
        elif isinstance(value, str):
            bloom_filter |= bloom_bits(value)
    return bloom_filter


def bloom_bits(value: str) -> int:
    """The bits of `value`; an empty value counts as no value, as in RabbitMQ."""
    if not value:
        return _UNFILTERED
    checksum: int = checksum_of(value.encode("utf-8", "surrogateescape"))
    return 2 << checksum % _PLACES | 2 << (checksum >> _HALF) % _PLACES


def filter_value(property_list: bytes) -> Value:
    """The filter value of a message with `property_list`; None if it has none."""
    # Not `in`, which first tries to interpret its operand as a number.
    if property_list.find(_KEY) < 0:
        return None
    return decode_some_headers(property_list, _WANTED).get(FILTER_HEADER)
