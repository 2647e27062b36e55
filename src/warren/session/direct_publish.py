"""Publishes a single message without a channel, and waits until it is safe."""

from collections.abc import Callable, Generator

from warren.errors import PreconditionFailed
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import BODY_END, Message
from warren.queues.queue import REFUSED
from warren.routing.copies import addresses_of
from warren.session.channel_origin import ChannelOrigin
from warren.session.publish_rules import PublishRules
from warren.session.vhost_services import VhostServices
from warren.vhost.vhost import ROUTED
from warren.wire.properties import BasicProperties

_PERSISTENT = 2
_SEQUENCE = 1


class NotConfirmed(Exception):
    """A queue has refused the message, because it is full or the write failed."""


async def publish(
    services: VhostServices,
    rules: PublishRules,
    message: Message,
    *,
    properties: BasicProperties,
    origin: ChannelOrigin,
) -> bool:
    """Publish `message`, which has `properties`, and wait until it is safe; return True if it was routed.

    NotConfirmed if a queue refuses it, AmqpError if the user may not publish it.
    """
    vhost = services.vhost
    for address in addresses_of(message):
        rules.admit(address)
    mode = properties.delivery_mode
    if mode is not None and mode > _PERSISTENT:
        raise PreconditionFailed(f"invalid message: {{delivery_mode_unknown,{mode}}}")
    message = rules.check_properties(message)
    answers = _PendingConfirms()
    destinations = vhost.router.route(message.address, message)
    if vhost.is_traced:
        services.tracer.published(message, destinations, origin)
    outcome = vhost.publish_routed(destinations, message, answers, _SEQUENCE)
    await answers
    if outcome == REFUSED or answers.is_refused:
        raise NotConfirmed
    return outcome == ROUTED


def compose_message(address: bytes, properties: BasicProperties, body: bytes, now: int) -> Message:
    """Build a message to `address`; `now` in ms."""
    return Message.compose(address, properties, body + BODY_END, now=now)


class _PendingConfirms(ConfirmListener):
    """An awaitable that completes when each queue that must write the message has answered."""

    def __init__(self) -> None:
        self.is_refused = False
        self._due = 0
        self._callbacks: list[Callable[[object], None]] = []

    def expect(self, sequence: int) -> None:
        """Register one more due answer."""
        self._due += 1

    def done(self, first: int, last: int) -> None:
        """Count one answer: the message is safe."""
        self._due -= 1
        if not self._due:
            for callback in self._callbacks:
                callback(self)

    def refused(self, sequence: int) -> None:
        """Count one answer: a queue has refused the message."""
        self.is_refused = True
        self.done(sequence, sequence)

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once after the last answer."""
        self._callbacks.append(callback)

    def __await__(self) -> Generator["_PendingConfirms", None, None]:
        if self._due:
            yield self
