"""Moves messages: out of a queue, by their ways to others, and away when these have them safely.

    looking ─ fits ─▶ way ─ take out of the queue ─▶ publish ─ safe there, as a confirm says ─▶ let go of
                        └─ cannot go: stays, and the reason is counted

Invariants: a message is let go of only after every queue that it went to has it as safely as it is going to
be; until then it is out of the line, and the disk has it for its own queue. So after a crash it may be in
both, and is never in none. What cannot go is not taken out. They go in the order in which they waited.
"""

from collections.abc import Callable
from typing import Protocol

from warren.errors import AmqpError
from warren.limits import (
    MOVES_IN_FLIGHT_MAX,
    MOVES_IN_FLIGHT_SIZE_MAX,
    PREVIEW_MESSAGES_MAX,
    PREVIEW_REASONS_MAX,
)
from warren.model.confirm_listener import ConfirmListener
from warren.queues.classic import ClassicQueue
from warren.queues.queue import REFUSED, Delivery, PeekedMessage
from warren.vhost.move_router import CannotMove, MoveRoute, MoveRouter
from warren.vhost.queue_scan import QueueScan, SelectionScan
from warren.vhost.undo_log import UndoLog
from warren.vhost.vhost import ROUTED, VirtualHost

OTHER_REASONS = "other reasons"
REFUSED_AFTER_ALL = "a queue refused it"


class MessageFilter(Protocol):
    """Whether a message is one of those that are to be moved."""

    def __call__(self, peeked: PeekedMessage, /) -> bool:
        """True if it is."""


class MoveFailures:
    """Why messages could not go, how many, and where the first of them are."""

    __slots__ = ("count", "places", "reasons")

    def __init__(self) -> None:
        self.count = 0
        # Reason -> how many; and the places of some.
        self.reasons: dict[str, int] = {}
        self.places: dict[str, list[int]] = {}

    def add(self, reason: str, place: int) -> None:
        """The message at `place` stays, for `reason`."""
        self.count += 1
        if reason not in self.reasons and len(self.reasons) >= PREVIEW_REASONS_MAX:
            reason = OTHER_REASONS
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        places = self.places.setdefault(reason, [])
        if len(places) < PREVIEW_MESSAGES_MAX:
            places.append(place)


class MessageMove(ConfirmListener):
    """Messages of one queue on their way."""

    def __init__(
        self,
        source: ClassicQueue,
        target: VirtualHost,
        queue_scan: QueueScan | SelectionScan,
        *,
        fits: MessageFilter,
        move_router: MoveRouter,
    ) -> None:
        self.source = source
        self.queue_scan = queue_scan
        # Called when something that was under way is safe.
        self.wake: Callable[[], None] = _nobody
        self.move_failures = MoveFailures()
        # Filled, if somebody wants to take messages back.
        self.undo_log: UndoLog | None = None
        self.moved_count = 0
        # Those that were sent, moved or not yet; the number of the last.
        self.sent_count = 0
        self._target = target
        self._fits = fits
        self._move_router = move_router
        # Number -> what was taken out, and how many answers are due for it.
        self._in_flight: dict[int, tuple[Delivery, list[int]]] = {}
        self._octets = 0

    @property
    def in_flight_count(self) -> int:
        """How many were sent and are not safe yet."""
        return len(self._in_flight)

    @property
    def is_full(self) -> bool:
        """True if so many are under way that no more may be."""
        return self._octets >= MOVES_IN_FLIGHT_SIZE_MAX or len(self._in_flight) >= MOVES_IN_FLIGHT_MAX

    def move(self, look_max: int, send_max: int) -> None:
        """Look at `look_max` messages more at most, and send `send_max` of them at most."""
        sent_max = self.sent_count + send_max
        if send_max <= 0 or self.is_full:
            return
        for peeked in self.queue_scan.next_messages(look_max):
            if self._fits(peeked):
                self._send(peeked)
                if self.sent_count >= sent_max or self.is_full:
                    return

    def give_back(self) -> None:
        """Whoever was to have what is under way is gone: it waits again where it did."""
        under_way, self._in_flight = self._in_flight, {}
        self._octets = 0
        for delivery, _ in under_way.values():
            self.source.give_back(delivery)
        self.source.pump()

    def expect(self, sequence: int) -> None:
        """One more answer is due for number `sequence`."""
        self._in_flight[sequence][1][0] += 1

    def done(self, first: int, last: int) -> None:
        """One of the answers due for each number from `first` to `last`: it is safe."""
        for number in range(first, last + 1):
            found = self._in_flight.get(number)
            if found is None:
                continue  # It was given back.
            delivery, due = found
            due[0] -= 1
            if not due[0]:
                del self._in_flight[number]
                self._octets -= delivery.octets
                self.moved_count += 1
                self.source.release(delivery)
        self.wake()

    def refused(self, sequence: int) -> None:
        """It is not safe, and never will be: as if it had not been sent."""
        found = self._in_flight.pop(sequence, None)
        if found is not None:
            self._octets -= found[0].octets
            self.source.give_back(found[0])
            self.source.pump()
        self.wake()

    def _send(self, peeked: PeekedMessage) -> None:
        try:
            route = self._move_router.route(peeked.message, self.sent_count + 1)
        except CannotMove as stays:
            self.move_failures.add(str(stays), peeked.place)
            return
        except AmqpError as error:
            self.move_failures.add(error.message, peeked.place)
            return
        delivery = self.source.take(peeked)
        if delivery is None:
            return  # It left meanwhile, as by the overflow of a queue on the way.
        self.sent_count += 1
        # Until it is published everywhere, one more answer is due.
        self._in_flight[self.sent_count] = delivery, [1]
        self._octets += delivery.octets
        if self._publish(route) == REFUSED:
            # One filled up just now, perhaps by what it had died of in another: better twice than never.
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
            for queue in route.destinations:
                if isinstance(queue, ClassicQueue):
                    self.undo_log.add(queue.name, queue.last_place(route.message))
        return outcome


def _nobody() -> None:
    """Before somebody wants to be told."""
