"""What all clients of the stream protocol did since the start: integers that only grow."""

from collections import Counter

from warren.wire.streams.codes import ResponseCode


class StreamCounts:
    """Counted by who does it, for all connections of a broker together."""

    __slots__ = ("confirmed", "delivered", "failures", "published")

    def __init__(self) -> None:
        # Entries, of which some hold several messages: each is confirmed once.
        self.published = 0
        self.confirmed = 0
        self.delivered = 0
        # What clients were refused, by the code that they were told.
        self.failures: Counter[ResponseCode] = Counter()
