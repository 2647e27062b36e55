"""How a client logs in, and what it proposes in the handshake."""

from msgspec import Struct

from warren.limits import CHANNELS_MAX, FRAME_SIZE_MAX
from warren.limits_relay import CLIENT_HANDSHAKE_MS

PLAIN = "PLAIN"
EXTERNAL = "EXTERNAL"

# The usual capabilities: a refused login is answered with connection.close, alarms with
# connection.blocked, and the end of a queue with basic.cancel.
CAPABILITIES = (
    "authentication_failure_close", "basic.nack", "connection.blocked", "consumer_cancel_notify",
    "exchange_exchange_bindings", "publisher_confirms",
)  # fmt: skip


class ClientLogin(Struct, frozen=True, kw_only=True):
    """The credentials, the virtual host, and the proposals of a client."""

    user: str
    password: str
    vhost: str
    # Shown by the broker as the name of the connection.
    connection_name: str = ""
    product: str = "Warren"
    capabilities: tuple[str, ...] = CAPABILITIES
    # The first that the broker offers is used. PLAIN sends the user and the password; with EXTERNAL the
    # broker uses the client certificate.
    mechanisms: tuple[str, ...] = (PLAIN,)
    # In seconds; None accepts what the broker proposes, and 0 disables heartbeats.
    heartbeat_s: int | None = None
    # In bytes; a smaller proposal of the broker is accepted.
    frame_size_max: int = FRAME_SIZE_MAX
    channels_max: int = CHANNELS_MAX
    # The time until the connection must be open.
    handshake_ms: int = CLIENT_HANDSHAKE_MS

    def __repr__(self) -> str:
        """Show no password, since a repr can end up in a traceback."""
        return f"ClientLogin(user={self.user!r}, vhost={self.vhost!r}, mechanisms={self.mechanisms!r})"

    def response(self, mechanism: str) -> str:
        """Return the SASL response (RFC 4616 for PLAIN; RFC 4422 appendix A for EXTERNAL)."""
        return f"\0{self.user}\0{self.password}" if mechanism == PLAIN else ""

    def properties(self) -> dict[str, object]:
        """Return the client properties of connection.start-ok."""
        named = {"connection_name": self.connection_name} if self.connection_name else {}
        return {"product": self.product, "capabilities": dict.fromkeys(self.capabilities, True), **named}
