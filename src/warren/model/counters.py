"""Counters of messages: integers that only grow, incremented by channels and read by statistics.

They count messages, not frames. Classes that count inherit them: compiled, an increment of an own attribute
is one instruction, and of another object's several. Queues and exchanges have counters of their own.
"""


class Counters:
    """The counters of one side of a channel, or of all channels of a virtual host since its start."""

    __slots__ = (
        "acknowledged", "confirmed", "delivered", "delivered_no_ack", "dropped", "got", "got_empty",
        "got_no_ack", "published", "redelivered", "returned",
    )  # fmt: skip

    def __init__(self) -> None:
        self.published = 0
        self.confirmed = 0
        # Unroutable messages: returned because they were mandatory, or dropped.
        self.returned = 0
        self.dropped = 0
        # Deliveries to consumers with acknowledgements, and without.
        self.delivered = 0
        self.delivered_no_ack = 0
        # Messages of basic.get with acknowledgement and without, and the gets from an empty queue.
        self.got = 0
        self.got_no_ack = 0
        self.got_empty = 0
        # Those of the delivered and got messages that had been delivered before.
        self.redelivered = 0
        self.acknowledged = 0
