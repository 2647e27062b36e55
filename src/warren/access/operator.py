"""The operator of the node as a user: who configures it may do everything at it, and needs no account.

Local ends of shovels and links that the configuration, or definitions loaded at a start, have made log in so.
RabbitMQ 3.10.8 calls this user `none`, and lets it publish with any user-id (measured).
"""

from warren.access.grants import ExternalUser
from warren.metadata.permissions import Permission, TopicPermission
from warren.model.patterns import ANYTHING

_EVERYTHING = Permission(configure=ANYTHING, write=ANYTHING, read=ANYTHING)


class _OperatorGrants:
    """All permissions in all virtual hosts."""

    @property
    def generation(self) -> int:
        """Nothing changes."""
        return 0

    def permission(self, vhost: str) -> Permission | None:
        """All permissions."""
        return _EVERYTHING

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """No restriction."""
        return None


OPERATOR_USER = ExternalUser(
    name="none",
    password_hash=b"",
    hashing_algorithm="",
    tags=("impersonator",),
    limits={},
    issuer="operator",
    grants=_OperatorGrants(),
)
