"""What was done with messages: plain integers that only grow, counted by who does it, read by who shows it.

Counted are messages, not frames. Who counts inherits the integers: compiled, an addition to one's own is one
instruction, and to those of another object some more. What a queue and an exchange count stands in these.
"""


class Counters:
    """What one half of a channel did, or all channels of a virtual host since it is there."""

    __slots__ = (
        "acknowledged", "confirmed", "delivered", "delivered_no_ack", "dropped", "got", "got_empty",
        "got_no_ack", "published", "redelivered", "returned",
    )  # fmt: skip

    def __init__(self) -> None:
        self.published = 0
        self.confirmed = 0
        # Of those that found no queue: given back, because they were mandatory; or not.
        self.returned = 0
        self.dropped = 0
        # To consumers that acknowledge, and to those that do not.
        self.delivered = 0
        self.delivered_no_ack = 0
        # By basic.get: to be acknowledged, or not; and how often there was nothing to get.
        self.got = 0
        self.got_no_ack = 0
        self.got_empty = 0
        # Of those delivered or got, how many were handed out before.
        self.redelivered = 0
        self.acknowledged = 0
