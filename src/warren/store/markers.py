"""Marks: what a store says of something that is no queue, and changes with messages or not at all."""


class CommitMarker:
    """The value that one key has, and the segment in which it says so last."""

    __slots__ = ("key", "segment", "value")

    def __init__(self, key: bytes, value: bytes, segment: int = 0) -> None:
        self.key = key
        self.value = value
        # 0 while it is in none.
        self.segment = segment


class CommitGroup:
    """Messages, by their places among those that are pending, that are to be there together with a mark."""

    __slots__ = ("end", "first", "marker", "value")

    def __init__(self, first: int, end: int, marker: CommitMarker) -> None:
        self.first = first
        self.end = end
        self.marker = marker
        # What the mark says from this group on; there may be a later one before it is written.
        self.value = marker.value
