"""Previews of a move: where messages would go, and which could not be moved; nothing is changed."""

from msgspec import Struct

from warren.errors import AmqpError, Undecided
from warren.limits import PREVIEW_DESTINATIONS_MAX
from warren.queues.capabilities import declared_queue
from warren.queues.queue import PeekedMessage
from warren.vhost.message_move import MessageFilter, MoveFailures
from warren.vhost.move_router import CannotMove, MoveRoute, MoveRouter
from warren.vhost.queue_scan import QueueScan, SelectionScan


class MoveDestination(Struct, frozen=True):
    """A destination of messages: the queues, and the address used."""

    exchange: str
    routing_key: str
    queues: tuple[str, ...]


class MovePreviewStep(Struct, frozen=True):
    """One message with its destination, or with the reason why it cannot be moved."""

    peeked: PeekedMessage
    end: MoveDestination | None
    reason: str


class MovePreview:
    """Examines messages as a move would, without moving them."""

    def __init__(
        self,
        queue_scan: QueueScan | SelectionScan,
        fits: MessageFilter,
        move_router: MoveRouter,
        steps_max: int,
    ) -> None:
        self.queue_scan = queue_scan
        self.move_failures = MoveFailures()
        self.movable_count = 0
        # Destinations with their number of messages, and the number of messages for all others.
        self.ends: dict[MoveDestination, int] = {}
        self.other_count = 0
        # The first examined messages.
        self.steps: list[MovePreviewStep] = []
        self._fits = fits
        self._move_router = move_router
        self._steps_max = steps_max

    def advance(self, look_max: int, send_max: int) -> None:
        """Examine up to `look_max` more messages, until `send_max` of all can be moved."""
        for peeked in self.queue_scan.next_messages(look_max):
            if self._fits(peeked):
                self._go(peeked)
                if self.movable_count >= send_max:
                    return

    def _go(self, peeked: PeekedMessage) -> None:
        end, reason = None, ""
        try:
            end = _end(self._move_router.route(peeked.message, self.movable_count + 1))
        except CannotMove as stays:
            reason = str(stays)
        except Undecided:
            raise
        except AmqpError as error:
            reason = error.message
        if end is None:
            self.move_failures.add(reason, peeked.place)
        else:
            self.movable_count += 1
            if end in self.ends or len(self.ends) < PREVIEW_DESTINATIONS_MAX:
                self.ends[end] = self.ends.get(end, 0) + 1
            else:
                self.other_count += 1
        if len(self.steps) < self._steps_max:
            self.steps.append(MovePreviewStep(peeked, end, reason))


def _end(route: MoveRoute) -> MoveDestination:
    names = tuple(queue.name for queue in filter(None, map(declared_queue, route.destinations)))
    return MoveDestination(route.message.exchange, route.message.routing_key, names)
