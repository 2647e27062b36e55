"""The uncommitted work of a channel in tx mode (0-9-1 §1.9).

As in RabbitMQ, a transaction is a batch: publishes and acknowledgements take effect in order at commit, and
are forgotten at rollback.
"""

from collections.abc import Sequence

from warren.errors import PreconditionFailed
from warren.model.message import Message


class Transaction:
    """The uncommitted work of one channel."""

    __slots__ = ("_published", "_published_max", "_settlements", "settled")

    def __init__(self, published_max: int | None = None) -> None:
        self._published_max = published_max
        self._published: list[tuple[Message, bool]] = []
        self._settlements: list[tuple[list[int], int]] = []
        # The delivery tags that commit will settle; they must not be settled again.
        self.settled: set[int] = set()

    @property
    def published_count(self) -> int:
        """The number of uncommitted publishes."""
        return len(self._published)

    @property
    def published(self) -> Sequence[tuple[Message, bool]]:
        """The uncommitted publishes, each with True if it is mandatory."""
        return self._published

    def publish(self, message: Message, is_mandatory: bool) -> None:
        """Add a publish. PreconditionFailed beyond the maximum, with the text of RabbitMQ 4.3.6."""
        if self._published_max is not None and len(self._published) >= self._published_max:
            raise PreconditionFailed(
                f"transaction has reached the maximum of {self._published_max} uncommitted publishes"
            )
        self._published.append((message, is_mandatory))

    def settle(self, tags: list[int], how: int) -> None:
        """Add the settling of the deliveries with `tags`."""
        self._settlements.append((tags, how))
        self.settled.update(tags)

    def take(self) -> tuple[list[tuple[Message, bool]], list[tuple[list[int], int]]]:
        """Return all work and forget it: commit executes it, rollback drops it."""
        work = (self._published, self._settlements)
        self._published = []
        self._settlements = []
        self.settled = set()
        return work
