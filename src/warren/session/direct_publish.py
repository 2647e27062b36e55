"""Publishes a single message without a channel, and waits until it is safe."""

from warren.errors import PreconditionFailed
from warren.model.message import BODY_END, Message
from warren.queues.queue import REFUSED
from warren.routing.copies import addresses_of
from warren.session.channel_origin import ChannelOrigin
from warren.session.pending_confirms import PendingConfirms
from warren.session.publish_rules import PublishRules
from warren.session.vhost_services import VhostServices
from warren.vhost.vhost import UNROUTED
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
    answers = PendingConfirms()
    destinations = vhost.router.route(message.address, message)
    if vhost.is_traced:
        services.tracer.published(message, destinations, origin)
    outcome = vhost.publish_routed(destinations, message, answers, _SEQUENCE)
    await answers
    if outcome & REFUSED or answers.is_refused:
        raise NotConfirmed
    return not outcome & UNROUTED


def compose_message(address: bytes, properties: BasicProperties, body: bytes, now: int) -> Message:
    """Build a message to `address`; `now` in ms."""
    return Message.compose(address, properties, body + BODY_END, now=now)
