"""The interface of an AMQP connection that the server, channels, management API and metrics use."""

from collections.abc import Callable
from typing import Protocol

from warren.errors import AmqpError
from warren.session.any_connection import AnyConnection
from warren.session.channel import Channel
from warren.session.throttle import Throttle


class AmqpConnection(AnyConnection, Protocol):
    """An AMQP 0-9-1 connection."""

    @property
    def throttle(self) -> Throttle:
        """The flow control of its publishing."""

    def close(self, error: AmqpError) -> None:
        """Send connection.close for `error`."""

    def run_in_channel(self, channel: Channel, action: Callable[[], None]) -> None:
        """Run `action` outside of a frame; its exceptions close the channel or the connection."""

    def check_timeouts(self, timeout_ms: int | None) -> None:
        """Check for deliveries that are unacknowledged longer than `timeout_ms`; None checks nothing."""
