"""The interface of a connection of either protocol that the server, management API and metrics use."""

from typing import Protocol

from warren.framing.outbox import Outbox
from warren.model.samples import Samples
from warren.session.channel import Channel
from warren.session.events.connection_facts import ConnectionFacts
from warren.session.login import Login
from warren.session.vhost_services import VhostServices


class AnyConnection(ConnectionFacts, Protocol):
    """A connection of AMQP 0-9-1 or of the stream protocol."""

    # The bytes received and sent that are already included in the counters of the virtual host.
    bytes_counted: tuple[int, int]
    # True while the connection is in `Server.moved`.
    is_dirty: bool
    # Samples of its counters, set by the sampler.
    history: Samples | None

    @property
    def services(self) -> VhostServices | None:
        """The services of the virtual host; None before the connection was open."""

    @property
    def is_open(self) -> bool:
        """True from the end of the handshake until the connection begins to close."""

    @property
    def channels(self) -> dict[int, Channel]:
        """The open channels by number; the stream protocol has none."""

    @property
    def outbox(self) -> Outbox:
        """The output buffer, which also counts the bytes sent."""

    @property
    def bytes_received(self) -> int:
        """Bytes received since the client connected."""

    @property
    def read_count(self) -> int:
        """The number of reads from the socket."""

    @property
    def write_count(self) -> int:
        """The number of writes to the socket."""

    def state_name(self, now: int) -> str:
        """The state of the connection as RabbitMQ's management API names it; `now` in ms."""

    def renew(self, login: Login) -> None:
        """Replace the login by `login`, because the client has renewed its token."""

    def block(self, reason: str) -> None:
        """Block publishing for `reason`; an empty reason unblocks it."""

    def disconnect(self, reason: str) -> None:
        """Close the connection for `reason`: an operator, a limit or a shutdown."""
