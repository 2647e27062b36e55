"""What clients of a cluster and its nodes have told each other, and what must be true because of it.

Only what is certain is required: a request without an answer has happened or not, now or later.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from warren.wire.table import Table

NO_ROUTE = 312


class BrokenPromise(AssertionError):
    """A client of the cluster was promised something else."""


@dataclass(eq=False)
class KnownQueue:
    """A queue by its name, whichever node has it."""

    name: str
    is_durable: bool = True
    # The client whose connection it belongs to.
    owner: str = ""
    locator: str = ""
    # True for a quorum queue: its clients notice no failure of its home.
    is_quorum: bool = False
    # Its arguments beside those that say its kind and where its home is.
    arguments: Table = field(default_factory=dict)
    # True once what is in it may be lost: a deletion was not answered, or its home is gone for good.
    is_uncertain: bool = False
    # How often its home has ended, and has lost its power.
    deaths: int = 0
    power_losses: int = 0
    # Deletions and purges under way, and how often one was sent or answered.
    removals: int = 0
    generation: int = 0
    # How many basic.get nobody waits for any more: what each has taken returns without a mark, and may then
    # come behind what was delivered meanwhile.
    withdrawn_gets: int = 0
    messages: "list[SentMessage]" = field(default_factory=list, repr=False)

    def end(self) -> None:
        """What was sent to it so far may be gone."""
        self.generation += 1
        for message in self.messages:
            message.is_safe = False


@dataclass(eq=False)
class SentMessage:
    """One message, and what is known of it."""

    id: int
    queue: KnownQueue
    publisher: str
    is_persistent: bool
    is_mandatory: bool
    # True while it must be in its queue if it is confirmed, and nobody has settled it.
    is_safe: bool
    # The deaths and power losses of the home when it was sent, and when it was delivered last.
    deaths: int
    is_confirmed: bool = False
    is_refused: bool = False
    is_returned: bool = False
    is_settled: bool = False
    delivered_at: int | None = None

    @property
    def is_required(self) -> bool:
        """True if it must be in its queue."""
        queue = self.queue
        is_kept = queue.is_quorum or (
            queue.is_durable and (self.is_persistent or queue.deaths == self.deaths)
        )
        is_there = self.is_confirmed and not (self.is_settled or self.is_returned)
        return is_there and self.is_safe and is_kept and not queue.is_uncertain


class ClusterHistory:
    """All queues and messages, and how often each thing has happened."""

    def __init__(self, queues: list[KnownQueue]) -> None:
        self.queues = {queue.name: queue for queue in queues}
        self.messages: dict[int, SentMessage] = {}
        self.counts: Counter[str] = Counter()
        # All that happened, in order, so that two runs can be compared.
        self.lines: list[str] = []
        # True if a clock was set forward by more than the consumer timeout.
        self.has_consumer_timeouts = False
        # True for a quorum queue that the members have given up.
        self.is_given_up: Callable[[KnownQueue], bool] = lambda _: False
        # The last message that came for the first time, by consumer and publisher.
        self._latest: dict[tuple[object, str], int] = {}

    def note(self, line: str) -> None:
        """Append to what has happened."""
        self.lines.append(line)

    def sent(
        self, queue: KnownQueue, publisher: str, *, is_persistent: bool, is_mandatory: bool, is_known: bool
    ) -> SentMessage:
        """A client sends a message; `is_known` is True if its node certainly has the queue."""
        is_safe = is_known and not queue.removals
        message = SentMessage(
            len(self.messages) + 1, queue, publisher, is_persistent, is_mandatory, is_safe, queue.deaths
        )
        self.messages[message.id] = message
        queue.messages.append(message)
        self.counts["sent"] += 1
        return message

    def answered(self, message: SentMessage, *, is_ack: bool) -> None:
        """A client was told what became of a message, which happens once."""
        if message.is_confirmed or message.is_refused:
            raise BrokenPromise(f"message {message.id} is answered twice")
        # A node that may not know the queue refuses while it cannot ask the others.
        is_kept_trying = message.queue.is_quorum and message.is_safe and not message.queue.is_uncertain
        if not is_ack and is_kept_trying and not self.is_given_up(message.queue):
            raise BrokenPromise(f"message {message.id} for {message.queue.name!r} is refused")
        message.is_confirmed, message.is_refused = is_ack, not is_ack
        self.counts["confirmed" if is_ack else "refused"] += 1

    def returned(self, id: int, code: int) -> None:
        """A message came back, because it is nowhere."""
        message = self.messages[id]
        if not message.is_mandatory or message.is_returned or code != NO_ROUTE:
            raise BrokenPromise(f"message {id} is returned with {code}")
        if message.is_confirmed or message.is_refused:
            raise BrokenPromise(f"message {id} is returned after it was answered")
        if message.delivered_at is not None:
            raise BrokenPromise(f"message {id} is returned, and was delivered")
        message.is_returned = True
        self.counts["returned"] += 1

    def delivered(self, id: int, queue: KnownQueue, consumer: object, *, is_again: bool) -> SentMessage:
        """A message has arrived at a consumer, or was got."""
        message = self.messages[id]
        if message.queue is not queue:
            raise BrokenPromise(f"message {id} for {message.queue.name!r} is delivered from {queue.name!r}")
        if message.is_returned:
            raise BrokenPromise(f"message {id} is delivered, and was returned")
        self.counts["delivered"] += 1
        self.counts["again"] += is_again
        if is_again:
            return message
        was_delivered = message.delivered_at is not None
        if message.delivered_at == queue.power_losses or (queue.is_quorum and was_delivered):
            raise BrokenPromise(f"message {id} of {queue.name!r} was delivered before, and is not marked")
        message.delivered_at = queue.power_losses
        key = (consumer, message.publisher)
        latest = self._latest.get(key, 0)
        if latest > id and consumer is not None:
            if queue.withdrawn_gets:
                queue.withdrawn_gets -= 1
                return message
            raise BrokenPromise(f"message {id} of {queue.name!r} comes behind {latest} of its publisher")
        self._latest[key] = id
        return message

    def home_ended(self, names: list[str], *, is_power_lost: bool) -> None:
        """A home has ended, or has lost what it had not synced."""
        for name in names:
            queue = self.queues.get(name)
            if queue is not None:
                queue.deaths += 1
                queue.power_losses += is_power_lost

    def home_gone(self, names: list[str]) -> None:
        """A home is gone for good, with what was in its queues."""
        for name in names:
            queue = self.queues.get(name)
            if queue is not None:
                queue.is_uncertain = True

    def check_nothing_is_lost(self) -> None:
        """Everything was taken out of all queues: each message that had to be there was."""
        lost = [message for message in self.messages.values() if message.is_required]
        if lost:
            raise BrokenPromise(f"{len(lost)} messages were confirmed and are lost, as {lost[0]}")
