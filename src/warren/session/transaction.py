"""What a channel in tx mode holds back until commit (0-9-1 §1.9).

As in RabbitMQ, a transaction is a batch: publishes and acknowledgements take effect in order at commit, and
are forgotten at rollback.
"""

from warren.model.message import Message


class Transaction:
    """The uncommitted work of one channel."""

    __slots__ = ("_published", "_settlements", "settled")

    def __init__(self) -> None:
        self._published: list[tuple[Message, bool]] = []
        self._settlements: list[tuple[list[int], int]] = []
        # The delivery tags that commit will settle: they may not be settled again.
        self.settled: set[int] = set()

    @property
    def published_count(self) -> int:
        """How many publishes are held back."""
        return len(self._published)

    def publish(self, message: Message, is_mandatory: bool) -> None:
        """Hold a publish back."""
        self._published.append((message, is_mandatory))

    def settle(self, tags: list[int], how: int) -> None:
        """Hold the settling of the deliveries with `tags` back."""
        self._settlements.append((tags, how))
        self.settled.update(tags)

    def take(self) -> tuple[list[tuple[Message, bool]], list[tuple[list[int], int]]]:
        """All that was held back, which is forgotten here: at commit it is done, at rollback dropped."""
        work = (self._published, self._settlements)
        self._published = []
        self._settlements = []
        self.settled = set()
        return work
