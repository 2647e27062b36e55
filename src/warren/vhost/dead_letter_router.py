"""Routes messages that were dead-lettered by a queue.

It is a loop and not a recursion: a message that is dead-lettered while another is being routed waits for its
turn, so that a chain of full queues does not grow the stack.
"""

from collections import deque
from collections.abc import Callable

from warren.errors import NotFound
from warren.limits import LOST_DEAD_LETTERS_LOG_MS, NAME_SIZE_MAX
from warren.model.arguments import CLASSIC, QUORUM, DeadLetterStrategy
from warren.model.message import Message
from warren.queues.deaths import Death, make_dead_letter
from warren.queues.queue import Queue, QueueHost
from warren.queues.vhost_queue import VhostQueue
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
        "_unrouted_logged_at",
        "counts",
        "discarded_counts",
        "log_discard",
    )

    def __init__(self, host: QueueHost, router: Router) -> None:
        """`host` is the virtual host of the queues, which has the current time; `router` is its router."""
        self._host = host
        self._router = router
        self._dead: deque[tuple[VhostQueue, Message, str]] = deque()
        self._is_running = False
        # Type of the queue -> reason -> number of messages dead-lettered and routed since the start.
        self.counts: dict[str, dict[str, int]] = {CLASSIC: {}, QUORUM: {}}
        # The same for messages lost, for want of an existing dead-letter exchange.
        self.discarded_counts: dict[str, dict[str, int]] = {CLASSIC: {}, QUORUM: {}}
        # Called, at a limited rate, when messages that exceeded the delivery limit were lost.
        self.log_discard: Callable[[str], None] = _nobody
        self._logged_at = -LOST_DEAD_LETTERS_LOG_MS
        self._unlogged_count = 0
        self._unrouted_logged_at = -LOST_DEAD_LETTERS_LOG_MS

    def take(self, queue: VhostQueue, message: Message, reason: str) -> None:
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

    def route(self, queue: VhostQueue, message: Message, reason: str) -> tuple[Message, list[Queue]] | None:
        """The dead letter that `message` becomes, which `queue` keeps until its targets have confirmed it.

        None if there is no target; that is logged.
        """
        if queue.settings.dead_letter_exchange is None:
            return None
        routed = self._routed(queue, message, reason)
        if routed is not None and routed[1]:
            return routed
        if self._host.turn.now() - self._unrouted_logged_at >= LOST_DEAD_LETTERS_LOG_MS:
            self._unrouted_logged_at = self._host.turn.now()
            self.log_discard(
                f"cannot forward dead-letter messages from source quorum queue '{queue.name}' in vhost"
                f" '{queue.vhost_name}' with configured dead-letter-exchange"
                f" '{queue.settings.dead_letter_exchange}' and configured dead-letter-routing-key"
                f" '{queue.settings.dead_letter_routing_key}'. This can happen if no queue is bound to the"
                " exchange for their routing keys, or if they would circulate. Fix this to prevent"
                " dead-lettered messages from piling up in the source quorum queue"
            )
        return None

    def check(self, queue: VhostQueue) -> None:
        """Log, in the words of RabbitMQ, if `queue` cannot obey its dead-letter strategy."""
        settings = queue.settings
        if settings.dead_letter_strategy is DeadLetterStrategy.AT_MOST_ONCE or settings.kind != QUORUM:
            return
        where = f"queue '{queue.name}' in vhost '{queue.vhost_name}'"
        if settings.dead_letter_exchange is None:
            self.log_discard(
                f"disabling dead-lettering for {where} despite configured dead-letter-strategy"
                " 'at-least-once' because dead-letter-exchange is not configured"
            )
        elif not settings.keeps_dead_letters:
            self.log_discard(
                f"falling back to dead-letter-strategy at-most-once for {where} because configured"
                " dead-letter-strategy at-least-once is incompatible with effective overflow strategy"
                f" {settings.overflow.value}. To enable dead-letter-strategy at-least-once, set overflow"
                " strategy to reject-publish"
            )

    def count_discarded(self, queue: VhostQueue, reason: str) -> None:
        """Count a message lost by `queue` for `reason`, as no exchange could route it again."""
        counts = self.discarded_counts[queue.settings.kind]
        counts[reason] = counts.get(reason, 0) + 1
        if reason == "delivery_limit":
            self._unlogged_count += 1
            if self._host.turn.now() - self._logged_at >= LOST_DEAD_LETTERS_LOG_MS:
                self._log_discarded(queue)

    def _log_discarded(self, queue: VhostQueue) -> None:
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

    def _route(self, queue: VhostQueue, message: Message, reason: str) -> None:
        if queue.settings.dead_letter_exchange is None:
            return
        routed = self._routed(queue, message, reason)
        if routed is None:
            self.count_discarded(queue, reason)
            return
        dead_letter, destinations = routed
        counts = self.counts[queue.settings.kind]
        counts[reason] = counts.get(reason, 0) + 1
        for destination in destinations:
            destination.publish(dead_letter, None, 0)
            destination.count_broker_published()

    def _routed(self, queue: VhostQueue, message: Message, reason: str) -> tuple[Message, list[Queue]] | None:
        """The dead letter that `message` becomes, and the queues that it is routed to.

        None if its exchange does not exist, if the names are too long for a message, or if it died too often.
        """
        settings = queue.settings
        assert settings.dead_letter_exchange is not None
        death = Death(
            queue=queue.name,
            reason=reason,
            exchange=settings.dead_letter_exchange,
            routing_key=settings.dead_letter_routing_key,
            now=self._host.turn.now(),
        )
        if not _is_name(death.exchange) or not _is_name(death.routing_key or ""):
            return None
        dead_letter = make_dead_letter(message, death)
        if dead_letter is None:
            return None
        try:
            destinations = self._router.route(dead_letter.message.address, dead_letter.message)
        except NotFound:
            return None
        cycle = dead_letter.cycle_queues
        return dead_letter.message, [
            destination  # type: ignore[misc]
            for destination in destinations
            if getattr(destination, "name", "") not in cycle
        ]


def _nobody(text: str) -> None:
    """The default callback, which does nothing."""


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
