"""Rows as an Arrow IPC stream, piece by piece.

    stream │ schema │ batch … │ END

What follows from the shape of a message, which is all but a few columns, is decoded once for each shape and
repeated by Arrow, column by column; `constants` are the columns of the shape that came last, as one chunk
after the other mostly has the same. Bodies stay where they are until they are written.

Imports pyarrow, which takes a while and is not there everywhere: only `library` imports this module.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from warren.limits import ARROW_BATCH_SIZE_MAX, ARROW_SHAPES_PER_TURN, ARROW_SHAPES_SIZE_MAX
from warren.management.arrow.columns import NAMES, OWN
from warren.management.arrow.rows import Rows, Shape
from warren.wire.properties import BasicProperties
from warren.wire.table_json import header_text, table_to_json

# Nothing of Arrow says what it is to a type checker.
Arrow: TypeAlias = Any

COMPRESSIONS: Final = ("zstd", "lz4")

_TIME = pa.timestamp("us", tz="UTC")
_TYPES: dict[str, Arrow] = {
    **dict.fromkeys(NAMES, pa.string()),
    "offset": pa.int64(),
    "redelivered": pa.bool_(),
    "priority": pa.int32(),
    "delivery_mode": pa.int32(),
    "timestamp": _TIME,
    "broker_timestamp": _TIME,
    "headers": pa.map_(pa.string(), pa.string()),
    "body": pa.binary(),
}
_NEVER_NULL = ("offset", "body")
# Later ones are none of which Arrow knows.
_SECONDS_MAX = ((1 << 63) - 1) // 1_000_000
# About what a row takes beside its shape: more where its facts are objects before they are in a column. And
# how much longer a shape is as text, in two columns, and what its facts take as objects.
_ROW_SIZE = 512
_MIXED_ROW_SIZE = 2_048
_SHAPE_FACTOR = 6
_SHAPE_SIZE = 1_024

_Fact = Callable[[bytes, BasicProperties], object]


class Encoder:
    """Makes the octets of one answer: rows of one queue, of the columns `names`, in the order of `NAMES`."""

    __slots__ = (
        "_by_flags", "_by_shape", "_constants", "_facts", "_last", "_learnt_octets", "_names", "_numbers",
        "_options", "_queue", "_schema",
    )  # fmt: skip

    def __init__(self, queue: str, names: tuple[str, ...], compression: str | None = None) -> None:
        self._queue = _as_text(queue)
        self._names = names
        self._by_shape = tuple(name for name in names if name not in OWN)
        self._options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
        self._schema = pa.schema([pa.field(name, _TYPES[name], name not in _NEVER_NULL) for name in names])
        # Flags of properties -> places in `_by_shape` of what a message with those has, and how to find it.
        self._by_flags: dict[bytes, list[tuple[int, _Fact]]] = {}
        # What follows from shapes, in the order of `_by_shape`.
        self._facts: dict[Shape, list[object]] = {}
        self._learnt_octets = 0
        # Columns that have one value: those of the shape that came last, and those that never change.
        self._constants: dict[str, Arrow] = {}
        self._last: Shape | None = None
        # 0, 1, 2 …: as many as were needed.
        self._numbers: Arrow = pa.array([], pa.int64())

    @property
    def is_compressing(self) -> bool:
        """True if `encode` has much to do, and is better called in a thread."""
        return self._options.compression is not None

    def head(self) -> Arrow:
        """What the stream begins with."""
        return self._schema.serialize()

    def batches(self, rows: Rows) -> Iterator[Arrow | None]:
        """Batches of `rows`, to be encoded; None where a turn's work is done and more is to come."""
        per_batch = _rows_per_batch(rows)
        for first in range(0, rows.count, per_batch):
            part = rows if rows.count <= per_batch else rows.part(first, per_batch)
            columns: dict[str, Arrow] = {}
            if self._learnt_octets > ARROW_SHAPES_SIZE_MAX:
                self._forget()
            if part.kinds is None:
                self._repeat(part.shapes[0], part.count, columns)
            else:
                yield from self._spread(part, part.kinds, columns)
            self._add_own(part, columns)
            yield pa.RecordBatch.from_arrays([columns[name] for name in self._names], schema=self._schema)

    def encode(self, batch: Arrow) -> Arrow:
        """The octets of `batch`, as a buffer. Other threads run meanwhile."""
        if not self.is_compressing:
            return batch.serialize()
        # A writer is the only one who compresses; it begins with the schema.
        sink = pa.BufferOutputStream()
        pa.ipc.new_stream(sink, self._schema, options=self._options).write_batch(batch)
        return sink.getvalue().slice(self.head().size)

    def _repeat(self, shape: Shape, count: int, columns: dict[str, Arrow]) -> None:
        """Columns of `count` rows of one shape."""
        if shape != self._last:
            self._learn([shape])
            self._last = shape
            # Also columns of nulls, from rows of several shapes.
            for name in self._by_shape:
                self._constants.pop(name, None)
        for name, fact in zip(self._by_shape, self._facts[shape], strict=True):
            columns[name] = self._constant(name, fact, count)

    def _spread(self, rows: Rows, kinds: "array[int]", columns: dict[str, Arrow]) -> Iterator[None]:
        """Columns of rows of several shapes."""
        used: dict[int, int] = {}
        own_kinds = array("I", [used.setdefault(kind, len(used)) for kind in kinds])
        shapes = [rows.shapes[kind] for kind in used]
        self._forget_last()
        for at in range(0, len(shapes), ARROW_SHAPES_PER_TURN):
            if at:
                yield None
            self._learn(shapes[at : at + ARROW_SHAPES_PER_TURN])
        facts = [self._facts[shape] for shape in shapes]
        indices = None
        if len(shapes) < rows.count:
            indices = _column(own_kinds, pa.uint32())
        known = {place for flags in {shape[1][:2] for shape in shapes} for place, _ in self._known(flags)}
        for place, name in enumerate(self._by_shape):
            if place not in known:
                columns[name] = self._constant(name, None, rows.count)
                continue
            column = pa.array([fact[place] for fact in facts], _TYPES[name])
            columns[name] = column if indices is None else column.take(indices)

    def _add_own(self, rows: Rows, columns: dict[str, Arrow]) -> None:
        """The columns that do not follow from shapes, as far as they are asked for."""
        for name in self._names:
            match name:
                case "queue":
                    columns[name] = self._constant(name, self._queue, rows.count)
                case "offset":
                    columns[name] = self._offsets(rows.offsets)
                case "redelivered":
                    was_out = rows.redelivered
                    columns[name] = (
                        self._constant(name, False, rows.count)
                        if was_out is None
                        else pa.array(was_out, pa.bool_())
                    )
                case "broker_timestamp":
                    columns[name] = _times(rows.times, rows.count)
                case "body":
                    columns[name] = _bodies(rows)

    def _constant(self, name: str, value: object, count: int) -> Arrow:
        """A column that has `value` in each row."""
        known = self._constants.get(name)
        if known is None or len(known) < count:
            kind = _TYPES[name]
            known = pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)
            self._constants[name] = known
        return known if len(known) == count else known.slice(0, count)

    def _learn(self, shapes: list[Shape]) -> None:
        """Know what follows from `shapes`."""
        facts = self._facts
        for shape in shapes:
            if shape in facts:
                continue
            address, property_list = shape
            properties = BasicProperties.decode_list(property_list)
            found: list[object] = [None] * len(self._by_shape)
            for place, fact in self._known(property_list[:2]):
                found[place] = fact(address, properties)
            facts[shape] = found
            self._learnt_octets += _SHAPE_SIZE + len(address) + len(property_list)

    def _known(self, flags: bytes) -> list[tuple[int, _Fact]]:
        """What a message has whose properties begin with `flags`, and how to find it."""
        known = self._by_flags.get(flags)
        if known is None:
            number = int.from_bytes(flags, "big")
            known = self._by_flags[flags] = [
                (place, _FACTS[name])
                for place, name in enumerate(self._by_shape)
                if not _FLAGS[name] or number & _FLAGS[name]
            ]
        return known

    def _forget_last(self) -> None:
        """Have no columns any more of the shape that came last."""
        if self._last is not None:
            self._last = None
            for name in self._by_shape:
                self._constants.pop(name, None)

    def _forget(self) -> None:
        self._facts.clear()
        self._learnt_octets = 0
        self._forget_last()

    def _offsets(self, offsets: "range | array[int]") -> Arrow:
        if isinstance(offsets, array):
            return _column(offsets, pa.int64())
        if len(self._numbers) < len(offsets):
            self._numbers = _column(array("q", range(len(offsets))), pa.int64())
        return pc.add(self._numbers.slice(0, len(offsets)), pa.scalar(offsets.start, pa.int64()))


def _rows_per_batch(rows: Rows) -> int:
    """How many rows are made at once: no more than take so much memory, if all had the longest shape."""
    longest = max((len(address) + len(listed) for address, listed in rows.shapes), default=0)
    own = _ROW_SIZE if rows.kinds is None else _MIXED_ROW_SIZE
    return max(ARROW_BATCH_SIZE_MAX // (own + _SHAPE_FACTOR * longest), 1)


def _times(times: "array[int] | int", count: int) -> Arrow:
    if isinstance(times, int):
        return pa.repeat(pa.scalar(times * 1000, _TIME), count)
    return pa.array([time * 1000 for time in times], _TIME)


def _bodies(rows: Rows) -> Arrow:
    buffers = [None, pa.py_buffer(rows.ends), pa.py_buffer(rows.bodies)]
    if rows.places is None:
        return pa.Array.from_buffers(_TYPES["body"], rows.count, buffers, offset=rows.at)
    everything = pa.Array.from_buffers(_TYPES["body"], len(rows.ends) - 1, buffers)
    return everything.take(_column(rows.places, pa.uint32()))


def _column(numbers: "array[int]", kind: Arrow) -> Arrow:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def _as_text(text: str) -> str:
    """`text` without what is no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _text(name: str) -> _Fact:
    def fact(_: bytes, properties: BasicProperties) -> object:
        value = getattr(properties, name)
        return None if value is None else _as_text(value)

    return fact


def _number(name: str) -> _Fact:
    return lambda _, properties: getattr(properties, name)


def _exchange(address: bytes, _: BasicProperties) -> object:
    return address[1 : 1 + address[0]].decode("utf-8", "replace")


def _routing_key(address: bytes, _: BasicProperties) -> object:
    return address[2 + address[0] :].decode("utf-8", "replace")


def _timestamp(_: bytes, properties: BasicProperties) -> object:
    seconds = properties.timestamp
    if seconds is None or seconds > _SECONDS_MAX:
        return None
    return seconds * 1_000_000


def _headers(_: bytes, properties: BasicProperties) -> object:
    headers = properties.headers
    if headers is None:
        return None
    return [(_as_text(name), header_text(value)) for name, value in headers.items()]


def _headers_json(_: bytes, properties: BasicProperties) -> object:
    return None if properties.headers is None else table_to_json(properties.headers)


_FACTS: dict[str, _Fact] = {
    **{name: _text(name) for name in NAMES if name not in OWN},
    "exchange": _exchange,
    "routing_key": _routing_key,
    "priority": _number("priority"),
    "delivery_mode": _number("delivery_mode"),
    "timestamp": _timestamp,
    "headers": _headers,
    "headers_json": _headers_json,
}


def _flag(name: str) -> int:
    """The flag with which a property list says that it has what the column `name` shows; 0 of an address."""
    if name in ("exchange", "routing_key"):
        return 0
    properties = BasicProperties()
    if name in ("headers", "headers_json"):
        properties.headers = {}
    else:
        setattr(properties, name, 0 if name in ("priority", "delivery_mode", "timestamp") else "")
    return int.from_bytes(properties.encode_list()[:2], "big")


_FLAGS = {name: _flag(name) for name in _FACTS}
