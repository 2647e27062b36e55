"""The one loop of the corridor: a message that died in a queue is routed again.

It runs until nothing is left to route, and not deeper: a message that dies while another is being routed
waits for its turn, so a chain of full queues costs no stack.
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
    """The dead of one virtual host, on their way to the exchanges that their queues name."""

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
        """`host` is the virtual host of the queues, whose time counts; `router` is its router."""
        self._host = host
        self._router = router
        self._dead: deque[tuple[LocalQueue, Message, str]] = deque()
        self._is_running = False
        # Reason -> how many died of it since the start and were routed again, to whatever queues.
        self.counts: dict[str, int] = {}
        # The same of those that were lost, because their queue names no exchange, or one that is not there.
        self.discarded_counts: dict[str, int] = {}
        # Told, now and then, of messages that were delivered too often, and then lost.
        self.log_discard: Callable[[str], None] = _nobody
        self._logged_at = -LOST_DEAD_LETTERS_LOG_MS
        self._unlogged_count = 0

    def take(self, queue: LocalQueue, message: Message, reason: str) -> None:
        """`message` died in `queue`."""
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
        """A message died in `queue` for `reason`, and there is no exchange that routes it again."""
        self.discarded_counts[reason] = self.discarded_counts.get(reason, 0) + 1
        if reason == "delivery_limit":
            self._unlogged_count += 1
            if self._host.now - self._logged_at >= LOST_DEAD_LETTERS_LOG_MS:
                self._log_discarded(queue)

    def _log_discarded(self, queue: LocalQueue) -> None:
        exchange = queue.settings.dead_letter_exchange
        why = "no dead-letter exchange" if exchange is None else f"no exchange '{exchange}', which it names"
        count, self._unlogged_count = self._unlogged_count, 0
        self._logged_at = self._host.now
        self.log_discard(
            f"{count} message{'s' * (count > 1)} delivered more often than the limit allows "
            f"{'were' if count > 1 else 'was'} lost in vhost '{queue.vhost_name}', the last one in queue "
            f"'{queue.name}', for which there is {why}"
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
            now=self._host.now,
        )
        if not _is_name(death.exchange) or not _is_name(death.routing_key or ""):
            self.count_discarded(queue, reason)  # arguments are long strings: these fit no message
            return
        dead_letter = make_dead_letter(message, death)
        if dead_letter is None:
            self.count_discarded(queue, reason)  # it has come too far
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
                if isinstance(destination, LocalQueue):
                    destination.broker_published_count += 1


def _nobody(text: str) -> None:
    """Before somebody wants to be told."""


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
