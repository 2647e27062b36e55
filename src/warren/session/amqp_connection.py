"""An open AMQP connection as the rest of the broker sees it."""

from collections.abc import Callable
from typing import Protocol

from warren.errors import AmqpError
from warren.model.samples import Samples
from warren.session.channel import Channel
from warren.session.events.connection_facts import ConnectionFacts
from warren.session.login import Login
from warren.session.outbox import Outbox
from warren.session.throttle import Throttle
from warren.session.vhost_services import VhostServices


class AmqpConnection(ConnectionFacts, Protocol):
    """What the server, its channels, the management API and the metrics use of a connection."""

    # Bytes received and sent up to the last time when they were added to the counts of the virtual host.
    octets_counted: tuple[int, int]
    # True while the connection is in `Server.moved`.
    is_dirty: bool
    # Samples of its counters, kept by whoever takes them.
    history: Samples | None

    @property
    def services(self) -> VhostServices | None:
        """The virtual host; None before the connection was open."""

    @property
    def is_open(self) -> bool:
        """True from connection.open-ok until the connection begins to close."""

    @property
    def channels(self) -> dict[int, Channel]:
        """The open channels by number."""

    @property
    def outbox(self) -> Outbox:
        """What is to be sent, and how much was."""

    @property
    def throttle(self) -> Throttle:
        """Whether its publishing is held, and why."""

    @property
    def octets_received(self) -> int:
        """Bytes received since it was opened."""

    @property
    def read_count(self) -> int:
        """Reads from the socket."""

    @property
    def write_count(self) -> int:
        """Writes to the socket."""

    def state_name(self, now: int) -> str:
        """Its state, as RabbitMQ's management API names it."""

    def block(self, reason: str) -> None:
        """Hold what is published, for `reason`; an empty one releases it."""

    def close(self, error: AmqpError) -> None:
        """Close the connection with `error`."""

    def renew(self, login: Login) -> None:
        """Go on with `login`, and confirm connection.update-secret."""

    def run_in_channel(self, channel: Channel, action: Callable[[], None]) -> None:
        """Run `action`, which no frame has caused; its exceptions end the channel or the connection."""

    def check_timeouts(self, timeout_ms: int | None) -> None:
        """Check from now on for deliveries that are unacknowledged for longer than `timeout_ms`."""
