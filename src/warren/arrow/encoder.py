"""Encodes rows as an Arrow IPC stream, in batches.

    stream │ schema │ batch … │ END

Most columns follow from the shape of a message, and are decoded once for each shape; they are repeated for
rows of one shape. `_constants` caches the columns of the last shape, since consecutive chunks mostly have the
same one. Bodies are not copied until they are written.

Imports pyarrow, which is slow and not always installed: only `library` imports this module.
"""

from array import array
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from warren.arrow.columns import PER_MESSAGE_COLUMNS
from warren.arrow.message_rows import MessageRows, MessageShape
from warren.arrow.shapes import IS_COMPILED, TIME, TYPES, Arrow, as_text, columns_of
from warren.limits import ARROW_BATCH_SIZE_MAX, ARROW_DECODED_PER_TURN

_TYPES: dict[str, Arrow] = {
    **TYPES,
    "queue": pa.string(),
    "offset": pa.int64(),
    "redelivered": pa.bool_(),
    "broker_timestamp": TIME,
    "body": pa.binary(),
}
_NEVER_NULL = ("offset", "body")
_MICROSECONDS = 1_000  # microseconds in a millisecond


class ArrowEncoder:
    """Encodes one response: rows of one queue, with the columns `names` in the order of `COLUMN_NAMES`."""

    __slots__ = ("_by_shape", "_constants", "_last", "_names", "_numbers", "_options", "_queue", "_schema")

    def __init__(self, queue: str, names: tuple[str, ...], compression: str | None = None) -> None:
        self._queue = as_text(queue)
        self._names = names
        self._by_shape = tuple(name for name in names if name not in PER_MESSAGE_COLUMNS)
        self._options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
        self._schema = pa.schema([pa.field(name, _TYPES[name], name not in _NEVER_NULL) for name in names])
        # Columns with one value: those of the last shape, and those that never change.
        self._constants: dict[str, Arrow] = {}
        self._last: MessageShape | None = None
        # 0, 1, 2 …: as many as have been needed.
        self._numbers: Arrow = pa.array([], pa.int64())

    @property
    def is_compressing(self) -> bool:
        """True if `encode` compresses, which is better done in a thread."""
        return self._options.compression is not None

    @property
    def is_quick(self) -> bool:
        """True if rows of many shapes are encoded as fast as rows of one."""
        return IS_COMPILED

    def head(self) -> Arrow:
        """Return the schema message, with which the stream begins."""
        return self._schema.serialize()

    def batches(self, many: Sequence[MessageRows]) -> Iterator[Arrow]:
        """Yield batches of rows, each to be encoded in a turn of its own.

        `many`, as `combined` returns it, becomes one batch, or several if it takes too much memory or time.
        """
        if len(many) > 1:
            yield self._batch(many)
            return
        (rows,) = many
        per_batch = max(ARROW_BATCH_SIZE_MAX // rows.row_size, 1)
        if not self.is_quick and len(rows.shapes) > ARROW_DECODED_PER_TURN:
            per_batch = min(per_batch, ARROW_DECODED_PER_TURN)
        for first in range(0, rows.count, per_batch):
            yield self._batch([rows if rows.count <= per_batch else rows.part(first, per_batch)])

    def encode(self, batch: Arrow) -> Arrow:
        """Return the bytes of `batch` as a buffer. Releases the interpreter to other threads."""
        if not self.is_compressing:
            return batch.serialize()
        # Only a writer compresses; it begins with the schema, which is cut off.
        sink = pa.BufferOutputStream()
        pa.ipc.new_stream(sink, self._schema, options=self._options).write_batch(batch)
        return sink.getvalue().slice(self.head().size)

    def _batch(self, many: Sequence[MessageRows]) -> Arrow:
        """Return all rows as one Arrow batch."""
        count = sum(rows.count for rows in many)
        first = many[0].shapes
        if all(rows.kinds is None and rows.shapes == first for rows in many):
            columns = self._repeated(first[0], count)
        else:
            columns = self._spread(many, count)
        for name in self._names:
            match name:
                case "queue":
                    columns[name] = self._constant(name, self._queue, count)
                case "offset":
                    columns[name] = _joined([self._offsets(rows.offsets) for rows in many])
                case "redelivered":
                    columns[name] = _joined([self._redelivered(rows) for rows in many])
                case "broker_timestamp":
                    columns[name] = _joined([_times(rows.times, rows.count) for rows in many])
                case "body":
                    columns[name] = _joined([_bodies(rows) for rows in many])
        return pa.RecordBatch.from_arrays([columns[name] for name in self._names], schema=self._schema)

    def _repeated(self, shape: MessageShape, count: int) -> dict[str, Arrow]:
        """Return the columns that follow from the shape, for `count` rows of one shape."""
        if shape != self._last:
            # Also removes columns of nulls, which come from rows of several shapes.
            self._forget_last()
            self._last = shape
            self._constants.update(columns_of([shape], self._by_shape))
        return {name: self._constant(name, None, count) for name in self._by_shape}

    def _spread(self, many: Sequence[MessageRows], count: int) -> dict[str, Arrow]:
        """Return the columns that follow from the shapes, for `count` rows of several shapes."""
        self._forget_last()
        used = [rows.used_shapes() for rows in many]
        found = columns_of([shape for shapes, _ in used for shape in shapes], self._by_shape)
        columns = {}
        # Rows whose shapes are all different are in the order of the shapes.
        indices = None if all(kinds is None for _, kinds in used) else _indices(used)
        for name in self._by_shape:
            column = found.get(name)
            if column is None:
                columns[name] = self._constant(name, None, count)
            else:
                columns[name] = column if indices is None else column.take(indices)
        return columns

    def _redelivered(self, rows: MessageRows) -> Arrow:
        if rows.redelivered is None:
            return self._constant("redelivered", False, rows.count)
        return pa.array(rows.redelivered, pa.bool_())

    def _constant(self, name: str, value: object, count: int) -> Arrow:
        """Return a column that repeats the cached value of `name`, or `value`, `count` times."""
        known = self._constants.get(name)
        if known is None:
            known = pa.array([value], _TYPES[name])
        if len(known) < count:
            known = pa.repeat(known[0], count) if known[0].is_valid else pa.nulls(count, known.type)
        self._constants[name] = known
        return known if len(known) == count else known.slice(0, count)

    def _forget_last(self) -> None:
        """Remove the columns of the last shape from the cache."""
        if self._last is not None:
            self._last = None
            for name in self._by_shape:
                self._constants.pop(name, None)

    def _offsets(self, offsets: "range | array[int]") -> Arrow:
        if isinstance(offsets, array):
            return _column(offsets, pa.int64())
        if len(self._numbers) < len(offsets):
            self._numbers = _column(array("q", range(len(offsets))), pa.int64())
        return pc.add(self._numbers.slice(0, len(offsets)), pa.scalar(offsets.start, pa.int64()))


def _indices(used: "Sequence[tuple[list[MessageShape], array[int] | None]]") -> Arrow:
    """Return the index of each row's shape in the concatenated lists of shapes."""
    indices, before = [], 0
    for shapes, kinds in used:
        own = array("I", range(len(shapes))) if kinds is None else kinds
        indices.append(pc.add(_column(own, pa.uint32()), pa.scalar(before, pa.uint32())))
        before += len(shapes)
    return _joined(indices)


def _joined(columns: list[Arrow]) -> Arrow:
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def _times(times: "array[int] | int", count: int) -> Arrow:
    if isinstance(times, int):
        return pa.repeat(pa.scalar(times * 1000, TIME), count)
    return pc.multiply(_column(times, pa.int64()), _MICROSECONDS).view(TIME)


def _bodies(rows: MessageRows) -> Arrow:
    buffers = [None, pa.py_buffer(rows.ends), pa.py_buffer(rows.bodies)]
    if rows.places is None:
        return pa.Array.from_buffers(_TYPES["body"], rows.count, buffers, offset=rows.at)
    everything = pa.Array.from_buffers(_TYPES["body"], len(rows.ends) - 1, buffers)
    return everything.take(_column(rows.places, pa.uint32()))


def _column(numbers: "array[int]", kind: Arrow) -> Arrow:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
