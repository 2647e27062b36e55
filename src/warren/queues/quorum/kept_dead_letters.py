"""The dead letters of a quorum queue that are kept until all their targets have confirmed them.

    dies ─ hold committed ─▶ waiting ─ sent: at most 32 ─▶ confirmed by all targets ─▶ settled
                                  └─ no target, or one refused ─ 3 minutes, or a route changes ─▶ sent again

A message that died is not ready any more. It is settled only after every queue that its dead letter was
routed to has stored it as durably as it will be, so a crash at any point loses none; it may then be in a
target twice. A target that has confirmed it does not get it again when another one refused. What waits for
another attempt counts as sent, so that the order is kept as far as it can be (RabbitMQ 3.10.8).
"""

from collections import deque
from typing import Protocol

from warren.errors import AmqpError
from warren.limits_raft import DEAD_LETTERS_RETRIED_MS, DEAD_LETTERS_SENT_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.queue import REFUSED, Delivery, Queue, QueueHost
from warren.queues.quorum.quarantined_messages import drop_stored_body


class DeadLetterSource(Protocol):
    """The queue, as its dead letters see it."""

    @property
    def keeps_dead_letters(self) -> bool:
        """False if they are to be published at most once from now on."""

    def whole(self, delivery: Delivery) -> Message:
        """The message of `delivery` with its body."""

    def route_dead_letter(self, message: Message, reason: str) -> tuple[Message, list[Queue]] | None:
        """The dead letter that `message` becomes, and its targets; None if it has none."""

    def dead_letter_confirmed(self, delivery: Delivery) -> None:
        """Settle `delivery`, which all targets have confirmed."""

    def dead_letter_once(self, delivery: Delivery, reason: str) -> None:
        """Publish the dead letter of `delivery` at most once, and settle it."""


class KeptDeadLetter:
    """A message that died, and what has become of its dead letter."""

    __slots__ = ("confirmed", "delivery", "due_count", "has_failed", "reason")

    def __init__(self, delivery: Delivery, reason: str) -> None:
        self.delivery = delivery
        self.reason = reason
        # The targets that have confirmed it, and the number of those that will answer.
        self.confirmed: set[Queue] = set()
        self.due_count = 0
        # True if it had no target in the latest attempt, or one refused it.
        self.has_failed = False


class SentDeadLetter:
    """A publish of a dead letter to one target."""

    __slots__ = ("dead_letter", "due_count", "is_refused", "target")

    def __init__(self, dead_letter: KeptDeadLetter, target: Queue) -> None:
        self.dead_letter = dead_letter
        self.target = target
        # One more answer is due until the publish has returned.
        self.due_count = 1
        self.is_refused = False


class KeptDeadLetters(ConfirmListener):
    """The dead letters of one queue, from the death to the last confirm."""

    def __init__(self, source: DeadLetterSource, host: QueueHost) -> None:
        self._source = source
        self._host = host
        # The number of messages, and the size of their bodies.
        self.count = 0
        self.byte_count = 0
        # Those whose death is not agreed on yet, those to be sent, and those that were sent, in order.
        self._dying: deque[KeptDeadLetter] = deque()
        self._waiting: deque[KeptDeadLetter] = deque()
        self._sent: dict[KeptDeadLetter, None] = {}
        # Sequence -> the publish to one target.
        self._publishes: dict[int, SentDeadLetter] = {}
        self._sequence = 0
        self._is_forwarding = False
        # The time for which the host was asked to wake it; -1 if it was not.
        self._retried_at = -1

    def add(self, delivery: Delivery, reason: str) -> None:
        """Keep `delivery`, which has died for `reason`; `agreed` follows when that is agreed on."""
        if len(self._dying) + len(self._waiting) >= DEAD_LETTERS_SENT_MAX:
            drop_stored_body(delivery)
        self._dying.append(KeptDeadLetter(delivery, reason))
        self.count += 1
        self.byte_count += delivery.byte_count

    def restore(self, delivery: Delivery, reason: str) -> None:
        """Keep `delivery`, which died for `reason` in an earlier run."""
        self.add(delivery, reason)
        self._waiting.append(self._dying.pop())

    def agreed(self) -> None:
        """The death of the first message whose death was not agreed on is agreed on."""
        if self._dying:
            self._waiting.append(self._dying.popleft())
            self.forward()

    def forward(self) -> None:
        """Send as many of those that wait as may be sent."""
        if self._is_forwarding:
            return
        self._is_forwarding = True
        try:
            while self._waiting and len(self._sent) < DEAD_LETTERS_SENT_MAX:
                dead_letter = self._waiting.popleft()
                self._sent[dead_letter] = None
                self._send(dead_letter)
        finally:
            self._is_forwarding = False

    def wake(self) -> None:
        """Have those that failed sent again soon, in a turn of its own."""
        self._retry_by(self._host.turn.now())

    def failed(self, error: Exception) -> None:
        """End the queue, since an answer of a target, or a wake-up, has raised `error`."""
        self._host.end_failed(self._source, error)  # type: ignore[arg-type]

    def expire(self) -> None:
        """Handle a wake-up: send what has failed again, and what waits."""
        self._retried_at = -1
        while self._dying:
            # Nobody has to agree with a queue in memory.
            self._waiting.append(self._dying.popleft())
        for dead_letter in list(self._sent):
            if not dead_letter.due_count:
                self._send(dead_letter)
        self.forward()

    def publish_once(self) -> None:
        """Publish those that no target has at most once, since the strategy has changed.

        Those that are sent are settled when that has ended.
        """
        under_way = [each for each in self._sent if each.due_count]
        others = [each for each in self._sent if not each.due_count]
        others += [*self._waiting, *self._dying]
        self._dying.clear()
        self._waiting.clear()
        self._sent = dict.fromkeys(under_way)
        for dead_letter in others:
            self._uncount(dead_letter)
            self._source.dead_letter_once(dead_letter.delivery, dead_letter.reason)

    def clear(self) -> list[Delivery]:
        """Forget all, since the queue is deleted; returns their deliveries."""
        found = [each.delivery for each in (*self._sent, *self._waiting, *self._dying)]
        self._sent.clear()
        self._waiting.clear()
        self._dying.clear()
        self._publishes.clear()
        self.count = self.byte_count = 0
        self._host.retry_dead_letters(self, -1)
        return found

    # --- as a listener of confirms ----------------------------------------------------------------

    def expect(self, sequence: int) -> None:
        """Expect one more answer for publish `sequence`."""
        self._publishes[sequence].due_count += 1

    def done(self, first: int, last: int) -> None:
        """Count one answer for each publish from `first` to `last`."""
        for sequence in range(first, last + 1):
            self._answered(sequence)
        self.forward()

    def refused(self, sequence: int) -> None:
        """The target of publish `sequence` has not stored it."""
        publish = self._publishes.get(sequence)
        if publish is not None:
            publish.is_refused = True
            self._answered(sequence)

    # --- private ----------------------------------------------------------------------------------

    def _send(self, dead_letter: KeptDeadLetter) -> None:
        """Publish to all targets that have not confirmed it."""
        dead_letter.has_failed = False
        # One more is due until it was published to all.
        dead_letter.due_count = 1
        source = self._source
        try:
            routed = source.route_dead_letter(source.whole(dead_letter.delivery), dead_letter.reason)
        except AmqpError:
            # It cannot be read, which was reported.
            routed = None
        if routed is None:
            # Routes that are gone need no confirm if others have given one.
            dead_letter.has_failed = not dead_letter.confirmed
        else:
            message, targets = routed
            for target in targets:
                if target not in dead_letter.confirmed:
                    self._publish(SentDeadLetter(dead_letter, target), message)
        self._end_attempt(dead_letter)

    def _publish(self, publish: SentDeadLetter, message: Message) -> None:
        publish.dead_letter.due_count += 1
        self._sequence += 1
        sequence = self._sequence
        self._publishes[sequence] = publish
        outcome = publish.target.publish(message, self, sequence)
        publish.target.count_broker_published()
        if outcome & REFUSED:
            publish.is_refused = True
            publish.due_count = 1
        self._answered(sequence)

    def _answered(self, sequence: int) -> None:
        publish = self._publishes.get(sequence)
        if publish is None:
            # The queue was deleted meanwhile.
            return
        publish.due_count -= 1
        if publish.due_count:
            return
        del self._publishes[sequence]
        if publish.is_refused:
            publish.dead_letter.has_failed = True
        else:
            publish.dead_letter.confirmed.add(publish.target)
        self._end_attempt(publish.dead_letter)

    def _end_attempt(self, dead_letter: KeptDeadLetter) -> None:
        """Count one end of a publish; after the last the message is settled, or waits for another attempt."""
        dead_letter.due_count -= 1
        if dead_letter.due_count or dead_letter not in self._sent:
            return
        source = self._source
        if not dead_letter.has_failed:
            del self._sent[dead_letter]
            self._uncount(dead_letter)
            self._host.confirmed_dead_letters += 1
            source.dead_letter_confirmed(dead_letter.delivery)
        elif source.keeps_dead_letters:
            drop_stored_body(dead_letter.delivery)
            self._retry_by(self._host.turn.now() + DEAD_LETTERS_RETRIED_MS)
        else:
            del self._sent[dead_letter]
            self._uncount(dead_letter)
            source.dead_letter_once(dead_letter.delivery, dead_letter.reason)

    def _uncount(self, dead_letter: KeptDeadLetter) -> None:
        self.count -= 1
        self.byte_count -= dead_letter.delivery.byte_count

    def _retry_by(self, when: int) -> None:
        if self._retried_at < 0 or when < self._retried_at:
            self._retried_at = when
            self._host.retry_dead_letters(self, when)
