"""The one loop of the corridor: a message that died in a queue is routed again.

It runs until nothing is left to route, and not deeper: a message that dies while another is being routed
waits for its turn, so a chain of full queues costs no stack.
"""

from collections import deque
from typing import TYPE_CHECKING

from warren.errors import NotFound
from warren.limits import NAME_SIZE_MAX
from warren.model.message import Message
from warren.queues.deaths import Death, resurrect
from warren.queues.local import LocalQueue

if TYPE_CHECKING:
    from warren.vhost.vhost import VirtualHost


class DeadLettering:
    """The dead of one virtual host, on their way to the exchanges that their queues name."""

    __slots__ = ("_dead", "_is_running", "_vhost", "counts")

    def __init__(self, vhost: "VirtualHost") -> None:
        self._vhost = vhost
        self._dead: deque[tuple[LocalQueue, Message, str]] = deque()
        self._is_running = False
        # Reason -> how many died of it since the start.
        self.counts: dict[str, int] = {}

    def take(self, queue: LocalQueue, message: Message, reason: str) -> None:
        """`message` died in `queue`."""
        self._dead.append((queue, message, reason))
        self.counts[reason] = self.counts.get(reason, 0) + 1
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._dead:
                self._route(*self._dead.popleft())
        finally:
            self._is_running = False

    def _route(self, queue: LocalQueue, message: Message, reason: str) -> None:
        settings = queue.settings
        if settings.dead_letter_exchange is None:
            return
        death = Death(
            queue=queue.name,
            reason=reason,
            exchange=settings.dead_letter_exchange,
            routing_key=settings.dead_letter_routing_key,
            now=self._vhost.now,
        )
        if not _is_name(death.exchange) or not _is_name(death.routing_key or ""):
            return  # arguments are long strings: these fit no message
        risen = resurrect(message, death)
        if risen is None:
            return  # it has come too far
        try:
            destinations = self._vhost.router.route(risen.message.address, risen.message)
        except NotFound:
            return  # RabbitMQ: without the exchange, the message is dropped
        for destination in destinations:
            if getattr(destination, "name", "") not in risen.circles:
                destination.publish(risen.message, None, 0)  # type: ignore[attr-defined]
                if isinstance(destination, LocalQueue):
                    destination.risen_count += 1


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
