"""What a queue says of itself to a client that declares, inspects or deletes it."""

from msgspec import Struct


class QueueCounts(Struct, frozen=True):
    """The numbers of the ready messages, of the consumers and of the delayed messages of a queue."""

    message_count: int
    consumer_count: int
    delayed_count: int = 0
