"""Moves messages from one queue to others, and settles them when the destinations have stored them.

    scan ─ selected ─▶ route ─ take out of the queue ─▶ publish ─ stored, as a confirm says ─▶ released
                         └─ cannot be moved: stays, and the reason is counted

Invariants: a message is released only after every destination has stored it as durably as it will be; until
then it is out of the queue but still on disk for it. So after a crash it may be in both queues, and is never
in none. A message that cannot be moved is not taken out. Messages are moved in queue order.
"""

from collections.abc import Callable
from typing import Protocol

from warren.errors import AmqpError, Undecided
from warren.limits import (
    MOVES_IN_FLIGHT_MAX,
    MOVES_IN_FLIGHT_SIZE_MAX,
    PREVIEW_MESSAGES_MAX,
    PREVIEW_REASONS_MAX,
)
from warren.model.confirm_listener import ConfirmListener
from warren.queues.capabilities import taking_queue
from warren.queues.queue import REFUSED, Delivery, PeekedMessage
from warren.queues.taking_queue import TakingQueue
from warren.vhost.move_router import CannotMove, MoveRoute, MoveRouter
from warren.vhost.queue_scan import QueueScan, SelectionScan
from warren.vhost.undo_log import UndoLog
from warren.vhost.vhost import ROUTED, VirtualHost

OTHER_REASONS = "other reasons"
REFUSED_AFTER_ALL = "a queue refused it"


class MessageFilter(Protocol):
    """Selects the messages that are to be moved."""

    def __call__(self, peeked: PeekedMessage, /) -> bool:
        """True if `peeked` is to be moved."""


class MoveFailures:
    """Messages that could not be moved: their number by reason, and the places of the first."""

    __slots__ = ("count", "places", "reasons")

    def __init__(self) -> None:
        self.count = 0
        # Reason -> number of messages; and reason -> the places of some.
        self.reasons: dict[str, int] = {}
        self.places: dict[str, list[int]] = {}

    def add(self, reason: str, place: int) -> None:
        """Record that the message at `place` was not moved, for `reason`."""
        self.count += 1
        if reason not in self.reasons and len(self.reasons) >= PREVIEW_REASONS_MAX:
            reason = OTHER_REASONS
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        places = self.places.setdefault(reason, [])
        if len(places) < PREVIEW_MESSAGES_MAX:
            places.append(place)


class MessageMove(ConfirmListener):
    """A move of messages from one queue."""

    def __init__(
        self,
        source: TakingQueue,
        target: VirtualHost,
        queue_scan: QueueScan | SelectionScan,
        *,
        fits: MessageFilter,
        move_router: MoveRouter,
    ) -> None:
        self.source = source
        self.queue_scan = queue_scan
        # Called when a message in flight was stored.
        self.wake: Callable[[], None] = _nobody
        self.move_failures = MoveFailures()
        # Records where messages went, if the move can be undone.
        self.undo_log: UndoLog | None = None
        self.moved_count = 0
        # The number of messages sent, which is also the number of the last one.
        self.sent_count = 0
        self._target = target
        self._fits = fits
        self._move_router = move_router
        # Number -> the delivery taken from the source, and the number of confirms that are due.
        self._in_flight: dict[int, tuple[Delivery, list[int]]] = {}
        self._bytes_in_flight = 0
        # The message with which the next call of `move` begins: its permission had to be decided first.
        self._postponed: PeekedMessage | None = None

    @property
    def in_flight_count(self) -> int:
        """The number of messages that were sent and are not stored yet."""
        return len(self._in_flight)

    @property
    def is_full(self) -> bool:
        """True if so many messages are in flight that no more may be sent."""
        return (
            self._bytes_in_flight >= MOVES_IN_FLIGHT_SIZE_MAX or len(self._in_flight) >= MOVES_IN_FLIGHT_MAX
        )

    def move(self, look_max: int, send_max: int) -> None:
        """Examine up to `look_max` more messages, and send up to `send_max` of them.

        Raises Undecided if a permission has to be decided before it is called again.
        """
        sent_max = self.sent_count + send_max
        if send_max <= 0 or self.is_full:
            return
        postponed, self._postponed = self._postponed, None
        if postponed is not None:
            self._send(postponed)
        for peeked in self.queue_scan.next_messages(look_max):
            if self._fits(peeked):
                self._send(peeked)
                if self.sent_count >= sent_max or self.is_full:
                    return

    def give_back(self) -> None:
        """Return all messages in flight to their places in the source; called when the target is gone."""
        under_way, self._in_flight = self._in_flight, {}
        self._bytes_in_flight = 0
        for delivery, _ in under_way.values():
            self.source.give_back(delivery)
        self.source.pump()

    def expect(self, sequence: int) -> None:
        """Expect one more confirm for number `sequence`."""
        self._in_flight[sequence][1][0] += 1

    def done(self, first: int, last: int) -> None:
        """Count one confirm for each number from `first` to `last`."""
        for number in range(first, last + 1):
            found = self._in_flight.get(number)
            if found is None:
                continue  # It was returned to the source.
            delivery, due = found
            due[0] -= 1
            if not due[0]:
                del self._in_flight[number]
                self._bytes_in_flight -= delivery.byte_count
                self.moved_count += 1
                self.source.release(delivery)
        self.wake()

    def refused(self, sequence: int) -> None:
        """A destination refused the message, which is returned to the source."""
        found = self._in_flight.pop(sequence, None)
        if found is not None:
            self._bytes_in_flight -= found[0].byte_count
            self.source.give_back(found[0])
            self.source.pump()
        self.wake()

    def _send(self, peeked: PeekedMessage) -> None:
        try:
            route = self._move_router.route(peeked.message, self.sent_count + 1)
        except CannotMove as stays:
            self.move_failures.add(str(stays), peeked.place)
            return
        except Undecided:
            self._postponed = peeked
            raise
        except AmqpError as error:
            self.move_failures.add(error.message, peeked.place)
            return
        delivery = self.source.take(peeked)
        if delivery is None:
            return  # It left meanwhile, for example by the overflow of a queue on the way.
        self.sent_count += 1
        # One more confirm is due until the message was published to all destinations.
        self._in_flight[self.sent_count] = delivery, [1]
        self._bytes_in_flight += delivery.byte_count
        if self._publish(route) & REFUSED:
            # The queue has just filled up, perhaps by a copy: a duplicate is better than a loss.
            self.move_failures.add(REFUSED_AFTER_ALL, peeked.place)
            self.refused(self.sent_count)
        else:
            self.done(self.sent_count, self.sent_count)

    def _publish(self, route: MoveRoute) -> int:
        outcome = ROUTED
        if route.is_routed:
            outcome = self._target.publish_routed(route.destinations, route.message, self, self.sent_count)
        elif route.destinations:
            outcome = self._target.publish_to_queues(route.destinations, route.message, self, self.sent_count)
        if self.undo_log is not None:
            for queue in filter(None, map(taking_queue, route.destinations)):
                self.undo_log.add(queue.name, queue.last_place(route.message))
        return outcome


def _nobody() -> None:
    """The default callback, which does nothing."""
