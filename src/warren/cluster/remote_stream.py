"""A stream whose home is another node: what a channel of this node has instead of it.

What all streams refuse is refused here, so that it is as fast as at the home, and each reader tells the home
where it begins.
"""

from warren.cluster.remote_queue import RemoteQueue
from warren.errors import PreconditionFailed
from warren.limits_cluster import REMOTE_ARGUMENTS_SIZE_MAX
from warren.queues.queue import Consumer, Delivery
from warren.queues.stream_refusals import (
    GET,
    PURGE,
    check_acknowledging,
    check_prefetching,
    refuse_positions,
    unsupported,
)
from warren.wire.table import encode_table

# The size in front of a table.
_TABLE_SIZE_SIZE = 4


class RemoteStream(RemoteQueue):
    """A queue of type stream on another node."""

    __slots__ = ()

    def check_reader(self, consumer: Consumer, prefetch: int) -> None:
        """AmqpError without acknowledgements or without a prefetch count."""
        check_acknowledging(self, consumer)
        check_prefetching(self, prefetch)

    def check_positioned(self) -> None:
        """PreconditionFailed: a stream does not remember which positions were published."""
        refuse_positions(self)

    async def fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        """Raise AmqpNotImplemented: streams do not support basic.get."""
        raise unsupported(GET, self)

    async def purge(self) -> int:
        """Raise AmqpNotImplemented: streams do not support purging."""
        raise unsupported(PURGE, self)

    def read_arguments_of(self, consumer: Consumer) -> bytes:
        """Where `consumer` begins, and what it selects. PreconditionFailed if that is too much to send."""
        table = encode_table(dict(consumer.read_arguments()))
        size = len(table) - _TABLE_SIZE_SIZE
        if size > REMOTE_ARGUMENTS_SIZE_MAX:
            raise PreconditionFailed(
                f"the filter of a consumer of stream '{self.name}' in vhost '{self.vhost_name}' has {size}"
                f" bytes, more than {REMOTE_ARGUMENTS_SIZE_MAX}, as many as its home takes: consume there"
            )
        return table
