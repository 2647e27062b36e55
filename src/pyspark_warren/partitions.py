"""Input partitions: what a task reads, pickled by the driver."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from pyspark_warren.amqp_streams import AmqpStreams
from pyspark_warren.http import HttpApi, HttpApiError, path
from pyspark_warren.options import ReadOptions
from pyspark_warren.streams import ANY_ADDRESS, AddressFilter, OffsetRange, Streams, lease_loss

if TYPE_CHECKING:
    import pyarrow as pa


# The status for a lease that the broker has forgotten, and for one that has expired.
_ENDED = (404, 410)


class ReadPartition(InputPartition):
    """The messages that one task reads."""

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """Yield the messages with `columns` as record batches; runs in the task."""
        raise NotImplementedError


@dataclass(frozen=True)
class StreamPartition(ReadPartition):
    """A range of offsets of one stream."""

    range: OffsetRange
    transport: str

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """Yield the messages with `columns` as record batches."""
        return open_streams(options, self.transport).read(self.range, columns)


@dataclass(frozen=True)
class BufferedPartition(ReadPartition):
    """Messages that the driver has consumed, as an Arrow IPC stream."""

    data: bytes

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """Yield the messages; the driver has already selected the columns."""
        import pyarrow as pa

        with pa.ipc.open_stream(self.data) as batches:
            yield from batches


@dataclass(frozen=True)
class LeasePartition(ReadPartition):
    """A range of positions in one lease."""

    lease: str
    start: int
    end: int
    queue: str

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """Yield the messages; if the lease has ended, raise DataLoss, or yield none if that is not fatal."""
        from pyspark_warren.arrow import read_rows

        try:
            yield from read_rows(
                HttpApi(options.broker),
                path("warren", "leases", self.lease, "rows"),
                {"end": self.end},
                start=self.start,
                end=self.end,
                columns=columns,
                retries=options.broker.retries,
            )
        except HttpApiError as refused:
            if refused.status not in _ENDED:
                raise
            if options.is_loss_fatal:
                raise lease_loss(self.queue) from None


@dataclass(frozen=True)
class BrowsePartition(ReadPartition):
    """The ready messages of a queue, which are browsed and not consumed."""

    queue: str
    only: AddressFilter = ANY_ADDRESS

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """Yield the messages. A broken connection is an error, since the ready messages change meanwhile."""
        from pyspark_warren.arrow import BROKEN, read_batches

        place = path("warren", "queues", options.broker.target.vhost, self.queue, "rows")
        query = {"count": options.offsets_max, "max_bytes": options.bytes_max, **self.only.query}
        try:
            for batch, _ in read_batches(HttpApi(options.broker), place, query, columns):
                yield batch
        except BROKEN as error:
            raise HttpApiError(f"the answer of {place} was cut off: {error}") from error


def open_streams(options: ReadOptions, transport: str) -> Streams:
    """Return the access to streams over `transport`."""
    if transport == "arrow":
        from pyspark_warren.arrow import ArrowStreams

        return ArrowStreams(options.broker)
    return AmqpStreams(options.broker, options.prefetch)


def split_range(start: int, end: int, count: int) -> list[tuple[int, int]]:
    """Split [start, end) into at most `count` non-empty ranges of about equal size."""
    total = end - start
    count = max(1, min(count, total))
    edges = [start + total * number // count for number in range(count + 1)]
    return [(low, high) for low, high in pairwise(edges) if low < high]
