"""Whose doing something is: one channel, as traces and events name it."""

from collections.abc import Mapping
from typing import Protocol

from warren.metadata.records import NO_ARGUMENTS
from warren.session.events.event_publisher import EventPublisher
from warren.wire.table import Int32, Table, Value


class NamedConnection(Protocol):
    """Whatever somebody's connection is called by."""

    @property
    def name(self) -> str:
        """RabbitMQ's name of a connection: where from, where to."""


class ChannelOrigin:
    """Whose channel it is that publishes or consumes, and who is told what happens in it."""

    __slots__ = ("_connection", "_event_publisher", "channel", "pid", "user")

    def __init__(
        self, connection: NamedConnection, channel: int, user: str, event_publisher: EventPublisher
    ) -> None:
        self._connection = connection
        self._event_publisher = event_publisher
        self.channel = channel
        self.user = user
        # Serial numbers of the connection and the channel, which no others have had.
        self.pid = (0, 0)

    def is_heard(self) -> bool:
        """Whether anybody is told of anything."""
        return self._event_publisher.is_heard()

    def facts(self) -> Table:
        """What is said of it."""
        return {"connection": self._connection.name, "channel": Int32(self.channel), "user": self.user}

    def channel_opened(self, vhost: str) -> None:
        """The channel is there."""
        event_publisher = self._event_publisher
        if event_publisher.is_heard():
            facts: Table = {
                "vhost": vhost,
                "user": self.user,
                "number": self.channel,
                "connection": event_publisher.pid(self.pid[0]),
                "name": f"{self._connection.name} ({self.channel})",
                "pid": event_publisher.pid(*self.pid),
            }
            event_publisher.publish("channel.created", self.user, facts)

    def channel_closed(self) -> None:
        """The channel is gone."""
        event_publisher = self._event_publisher
        if event_publisher.is_heard():
            event_publisher.publish("channel.closed", self.user, {"pid": event_publisher.pid(*self.pid)})

    def publish_consumer_event(
        self, key: str, vhost: str, queue: str, tag: str, *, more: Mapping[str, Value] = NO_ARGUMENTS
    ) -> None:
        """A consumer of the channel has come, or gone."""
        event_publisher = self._event_publisher
        if event_publisher.is_heard():
            facts = {
                "queue": queue,
                "vhost": vhost,
                "channel": event_publisher.pid(*self.pid),
                "consumer_tag": tag,
            }
            event_publisher.publish(key, self.user, {**facts, **more})
