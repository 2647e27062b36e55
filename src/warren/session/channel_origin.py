"""The channel that traces and events name as their origin."""

from collections.abc import Mapping
from typing import Protocol

from warren.metadata.records import NO_ARGUMENTS
from warren.session.events.event_publisher import EventPublisher
from warren.wire.table import Int32, Table, Value


class NamedConnection(Protocol):
    """A connection with a name."""

    @property
    def name(self) -> str:
        """The name in RabbitMQ's form: client address -> server address."""


class ChannelOrigin:
    """Identifies a channel in traces, and publishes its events."""

    __slots__ = ("_connection", "_event_publisher", "channel", "pid", "user")

    def __init__(
        self, connection: NamedConnection, channel: int, user: str, event_publisher: EventPublisher
    ) -> None:
        self._connection = connection
        self._event_publisher = event_publisher
        self.channel = channel
        self.user = user
        # The serial numbers of the connection and of the channel, unique within this run of the node.
        self.pid = (0, 0)

    def is_heard(self) -> bool:
        """True if the event exchange has bindings."""
        return self._event_publisher.is_heard()

    def facts(self) -> Table:
        """The headers that identify the channel in a trace."""
        return {"connection": self._connection.name, "channel": Int32(self.channel), "user": self.user}

    def channel_opened(self, vhost: str) -> None:
        """Publish `channel.created`."""
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
        """Publish `channel.closed`."""
        event_publisher = self._event_publisher
        if event_publisher.is_heard():
            event_publisher.publish("channel.closed", self.user, {"pid": event_publisher.pid(*self.pid)})

    def publish_consumer_event(
        self, key: str, vhost: str, queue: str, tag: str, *, more: Mapping[str, Value] = NO_ARGUMENTS
    ) -> None:
        """Publish the event `key` about the consumer `tag` of `queue`; `more` are further headers."""
        event_publisher = self._event_publisher
        if event_publisher.is_heard():
            facts = {
                "queue": queue,
                "vhost": vhost,
                "channel": event_publisher.pid(*self.pid),
                "consumer_tag": tag,
            }
            event_publisher.publish(key, self.user, {**facts, **more})
