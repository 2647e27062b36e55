"""Whose doing something is: one channel, as traces and events name it."""

from collections.abc import Mapping
from typing import Protocol

from warren.metadata.records import NO_ARGUMENTS
from warren.session.announcing import Announcer
from warren.wire.table import Int32, Table, Value


class Named(Protocol):
    """Whatever somebody's connection is called by."""

    @property
    def name(self) -> str:
        """RabbitMQ's name of a connection: where from, where to."""


class Origin:
    """Whose channel it is that publishes or consumes, and who is told what happens in it."""

    __slots__ = ("_announcer", "_connection", "channel", "pid", "user")

    def __init__(self, connection: Named, channel: int, user: str, announcer: Announcer) -> None:
        self._connection = connection
        self._announcer = announcer
        self.channel = channel
        self.user = user
        # Serial numbers of the connection and the channel, which no others have had.
        self.pid = (0, 0)

    def is_heard(self) -> bool:
        """Whether anybody is told of anything."""
        return self._announcer.is_heard()

    def facts(self) -> Table:
        """What is said of it."""
        return {"connection": self._connection.name, "channel": Int32(self.channel), "user": self.user}

    def channel_opened(self, vhost: str) -> None:
        """The channel is there."""
        announcer = self._announcer
        if announcer.is_heard():
            facts: Table = {
                "vhost": vhost,
                "user": self.user,
                "number": self.channel,
                "connection": announcer.pid(self.pid[0]),
                "name": f"{self._connection.name} ({self.channel})",
                "pid": announcer.pid(*self.pid),
            }
            announcer.announce("channel.created", self.user, facts)

    def channel_closed(self) -> None:
        """The channel is gone."""
        announcer = self._announcer
        if announcer.is_heard():
            announcer.announce("channel.closed", self.user, {"pid": announcer.pid(*self.pid)})

    def consumes(
        self, key: str, vhost: str, queue: str, tag: str, *, more: Mapping[str, Value] = NO_ARGUMENTS
    ) -> None:
        """A consumer of the channel has come, or gone."""
        announcer = self._announcer
        if announcer.is_heard():
            facts = {"queue": queue, "vhost": vhost, "channel": announcer.pid(*self.pid), "consumer_tag": tag}
            announcer.announce(key, self.user, {**facts, **more})
