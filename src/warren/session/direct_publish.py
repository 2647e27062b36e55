"""One message of somebody without a channel: published by the rules of one, and awaited until it is safe."""

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
    """A queue did not take the message: it is full, or could not write it."""


async def publish(
    services: VhostServices,
    rules: PublishRules,
    message: Message,
    *,
    properties: BasicProperties,
    origin: ChannelOrigin,
) -> bool:
    """Publish `message`, which has `properties`; True if a queue has it, once it is safe there.

    Unsafe if one would not have it, an AmqpError if the user may not publish it.
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
    """The message of `body` to `address`."""
    return Message.compose(address, properties, body + BODY_END, now=now)


class _PendingConfirms(ConfirmListener):
    """Over when every queue that had to write the message has answered."""

    def __init__(self) -> None:
        self.is_refused = False
        self._due = 0
        self._callbacks: list[Callable[[object], None]] = []

    def expect(self, sequence: int) -> None:
        """One more answer is due."""
        self._due += 1

    def done(self, first: int, last: int) -> None:
        """One of them: it is safe."""
        self._due -= 1
        if not self._due:
            for callback in self._callbacks:
                callback(self)

    def refused(self, sequence: int) -> None:
        """One of them: it is not."""
        self.is_refused = True
        self.done(sequence, sequence)

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once, after the last answer."""
        self._callbacks.append(callback)

    def __await__(self) -> Generator["_PendingConfirms", None, None]:
        if self._due:
            yield self
