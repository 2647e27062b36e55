"""The port by which copies of traced messages are made."""

from typing import Protocol

from warren.model.message import Message
from warren.wire.table import Table


class MessageOrigin(Protocol):
    """The channel that published a message or got it delivered."""

    def facts(self) -> Table:
        """The headers that name the channel, its connection and its user."""


class MessageTracer(Protocol):
    """Copies what is published and delivered in a traced virtual host (RabbitMQ's firehose)."""

    def published(self, message: Message, destinations: tuple[object, ...], origin: MessageOrigin) -> None:
        """Copy `message`, which is routed to `destinations`."""

    def delivered(self, queue: str, message: Message, is_redelivered: bool, origin: MessageOrigin) -> None:
        """Copy `message`, which `queue` has delivered."""
