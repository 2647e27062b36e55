"""Where what somebody may do is written: in the metadata, in the token with which they came, or elsewhere."""

from dataclasses import dataclass
from typing import Protocol

from warren.access.scopes import Scopes
from warren.limits import PERMISSIONS_CACHED_MAX
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission, Permissions, TopicPermission
from warren.metadata.users import User


class Grants(Protocol):
    """What one user may do."""

    @property
    def generation(self) -> int:
        """Advances whenever an answer may have changed."""

    def permission(self, vhost: str) -> Permission | None:
        """What the user may do in `vhost`; None if not even enter."""

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """To which topics of `exchange` the user is restricted; None if to none."""


class UserGrants:
    """Of a user of the metadata, as they are now."""

    __slots__ = ("_name", "_permissions")

    def __init__(self, permissions: Permissions, name: str) -> None:
        self._permissions = permissions
        self._name = name

    @property
    def generation(self) -> int:
        """Of the permissions of all users."""
        return self._permissions.generation

    def permission(self, vhost: str) -> Permission | None:
        """As it was set."""
        return self._permissions.get(self._name, vhost)

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """As it was set."""
        return self._permissions.get_topic(self._name, vhost, exchange)


class TokenGrants:
    """Of a token, until another one takes its place."""

    __slots__ = ("_by_vhost", "_scopes", "generation")

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._by_vhost: dict[str, Permission | None] = {}
        self.generation = 0

    def renew(self, other: "TokenGrants") -> None:
        """Grant what `other` does, and nothing else, from now on."""
        self._scopes = other._scopes
        self._by_vhost.clear()
        self.generation += 1

    def permission(self, vhost: str) -> Permission | None:
        """The scopes for `vhost`, as patterns."""
        if vhost not in self._by_vhost:
            if len(self._by_vhost) >= PERMISSIONS_CACHED_MAX:
                self._by_vhost.clear()
            self._by_vhost[vhost] = self._scopes.permission(vhost)
        return self._by_vhost[vhost]

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """The scopes for the exchange; a token always says something about topics."""
        return self._scopes.topic_permission(vhost, exchange)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalUser(User):
    """A user whom the metadata does not know: what they may do came with their login."""

    grants: Grants


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUser(ExternalUser):
    """A user of whom a token says all that there is to know."""

    grants: TokenGrants
    # When the token ends (Unix time, ms); None if it does not.
    expires_at: int | None


def token_user(name: str, scopes: Scopes, expires_at: int | None) -> TokenUser:
    """The user `name`, with what the scopes of a token say."""
    return TokenUser(
        name=name,
        password_hash=b"",
        hashing_algorithm="",
        tags=scopes.tags,
        limits={},
        grants=TokenGrants(scopes),
        expires_at=expires_at,
    )


def is_expired(user: User, now: int) -> bool:
    """True if `user` came with a token that has ended by `now`."""
    return isinstance(user, TokenUser) and user.expires_at is not None and now >= user.expires_at


def grants_of(metadata: Metadata, user: User) -> Grants:
    """What `user` may do."""
    return user.grants if isinstance(user, ExternalUser) else UserGrants(metadata.permissions, user.name)
