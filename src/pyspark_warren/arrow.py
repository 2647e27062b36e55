"""Rows of streams, queues and leases in Arrow format, from the HTTP API."""

import contextlib
import http.client
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute

from pyspark_warren import answers
from pyspark_warren.http import HttpApi, HttpApiError, path
from pyspark_warren.options import BrokerOptions
from pyspark_warren.schema import arrow_schema
from pyspark_warren.streams import DataLoss, OffsetRange, StreamBounds, retention_loss

# The column by which an interrupted read is resumed.
_OFFSET = "offset"
# The storage type of a map; pyarrow.compute cannot count the entries of a map itself.
_ENTRIES = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
# Small batches of the broker are joined to this size, as a batch costs Spark as much as 2,000 rows.
BATCH_BYTES = 1_048_576
# Errors of an answer that was cut off.
BROKEN = (OSError, http.client.HTTPException, pa.ArrowException)


class ArrowStreams:
    """Implements `Streams` over the HTTP API."""

    has_times = True

    def __init__(self, broker: BrokerOptions) -> None:
        self._management = HttpApi(broker)
        self._vhost = broker.target.vhost
        self._retries = broker.retries

    def bounds(self, queue: str, expected: int = 0) -> StreamBounds:
        """Return the current bounds of `queue`; `expected` is not needed."""
        return self._management.get(self._path(queue), read=answers.stream_bounds)

    def offset_at(self, queue: str, milliseconds: int) -> int:
        """Return the first offset of the chunk that was begun at `milliseconds` since 1970 or later."""
        return self._management.get(self._path(queue), {"timestamp": milliseconds}, answers.stream_offset)

    def read(self, wanted: OffsetRange, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the messages; after a lost connection, continue behind the last one."""
        query = {"end": wanted.end, "epoch": wanted.epoch or None, **wanted.only.query}
        try:
            yield from read_rows(
                self._management,
                self._path(wanted.queue) + "/rows",
                query,
                start=wanted.start,
                end=wanted.end,
                columns=columns,
                retries=self._retries,
            )
        except HttpApiError as refused:
            first = answers.first_offset(refused.body, wanted.start)
            if refused.status == 409:
                raise DataLoss(f"the stream {wanted.queue!r} was deleted and declared again") from None
            if refused.status != 410 or first is None:
                raise
            if wanted.is_loss_fatal:
                raise retention_loss(wanted.queue, wanted.start, first) from None
            if first < wanted.end:
                yield from self.read(replace(wanted, start=first), columns)

    def _path(self, queue: str) -> str:
        return path("warren", "streams", self._vhost, queue)


def read_rows(
    management: HttpApi,
    place: str,
    query: Mapping[str, Any],
    *,
    start: int,
    end: int,
    columns: Sequence[str],
    retries: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in [start, end); an answer that is cut off is resumed with a new request."""
    at = start
    attempts = 0
    while at < end:
        started = at
        try:
            for batch, last in read_batches(management, place, {**query, "start": at}, columns):
                if not at <= last < end:
                    raise HttpApiError(
                        f"{place} answered up to {last}: at {at}, rows before {end} are wanted", -1
                    )
                yield batch
                at, attempts = last + 1, 0
        except BROKEN as error:
            attempts += 1
            if attempts > retries:
                raise HttpApiError(
                    f"the response of {place} is incomplete, it ended at {at}: {error}"
                ) from error
            continue
        if at == started:
            return  # the remaining rows do not exist


def read_batches(
    management: HttpApi, place: str, query: Mapping[str, Any], columns: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the batches of one answer with the schema that Spark expects, and the offset of each last row."""
    asked = [*columns, *([] if _OFFSET in columns else [_OFFSET])]
    schema = arrow_schema(columns)
    with (
        management.open(place, {**query, "columns": ",".join(asked)}) as answer,
        pa.ipc.open_stream(answer) as batches,
    ):
        _check_columns(batches.schema, asked, place)
        for batch in _joined(batches):
            last = batch.column(_OFFSET)[batch.num_rows - 1].as_py()
            if last is None:
                raise HttpApiError(f"{place} answered with rows that have no offset", -1)
            arrays = [_without_empty(name, batch.column(name)) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema), last
        # The reader stops at the end of the rows; the connection is kept if the response is read to its end.
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer.read(1)


def _check_columns(schema: pa.Schema, asked: Sequence[str], place: str) -> None:
    """Raise HttpApiError unless an answer has each column once, and offsets as numbers."""
    for name in asked:
        at = schema.get_field_index(name)
        if at < 0 or (name == _OFFSET and schema.field(at).type != pa.int64()):
            raise HttpApiError(f"{place} answered without a column {name!r} of the expected type", -1)


def _without_empty(name: str, column: pa.Array) -> pa.Array:
    """Return `column` with empty headers as null, as over AMQP, where the two are not distinguished."""
    if name == "headers_json":
        is_empty = compute.equal(column, "{}")
    elif name == "headers":
        is_empty = compute.equal(compute.list_value_length(column.cast(_ENTRIES)), 0)
    else:
        return column
    if not compute.any(is_empty).as_py():
        return column
    return compute.if_else(compute.fill_null(is_empty, False), pa.scalar(None, column.type), column)


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches; rows that arrived before an error are yielded before it is raised.

    Arrow reads what a batch says of its own size: each is validated before it is used.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in batches:
            batch.validate(full=True)
            if not batch.num_rows:
                continue
            held.append(batch)
            size += batch.nbytes
            if size >= BATCH_BYTES:
                whole, held, size = _one(held), [], 0
                yield whole
    except BROKEN:
        if held:
            yield _one(held)
        raise
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
