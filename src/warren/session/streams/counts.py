"""Counters of the stream protocol since the start of the node; they only grow."""

from collections import Counter

from warren.wire.streams.codes import ResponseCode


class StreamCounts:
    """The counters of all stream connections of a broker; each component increments its own."""

    __slots__ = ("confirmed", "delivered", "failures", "published")

    def __init__(self) -> None:
        # Entries, of which some contain several messages: each is confirmed once.
        self.published = 0
        self.confirmed = 0
        self.delivered = 0
        # Refused requests by response code.
        self.failures: Counter[ResponseCode] = Counter()
