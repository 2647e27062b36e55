"""The state shared by all stream connections of one broker."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from itertools import islice, repeat

from warren import limits
from warren.model.message import ADDRESSED, FROM_STREAM, UNWRAPPED
from warren.session.server import Server
from warren.session.streams.counts import StreamCounts
from warren.session.streams.handshake import StreamSettings
from warren.session.streams.single_active_groups import SingleActiveGroups
from warren.session.streams.stream_questions import StreamAnswer, StreamQuestion
from warren.store.streams.chunk import Chunk, ChunkShape
from warren.wire.amqp1 import data_head
from warren.wire.properties import BasicProperties
from warren.wire.streams.conversion import write_head


class StreamServer:
    """Settings, single active consumers, and a cache of encoded chunks."""

    __slots__ = ("_encoded", "address_of", "ask_home", "counts", "groups", "server", "settings")

    def __init__(self, server: Server, settings: StreamSettings) -> None:
        self.server = server
        self.settings = settings
        # Where clients connect to a node, by its number, without TLS or with it; None if it is not heard.
        # Set by the owner.
        self.address_of: Callable[[int, bool], tuple[str, int] | None] = _unknown
        # Asks the home of a stream, by its number; None if it does not answer. Set by the owner.
        self.ask_home: Callable[[int, StreamQuestion], Awaitable[StreamAnswer | None]] = _not_answered
        self.counts = StreamCounts()
        # The groups of single active consumers.
        self.groups = SingleActiveGroups()
        # Encoded chunks, the least recently used first.
        self._encoded: OrderedDict[Chunk, bytes] = OrderedDict()

    def entries(self, chunk: Chunk) -> bytes:
        """The messages of `chunk`, encoded as Deliver has them."""
        data = self._encoded.get(chunk)
        if data is None:
            data = self._encoded[chunk] = encode_entries(chunk)
            if len(self._encoded) > limits.STREAM_ENCODED_CHUNKS_MAX:
                self._encoded.popitem(last=False)
        else:
            self._encoded.move_to_end(chunk)
        return data


def _unknown(node: int, is_tls: bool) -> None:
    """The default for a node that knows no other."""


async def _not_answered(home: int, question: StreamQuestion) -> None:
    """The default for a node that knows no other."""


def encode_entries(chunk: Chunk) -> bytes:
    """Encode each message of `chunk` as AMQP 1.0, preceded by its size."""
    heads = [_head_of(shape) for shape in chunk.shapes]
    # The bytes before a body, by shape and size; most messages share them.
    known: dict[tuple[int, int], bytes] = {}
    kinds = repeat(0) if chunk.kinds is None else chunk.kinds
    bodies = chunk.bodies
    parts: list[bytes | memoryview] = []
    begin = 0
    for number, end in zip(kinds, islice(chunk.ends, 1, None), strict=False):
        size = end - begin
        before = known.get((number, size))
        if before is None:
            head = heads[number]
            if not chunk.shapes[number].flags & UNWRAPPED:
                head += data_head(size)
            before = known[number, size] = (len(head) + size).to_bytes(4, "big") + head
        parts += (before, bodies[begin:end])
        begin = end
    return b"".join(parts)


def _head_of(shape: ChunkShape) -> bytes:
    """The sections before the body of messages of `shape`."""
    properties = BasicProperties.decode_list(shape.property_list)
    is_kept = bool(shape.flags & FROM_STREAM)
    if is_kept and not shape.flags & ADDRESSED:
        return write_head(properties, None, None, is_kept=True)
    size = shape.address[0]
    exchange, key = shape.address[1 : 1 + size], shape.address[2 + size :]
    return write_head(
        properties,
        exchange.decode("utf-8", "surrogateescape"),
        key.decode("utf-8", "surrogateescape"),
        is_kept=is_kept,
    )
