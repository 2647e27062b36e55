"""The interface to streams that both transports implement, and the errors for lost messages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class DataLoss(Exception):
    """Messages that the query has not read are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBounds:
    """The offsets in a stream: from `first`, inclusive, to `committed`, exclusive."""

    epoch: str
    first: int
    committed: int
    # Average size of a message in bytes; 0 if it is unknown.
    message_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressFilter:
    """A filter by exchange and routing key; None matches any. A transport may ignore the filter."""

    exchanges: tuple[str, ...] | None = None
    routing_keys: tuple[str, ...] | None = None

    @property
    def query(self) -> dict[str, Sequence[str] | None]:
        """Return the filter as query parameters of the HTTP API."""
        return {"exchange": self.exchanges, "routing_key": self.routing_keys}


ANY_ADDRESS = AddressFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Messages of one stream, from offset `start`, inclusive, to `end`, exclusive."""

    queue: str
    epoch: str
    start: int
    end: int
    is_loss_fatal: bool
    only: AddressFilter = ANY_ADDRESS


class Streams(Protocol):
    """Access to the streams of one virtual host."""

    # Whether `offset_at` searches by the time that the column `broker_timestamp` has.
    has_times: bool

    def bounds(self, queue: str, expected: int = 0) -> StreamBounds:
        """Return the current bounds of `queue`; an end before `expected` may be searched for again."""

    def offset_at(self, queue: str, milliseconds: int) -> int:
        """Return the first offset at `milliseconds` since 1970 or later."""

    def read(self, wanted: OffsetRange, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """Yield the messages of `wanted`. Raises DataLoss if some are lost and `is_loss_fatal` is set."""


def retention_loss(queue: str, start: int, first: int) -> DataLoss:
    """Return the error for messages that retention deleted before they were read."""
    return DataLoss(
        f"retention deleted the messages {start} to {first - 1} of the stream {queue!r} before they were "
        f"read: the stream begins at {first} now. Set failOnDataLoss=false to continue without them"
    )


def lease_loss(queue: str) -> DataLoss:
    """Return the error for a lease that ended before its micro-batch was committed."""
    return DataLoss(
        f"the lease of a micro-batch of the queue {queue!r} has expired or was requeued: its messages are in "
        "the queue again and will be read in a later micro-batch, marked as redelivered, so a sink that has "
        "this micro-batch gets them twice. Set failOnDataLoss=false to continue; leaseSeconds sets how long "
        "a lease lasts while no query runs"
    )
