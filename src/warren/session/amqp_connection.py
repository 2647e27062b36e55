"""The interface of an AMQP connection that the server, channels, management API and metrics use."""

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
    """An AMQP 0-9-1 connection."""

    # The bytes received and sent that are already included in the counters of the virtual host.
    bytes_counted: tuple[int, int]
    # True while the connection is in `Server.moved`.
    is_dirty: bool
    # Samples of its counters, set by the sampler.
    history: Samples | None

    @property
    def services(self) -> VhostServices | None:
        """The services of the virtual host; None before connection.open."""

    @property
    def is_open(self) -> bool:
        """True from connection.open-ok until the connection begins to close."""

    @property
    def channels(self) -> dict[int, Channel]:
        """The open channels by number."""

    @property
    def outbox(self) -> Outbox:
        """The output buffer, which also counts the bytes sent."""

    @property
    def throttle(self) -> Throttle:
        """The flow control of its publishing."""

    @property
    def bytes_received(self) -> int:
        """Bytes received since the connection was opened."""

    @property
    def read_count(self) -> int:
        """The number of reads from the socket."""

    @property
    def write_count(self) -> int:
        """The number of writes to the socket."""

    def state_name(self, now: int) -> str:
        """The state of the connection as RabbitMQ's management API names it; `now` in ms."""

    def block(self, reason: str) -> None:
        """Block publishing for `reason`; an empty reason unblocks it."""

    def close(self, error: AmqpError) -> None:
        """Send connection.close for `error`."""

    def renew(self, login: Login) -> None:
        """Replace the login by `login`, and send connection.update-secret-ok."""

    def run_in_channel(self, channel: Channel, action: Callable[[], None]) -> None:
        """Run `action` outside of a frame; its exceptions close the channel or the connection."""

    def check_timeouts(self, timeout_ms: int | None) -> None:
        """Check for deliveries that are unacknowledged longer than `timeout_ms`; None checks nothing."""
