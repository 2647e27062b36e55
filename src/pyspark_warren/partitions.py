"""What a task reads, in a form that travels to it."""

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


# A lease that has ended, or of which the broker does not know any more.
_ENDED = (404, 410)


class ReadPartition(InputPartition):
    """One task's share; it is read where the task runs."""

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """The messages."""
        raise NotImplementedError


@dataclass(frozen=True)
class StreamPartition(ReadPartition):
    """Messages of one stream."""

    range: OffsetRange
    transport: str

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """The messages."""
        return open_streams(options, self.transport).read(self.range, columns)


@dataclass(frozen=True)
class BufferedPartition(ReadPartition):
    """Messages that the driver holds, as it has received them."""

    octets: bytes

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """The messages."""
        import pyarrow as pa

        with pa.ipc.open_stream(self.octets) as batches:
            yield from batches


@dataclass(frozen=True)
class LeasePartition(ReadPartition):
    """Messages of one lease, by their places in it."""

    lease: str
    start: int
    end: int
    queue: str

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """The messages; none if they are back in the queue, and that is not fatal."""
        from pyspark_warren.arrow import read_rows

        try:
            yield from read_rows(
                HttpApi(options.broker),
                path("warren", "leases", self.lease, "rows"),
                {"end": self.end},
                places=(self.start, self.end),
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
    """What waits in a queue when it is asked for; nothing changes by it."""

    queue: str
    only: AddressFilter = ANY_ADDRESS

    def read(self, options: ReadOptions, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """The messages. A connection that breaks ends it: what waits is another thing each time."""
        from pyspark_warren.arrow import read_batches

        place = path("warren", "queues", options.broker.target.vhost, self.queue, "rows")
        query = {"count": options.offsets_max, "octets_max": options.octets_max, **self.only.query}
        for batch, _ in read_batches(HttpApi(options.broker), place, query, columns):
            yield batch


def open_streams(options: ReadOptions, transport: str) -> Streams:
    """The streams of the broker over `transport`."""
    if transport == "arrow":
        from pyspark_warren.arrow import ArrowStreams

        return ArrowStreams(options.broker)
    return AmqpStreams(options.broker, options.prefetch)


def split_range(start: int, end: int, count: int) -> list[tuple[int, int]]:
    """[start, end) in at most `count` parts of about one size, none of them empty."""
    total = end - start
    count = max(1, min(count, total))
    edges = [start + total * number // count for number in range(count + 1)]
    return [(low, high) for low, high in pairwise(edges) if low < high]
