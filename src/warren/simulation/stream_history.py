"""What clients of a simulated broker have been told of a stream: which message is at which offset."""

from warren.simulation.violation import Violation


class StreamHistory:
    """The messages of one stream by offset, as far as a consumer has got them.

    What was delivered at an offset is there until the stream is deleted: no crash may put anything else in
    its place. While a deletion is under way, the offsets may be those of this stream or of the next one.
    """

    def __init__(self, name: str, *, is_trimmed: bool) -> None:
        """The stream `name` is empty; if it `is_trimmed`, its oldest messages may go."""
        self._name = name
        self._is_trimmed = is_trimmed
        self._at: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        # The offset that each consumer must get next; before its first delivery, the one that it asked for.
        self._next: dict[object, int] = {}
        # True from a request to delete it until nothing is under way.
        self._is_ending = False

    def ending(self) -> None:
        """A client deletes the stream."""
        self._is_ending = True
        self._at.clear()
        self._offsets.clear()
        self._next.clear()

    def at_rest(self) -> None:
        """Nothing is under way: all offsets are those of one stream."""
        self._is_ending = False

    def attached(self, consumer: object, first: int) -> None:
        """`consumer` asks for the offset `first` and all behind it."""
        if not self._is_ending:
            self._next[consumer] = first

    def delivered(self, consumer: object, offset: int, id: int, *, may_repeat: bool = False) -> None:
        """The broker has written the message `id`, at `offset`, to `consumer`.

        It may be at several offsets if it `may_repeat`.
        """
        if self._is_ending:
            return
        expected = self._next.get(consumer)
        if expected is not None and (offset < expected if self._is_trimmed else offset != expected):
            raise Violation(f"stream '{self._name}' delivers offset {offset} instead of {expected}")
        self._next[consumer] = offset + 1
        if self._at.setdefault(offset, id) != id:
            raise Violation(
                f"offset {offset} of stream '{self._name}' has message {id}; it had {self._at[offset]}"
            )
        if self._offsets.setdefault(id, offset) != offset and not may_repeat:
            raise Violation(
                f"message {id} of stream '{self._name}' is at offsets {self._offsets[id]} and {offset}"
            )

    def inspected(self, count: int) -> None:
        """A consumer has read the whole stream, which has `count` messages."""
        last = max(self._at, default=-1)
        if last >= count and not self._is_trimmed:
            raise Violation(
                f"stream '{self._name}' ends at offset {count}; message {self._at[last]} was at {last}"
            )

    @property
    def length(self) -> int:
        """The number of offsets up to the last one that was delivered."""
        return max(self._at, default=-1) + 1
