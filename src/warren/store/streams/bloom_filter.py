"""Which filter values a chunk may have, in as few octets for a thousand of them as for one.

Two bits of `STREAM_BLOOM_BITS` stand for a value, and the lowest for messages that have none: a Bloom filter.
A chunk has the bits of all its messages, so one that lacks a bit of every value that is wanted has nothing
that is wanted. One that has them may still lack the value: who reads looks again at what comes.
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
    """Filter values that somebody asks for; a chunk is to have one of them."""

    __slots__ = ("_bits", "count")

    def __init__(self, values: Iterable[str], *, has_unfiltered: bool) -> None:
        """Those with one of `values`; and, with `has_unfiltered`, those without any."""
        bits = {bloom_bits(value) for value in values}
        if has_unfiltered:
            bits.add(_UNFILTERED)
        self._bits = tuple(bits)
        self.count = len(bits)

    def may_match(self, bloom_filter: int) -> bool:
        """False if a chunk with `bloom_filter` has nothing that is wanted."""
        return any(bits & bloom_filter == bits for bits in self._bits)


class BloomFilterCache:
    """What is known of chunks of late, longer than the chunks themselves: of all streams of a virtual host.

    Chunks that follow each other and have the same sieve are known as one run, which is passed over at once.
    Chunks never change, and offsets are not used twice, so what is known of one stays true.
    """

    __slots__ = ("_begins", "_known")

    def __init__(self) -> None:
        # By stream and first offset: the offset behind the run, and its sieve.
        self._known: OrderedDict[tuple[int, int], tuple[int, int]] = OrderedDict()
        # By stream and the offset behind it: where a run begins.
        self._begins: dict[tuple[int, int], int] = {}

    def of(self, stream: int, first: int) -> tuple[int, int] | None:
        """Where the run of `stream` ends that begins with `first`, and its sieve; None if nobody knows."""
        found = self._known.get((stream, first))
        if found is not None:
            self._known.move_to_end((stream, first))
        return found

    def note(self, stream: int, chunk: Chunk, bloom_filter: int) -> None:
        """`chunk` of `stream` has this `bloom_filter`."""
        known, begins = self._known, self._begins
        first, end = chunk.first, chunk.end
        if (stream, first) in known:
            return
        before, within = begins.get((stream, first)), begins.get((stream, end))
        begin = first if before is None or known[stream, before][1] != bloom_filter else before
        if within is not None:
            if within <= begin:
                return
            # One that begins later, as its reader did.
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
    """The bits of all messages of `chunk`: those of one shape are looked at once."""
    bloom_filter = 0
    for shape in chunk.shapes:
        value = filter_value(shape.property_list)
        if value is None:
            bloom_filter |= _UNFILTERED
        elif isinstance(value, str):
            bloom_filter |= bloom_bits(value)
    return bloom_filter


def bloom_bits(value: str) -> int:
    """The bits of `value`; an empty one is none, as in RabbitMQ."""
    if not value:
        return _UNFILTERED
    checksum: int = checksum_of(value.encode("utf-8", "surrogateescape"))
    return 2 << checksum % _PLACES | 2 << (checksum >> _HALF) % _PLACES


def filter_value(property_list: bytes) -> Value:
    """The filter value of a message with `property_list`; None if it has none."""
    # Not `in`, which first takes what it looks for for a number.
    if property_list.find(_KEY) < 0:
        return None
    return decode_some_headers(property_list, _WANTED).get(FILTER_HEADER)
