"""Commit markers: named values that are stored together with a group of messages, atomically."""


class CommitMarker:
    """The current value of one key, and the segment that holds its latest record."""

    __slots__ = ("key", "segment", "value")

    def __init__(self, key: bytes, value: bytes, segment: int = 0) -> None:
        self.key = key
        self.value = value
        # 0 while no segment holds it.
        self.segment = segment


class CommitGroup:
    """A range of pending messages that are stored atomically together with the value of a marker."""

    __slots__ = ("end", "first", "marker", "value")

    def __init__(self, first: int, end: int, marker: CommitMarker) -> None:
        self.first = first
        self.end = end
        self.marker = marker
        # The value as of this group; the marker may have a later one before the group is written.
        self.value = marker.value
