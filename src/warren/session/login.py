"""The result of the handshake."""

from msgspec import Struct

from warren.access.grants import TokenUser
from warren.metadata.users import User


class Login(Struct, frozen=True, kw_only=True):
    """The user of a connection, and what was negotiated for it."""

    account: User
    mechanism: str
    heartbeat_s: int
    client_properties: dict[str, object]
    # 0 means no limit.
    channels_max: int = 0
    capabilities: frozenset[str] = frozenset()

    @property
    def user(self) -> str:
        """The name of the user."""
        return self.account.name

    @property
    def identity(self) -> str:
        """Who the user is, also among users of other issuers with the same name."""
        return self.account.identity

    @property
    def expires_at(self) -> int | None:
        """When the user's token expires (Unix time, ms); None if it does not, or without a token."""
        return self.account.expires_at if isinstance(self.account, TokenUser) else None
