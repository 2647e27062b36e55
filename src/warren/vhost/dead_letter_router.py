"""Routes messages that were dead-lettered by a queue.

It is a loop and not a recursion: a message that is dead-lettered while another is being routed waits for its
turn, so that a chain of full queues does not grow the stack.
"""

from collections import deque
from collections.abc import Callable

from warren.errors import NotFound
from warren.limits import LOST_DEAD_LETTERS_LOG_MS, NAME_SIZE_MAX
from warren.model.message import Message
from warren.queues.deaths import Death, make_dead_letter
from warren.queues.local import LocalQueue
from warren.queues.queue import QueueHost
from warren.routing.router import Router


class DeadLetterRouter:
    """Routes the dead-lettered messages of one virtual host to the exchanges that their queues name."""

    __slots__ = (
        "_dead",
        "_host",
        "_is_running",
        "_logged_at",
        "_router",
        "_unlogged_count",
        "counts",
        "discarded_counts",
        "log_discard",
    )

    def __init__(self, host: QueueHost, router: Router) -> None:
        """`host` is the virtual host of the queues, which has the current time; `router` is its router."""
        self._host = host
        self._router = router
        self._dead: deque[tuple[LocalQueue, Message, str]] = deque()
        self._is_running = False
        # Reason -> number of messages dead-lettered and routed since the start.
        self.counts: dict[str, int] = {}
        # Reason -> number of messages lost, for want of an existing dead-letter exchange.
        self.discarded_counts: dict[str, int] = {}
        # Called, at a limited rate, when messages that exceeded the delivery limit were lost.
        self.log_discard: Callable[[str], None] = _nobody
        self._logged_at = -LOST_DEAD_LETTERS_LOG_MS
        self._unlogged_count = 0

    def take(self, queue: LocalQueue, message: Message, reason: str) -> None:
        """Route `message`, which `queue` has dead-lettered for `reason`."""
        self._dead.append((queue, message, reason))
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._dead:
                self._route(*self._dead.popleft())
        finally:
            self._is_running = False

    def count_discarded(self, queue: LocalQueue, reason: str) -> None:
        """Count a message lost by `queue` for `reason`, as no exchange could route it again."""
        self.discarded_counts[reason] = self.discarded_counts.get(reason, 0) + 1
        if reason == "delivery_limit":
            self._unlogged_count += 1
            if self._host.turn.now() - self._logged_at >= LOST_DEAD_LETTERS_LOG_MS:
                self._log_discarded(queue)

    def _log_discarded(self, queue: LocalQueue) -> None:
        exchange = queue.settings.dead_letter_exchange
        why = "which has no dead-letter exchange"
        if exchange is not None:
            why = f"whose dead-letter exchange '{exchange}' does not exist"
        count, self._unlogged_count = self._unlogged_count, 0
        self._logged_at = self._host.turn.now()
        self.log_discard(
            f"{count} message{'s' * (count > 1)} that exceeded the delivery limit "
            f"{'were' if count > 1 else 'was'} lost in vhost '{queue.vhost_name}', the last one in queue "
            f"'{queue.name}', {why}"
        )

    def _route(self, queue: LocalQueue, message: Message, reason: str) -> None:
        settings = queue.settings
        if settings.dead_letter_exchange is None:
            return
        death = Death(
            queue=queue.name,
            reason=reason,
            exchange=settings.dead_letter_exchange,
            routing_key=settings.dead_letter_routing_key,
            now=self._host.turn.now(),
        )
        if not _is_name(death.exchange) or not _is_name(death.routing_key or ""):
            self.count_discarded(queue, reason)  # the names are too long for a message
            return
        dead_letter = make_dead_letter(message, death)
        if dead_letter is None:
            self.count_discarded(queue, reason)  # it was dead-lettered too often
            return
        try:
            destinations = self._router.route(dead_letter.message.address, dead_letter.message)
        except NotFound:
            self.count_discarded(queue, reason)
            return
        self.counts[reason] = self.counts.get(reason, 0) + 1
        for destination in destinations:
            if getattr(destination, "name", "") not in dead_letter.cycle_queues:
                destination.publish(dead_letter.message, None, 0)  # type: ignore[attr-defined]
                destination.count_broker_published()  # type: ignore[attr-defined]


def _nobody(text: str) -> None:
    """The default callback, which does nothing."""


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
