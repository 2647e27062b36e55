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
    MESSAGES_NAMED_MAX,
    MOVED_AT_ONCE_MAX,
    MOVED_AT_ONCE_SIZE_MAX,
    REASONS_TOLD_MAX,
)
from warren.model.confirmation import Confirmation
from warren.queues.classic import ClassicQueue
from warren.queues.queue import REFUSED, Delivery, Peeked
from warren.vhost.looking import Chosen, Looking
from warren.vhost.trail import Trail
from warren.vhost.vhost import ROUTED, VirtualHost
from warren.vhost.ways import Stays, Way, Ways

OTHER_REASONS = "other reasons"
REFUSED_AFTER_ALL = "a queue refused it"


class Fits(Protocol):
    """Whether a message is one of those that are to be moved."""

    def __call__(self, peeked: Peeked, /) -> bool:
        """True if it is."""


class Staying:
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
        if reason not in self.reasons and len(self.reasons) >= REASONS_TOLD_MAX:
            reason = OTHER_REASONS
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        places = self.places.setdefault(reason, [])
        if len(places) < MESSAGES_NAMED_MAX:
            places.append(place)


class Moving(Confirmation):
    """Messages of one queue on their way."""

    def __init__(
        self,
        source: ClassicQueue,
        target: VirtualHost,
        looking: Looking | Chosen,
        *,
        fits: Fits,
        ways: Ways,
    ) -> None:
        self.source = source
        self.looking = looking
        # Called when something that was under way is safe.
        self.wake: Callable[[], None] = _nobody
        self.staying = Staying()
        # Filled, if somebody wants to take messages back.
        self.trail: Trail | None = None
        self.moved_count = 0
        # Those that were sent, moved or not yet; the number of the last.
        self.sent_count = 0
        self._target = target
        self._fits = fits
        self._ways = ways
        # Number -> what was taken out, and how many answers are due for it.
        self._under_way: dict[int, tuple[Delivery, list[int]]] = {}
        self._octets = 0

    @property
    def under_way_count(self) -> int:
        """How many were sent and are not safe yet."""
        return len(self._under_way)

    @property
    def is_full(self) -> bool:
        """True if so many are under way that no more may be."""
        return self._octets >= MOVED_AT_ONCE_SIZE_MAX or len(self._under_way) >= MOVED_AT_ONCE_MAX

    def move(self, look_max: int, send_max: int) -> None:
        """Look at `look_max` messages more at most, and send `send_max` of them at most."""
        sent_max = self.sent_count + send_max
        if send_max <= 0 or self.is_full:
            return
        for peeked in self.looking.look(look_max):
            if self._fits(peeked):
                self._send(peeked)
                if self.sent_count >= sent_max or self.is_full:
                    return

    def give_back(self) -> None:
        """Whoever was to have what is under way is gone: it waits again where it did."""
        under_way, self._under_way = self._under_way, {}
        self._octets = 0
        for delivery, _ in under_way.values():
            self.source.give_back(delivery)
        self.source.pump()

    def expect(self, sequence: int) -> None:
        """One more answer is due for number `sequence`."""
        self._under_way[sequence][1][0] += 1

    def done(self, first: int, last: int) -> None:
        """One of the answers due for each number from `first` to `last`: it is safe."""
        for number in range(first, last + 1):
            found = self._under_way.get(number)
            if found is None:
                continue  # It was given back.
            delivery, due = found
            due[0] -= 1
            if not due[0]:
                del self._under_way[number]
                self._octets -= delivery.octets
                self.moved_count += 1
                self.source.let_go(delivery)
        self.wake()

    def refused(self, sequence: int) -> None:
        """It is not safe, and never will be: as if it had not been sent."""
        found = self._under_way.pop(sequence, None)
        if found is not None:
            self._octets -= found[0].octets
            self.source.give_back(found[0])
            self.source.pump()
        self.wake()

    def _send(self, peeked: Peeked) -> None:
        try:
            way = self._ways.way(peeked.message, self.sent_count + 1)
        except Stays as stays:
            self.staying.add(str(stays), peeked.place)
            return
        except AmqpError as error:
            self.staying.add(error.message, peeked.place)
            return
        delivery = self.source.take(peeked)
        if delivery is None:
            return  # It left meanwhile, as by the overflow of a queue on the way.
        self.sent_count += 1
        # Until it is published everywhere, one more answer is due.
        self._under_way[self.sent_count] = delivery, [1]
        self._octets += delivery.octets
        if self._publish(way) == REFUSED:
            # One filled up just now, perhaps by what it had died of in another: better twice than never.
            self.staying.add(REFUSED_AFTER_ALL, peeked.place)
            self.refused(self.sent_count)
        else:
            self.done(self.sent_count, self.sent_count)

    def _publish(self, way: Way) -> int:
        outcome = ROUTED
        if way.is_routed:
            outcome = self._target.publish_to(way.destinations, way.message, self, self.sent_count)
        elif way.destinations:
            outcome = self._target.publish_into(way.destinations, way.message, self, self.sent_count)
        if self.trail is not None:
            for queue in way.destinations:
                if isinstance(queue, ClassicQueue):
                    self.trail.add(queue.name, queue.last_place(way.message))
        return outcome


def _nobody() -> None:
    """Before somebody wants to be told."""
