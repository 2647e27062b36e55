"""What a queue says of itself to a client that declares, inspects or deletes it."""

from msgspec import Struct


class QueueCounts(Struct, frozen=True):
    """The numbers of the ready messages and of the consumers of a queue."""

    message_count: int
    consumer_count: int
