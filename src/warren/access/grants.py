"""Permissions of a user, from the metadata, from a token or from a directory."""

from typing import Protocol

from warren.access.scopes import Scopes
from warren.limits import PERMISSIONS_CACHED_MAX
from warren.metadata.identity import identity_of
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission, Permissions, TopicPermission
from warren.metadata.users import User

# Who vouches for the names of users who are not in the metadata. A name that the client itself has given with
# a token that has none is not the same name in a token.
OAUTH2 = "oauth2"
OAUTH2_UNNAMED = "oauth2-unnamed"
LDAP = "ldap"


class Grants(Protocol):
    """The permissions of one user."""

    @property
    def generation(self) -> int:
        """A counter that advances whenever a result may have changed."""

    def permission(self, vhost: str) -> Permission | None:
        """The user's permissions in `vhost`; None if the user has no access to it."""

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """The topic permission of the user for `exchange`; None if the user is not restricted."""


class UserGrants:
    """The current permissions of a user in the metadata."""

    __slots__ = ("_name", "_permissions")

    def __init__(self, permissions: Permissions, name: str) -> None:
        self._permissions = permissions
        self._name = name

    @property
    def generation(self) -> int:
        """The generation of the permissions of all users in the metadata."""
        return self._permissions.generation

    def permission(self, vhost: str) -> Permission | None:
        """The user's permissions in `vhost`; None if the user has no access to it."""
        return self._permissions.get(self._name, vhost)

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """The user's topic permission for `exchange`; None if the user is not restricted."""
        return self._permissions.get_topic(self._name, vhost, exchange)


class TokenGrants:
    """The permissions that a token grants, until it is replaced by another token."""

    __slots__ = ("_by_vhost", "_scopes", "generation")

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._by_vhost: dict[str, Permission | None] = {}
        self.generation = 0

    def renew(self, other: "TokenGrants") -> None:
        """Replace the granted permissions by those of `other`."""
        self._scopes = other._scopes
        self._by_vhost.clear()
        self.generation += 1

    def permission(self, vhost: str) -> Permission | None:
        """The patterns from the token's scopes for `vhost`; None if no scope names it."""
        if vhost not in self._by_vhost:
            if len(self._by_vhost) >= PERMISSIONS_CACHED_MAX:
                self._by_vhost.clear()
            self._by_vhost[vhost] = self._scopes.permission(vhost)
        return self._by_vhost[vhost]

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """The routing keys that the scopes permit on `exchange`; a token always restricts topics."""
        return self._scopes.topic_permission(vhost, exchange)


class ExternalUser(User, frozen=True, kw_only=True):
    """A user who is not in the metadata; the permissions were determined at login."""

    grants: Grants
    # Who vouches for the name.
    issuer: str

    @property
    def identity(self) -> str:
        """Who the user is: not a user in the metadata of the same name, nor one of another issuer."""
        return identity_of(self.name, self.issuer)


class TokenUser(ExternalUser, frozen=True, kw_only=True):
    """A user who was authenticated by a token, which also carries the permissions."""

    grants: TokenGrants
    # Expiry of the token (Unix time, ms); None if it does not expire.
    expires_at: int | None


def token_user(name: str, scopes: Scopes, expires_at: int | None, issuer: str = OAUTH2) -> TokenUser:
    """The user `name` with the permissions that the scopes of a token grant."""
    return TokenUser(
        name=name,
        password_hash=b"",
        hashing_algorithm="",
        tags=scopes.tags,
        limits={},
        grants=TokenGrants(scopes),
        issuer=issuer,
        expires_at=expires_at,
    )


def is_expired(user: User, now: int) -> bool:
    """True if `user` was authenticated by a token that has expired by `now` (ms)."""
    return isinstance(user, TokenUser) and user.expires_at is not None and now >= user.expires_at


def grants_of(metadata: Metadata, user: User) -> Grants:
    """The permissions of `user`, whatever its kind."""
    return user.grants if isinstance(user, ExternalUser) else UserGrants(metadata.permissions, user.name)
