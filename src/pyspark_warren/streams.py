"""What a stream must be able to say and to give, whatever it is asked over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class DataLoss(Exception):
    """Messages that the query has not read are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBounds:
    """What a stream holds: offsets from `first` up to, and without, `committed`."""

    epoch: str
    first: int
    committed: int
    # Of one message, about; 0 if nobody knows.
    octets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressFilter:
    """Messages with one of these keys and exchanges; None is any. Who cannot choose may send others, too."""

    exchanges: tuple[str, ...] | None = None
    routing_keys: tuple[str, ...] | None = None

    @property
    def query(self) -> dict[str, Sequence[str] | None]:
        """As the HTTP API is asked."""
        return {"exchange": self.exchanges, "routing_key": self.routing_keys}


ANY_ADDRESS = AddressFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Messages of one stream, from `start` up to, and without, `end`."""

    queue: str
    epoch: str
    start: int
    end: int
    is_loss_fatal: bool
    only: AddressFilter = ANY_ADDRESS


class Streams(Protocol):
    """The streams of one virtual host."""

    # Whether `broker_timestamp` is the time by which `offset_at` looks.
    has_times: bool

    def bounds(self, queue: str, expected: int = 0) -> StreamBounds:
        """What it holds now; what is below `committed` stays as it is. It should be `expected` at least."""

    def offset_at(self, queue: str, milliseconds: int) -> int:
        """The first offset at or behind a time."""

    def read(self, wanted: OffsetRange, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """The messages; `DataLoss` if some are gone and that is fatal."""


def retention_loss(queue: str, start: int, first: int) -> DataLoss:
    """The same words wherever it is found out."""
    return DataLoss(
        f"the messages {start} to {first - 1} of the stream {queue!r} are gone: it begins at {first} now. "
        "Its retention was shorter than the query was away; failOnDataLoss=false goes on without them"
    )


def lease_loss(queue: str) -> DataLoss:
    """The same for a lease that ended before its batch was committed."""
    return DataLoss(
        f"the lease of a batch of the queue {queue!r} has expired, or was given back: its messages are in "
        "the queue again and come in later batches, as redelivered; what a sink has of this batch it gets "
        "twice. failOnDataLoss=false goes on so; leaseSeconds says how long a lease lasts while no query runs"
    )
