"""What would go where if messages were moved now, and what could not: nothing changes."""

from dataclasses import dataclass

from warren.errors import AmqpError
from warren.limits import DESTINATIONS_TOLD_MAX
from warren.queues.local import LocalQueue
from warren.queues.queue import Peeked
from warren.vhost.looking import Chosen, Looking
from warren.vhost.moving import Fits, Staying
from warren.vhost.ways import Stays, Way, Ways


@dataclass(frozen=True, slots=True)
class End:
    """Where messages would come to: some queues, with an address."""

    exchange: str
    routing_key: str
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One message, and where it would go; or why it would not."""

    peeked: Peeked
    end: End | None
    reason: str


class Preview:
    """Goes through messages as if to move them."""

    def __init__(self, looking: Looking | Chosen, fits: Fits, ways: Ways, steps_max: int) -> None:
        self.looking = looking
        self.staying = Staying()
        self.going_count = 0
        # Ends that are told apart, and how many messages go to others.
        self.ends: dict[End, int] = {}
        self.other_count = 0
        # The first of them.
        self.steps: list[Step] = []
        self._fits = fits
        self._ways = ways
        self._steps_max = steps_max

    def go(self, look_max: int, send_max: int) -> None:
        """Look at `look_max` messages more at most, as long as no more than `send_max` of all would go."""
        for peeked in self.looking.look(look_max):
            if self._fits(peeked):
                self._go(peeked)
                if self.going_count >= send_max:
                    return

    def _go(self, peeked: Peeked) -> None:
        end, reason = None, ""
        try:
            end = _end(self._ways.way(peeked.message, self.going_count + 1))
        except Stays as stays:
            reason = str(stays)
        except AmqpError as error:
            reason = error.message
        if end is None:
            self.staying.add(reason, peeked.place)
        else:
            self.going_count += 1
            if end in self.ends or len(self.ends) < DESTINATIONS_TOLD_MAX:
                self.ends[end] = self.ends.get(end, 0) + 1
            else:
                self.other_count += 1
        if len(self.steps) < self._steps_max:
            self.steps.append(Step(peeked, end, reason))


def _end(way: Way) -> End:
    names = tuple(queue.name for queue in way.destinations if isinstance(queue, LocalQueue))
    return End(way.message.exchange, way.message.routing_key, names)
