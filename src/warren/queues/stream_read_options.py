"""The options of a stream consumer: where to start, and which messages to deliver.

`x-stream-offset` is `first`, `last` (the last chunk), `next` (messages from now on, the default), an offset,
a timestamp (`T`), or an age such as `7D`, which selects the first chunk of that time or later.
`x-stream-filter` is one value or several: it selects messages whose header `x-stream-filter-value` is one of
them, and with `x-stream-match-unfiltered` also messages without the header. RabbitMQ filters whole chunks and
leaves the rest to the client; here only matching messages are delivered.
"""

from collections.abc import Mapping

from warren.model.arguments import age_ms, is_age
from warren.queues.offset_header import OFFSET_HEADER
from warren.store.streams.bloom_filter import filter_value
from warren.store.streams.chunk import ChunkShape
from warren.store.streams.stream_log import StreamLog
from warren.wire.table import Timestamp, Value, type_name

FILTER = "x-stream-filter"
MATCH_UNFILTERED = "x-stream-match-unfiltered"
# All arguments of basic.consume that it reads.
READ_ARGUMENTS = (OFFSET_HEADER, FILTER, MATCH_UNFILTERED)
_NAMES = ("first", "last", "next")
_SECOND_MS = 1000


class StreamReadOptions:
    """Where to start reading a stream, and which messages to skip."""

    __slots__ = ("_has_unfiltered", "_start", "_values")

    def __init__(self, arguments: Mapping[str, Value]) -> None:
        """Read the `arguments` of basic.consume.

        ValueError names an invalid argument and the permitted values.
        """
        start = arguments.get(OFFSET_HEADER, "next")
        is_number = isinstance(start, int) and not isinstance(start, bool)
        if not is_number and not (isinstance(start, str) and (start in _NAMES or is_age(start))):
            raise ValueError(
                f"'{OFFSET_HEADER}' is first, last, next, an offset, a timestamp or an age as 7D, "
                f"not {type_name(start)} '{start}'"
            )
        self._start = start
        self._values = _values(arguments.get(FILTER))
        has_unfiltered = arguments.get(MATCH_UNFILTERED, False)
        if not isinstance(has_unfiltered, bool):
            raise ValueError(f"'{MATCH_UNFILTERED}' is a boolean, not {type_name(has_unfiltered)}")
        self._has_unfiltered = has_unfiltered

    def offset(self, log: StreamLog, now: int) -> int:
        """The offset in `log` at which to start, at the time `now` (ms)."""
        start = self._start
        if isinstance(start, Timestamp):
            return log.offset_at(start * _SECOND_MS)
        if isinstance(start, int):
            return max(start, 0)
        if start == "first":
            return log.first
        if start == "next":
            return log.committed
        if start == "last":
            chunk = log.read(log.committed - 1)
            return log.committed if chunk is None else chunk.first
        return log.offset_at(now - age_ms(start))

    @property
    def is_filtered(self) -> bool:
        """True if some messages are skipped."""
        return bool(self._values)

    def wants(self, shape: ChunkShape) -> bool:
        """True if messages of `shape` are selected."""
        value = filter_value(shape.property_list)
        return self._has_unfiltered if value is None else value in self._values


def _values(asked: Value) -> frozenset[str]:
    if asked is None:
        return frozenset()
    values = asked if isinstance(asked, list) else [asked]
    if not values or not all(isinstance(value, str) for value in values):
        raise ValueError(f"'{FILTER}' is a string or an array of strings, not {type_name(asked)}")
    return frozenset(values)
