"""Users: password hashes, tags and limits."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from warren.metadata import validation
from warren.metadata.commands import (
    DONE,
    EXISTING,
    MISSING,
    Json,
    Outcome,
    PutUser,
    RemoveUser,
    Reply,
    SetUserLimits,
    SetUserTags,
)
from warren.metadata.events import Listener, UserChanged, UserRemoved
from warren.metadata.identity import is_external

_LIMITS: dict[str, validation.Check] = {
    "max-connections": validation.integer,
    "max-channels": validation.integer,
}


class PasswordHash(Struct, frozen=True):
    """The stored hash of a password, and the algorithm by RabbitMQ's name or a similar one."""

    salted_hash: bytes
    algorithm: str


class User(Struct, frozen=True, kw_only=True):
    """A user who can log in; an empty hash matches no password."""

    name: str
    password_hash: bytes
    hashing_algorithm: str
    tags: tuple[str, ...]
    limits: Mapping[str, Json]

    @property
    def identity(self) -> str:
        """Who the user is, also among users of other issuers: the name."""
        return self.name

    @property
    def password(self) -> PasswordHash:
        """The stored hash of the user's password."""
        return PasswordHash(self.password_hash, self.hashing_algorithm)

    def limit(self, name: str) -> int | None:
        """The limit `max-connections` or `max-channels`; None if it is not set."""
        return natural_limit(self.limits, name)


class Users:
    """All users by name."""

    __slots__ = ("_notify", "by_name")

    def __init__(self, notify: Listener) -> None:
        self._notify = notify
        self.by_name: dict[str, User] = {}

    def put(self, command: PutUser) -> Reply:
        """Create or replace a user; limits that are None are kept."""
        if is_external(command.name):
            return Reply(Outcome.REFUSED, "the name of a user may not begin with a zero byte")
        limits = command.limits
        known = self.by_name.get(command.name)
        if limits is None:
            limits = known.limits if known is not None else {}
        refusal = _refusal(limits)
        if refusal is not None:
            return refusal
        self._put(
            User(
                name=command.name,
                password_hash=command.password_hash,
                hashing_algorithm=command.hashing_algorithm,
                tags=command.tags,
                limits=limits,
            )
        )
        return DONE if known is None else EXISTING

    def remove(self, command: RemoveUser) -> Reply:
        """Remove a user; the machine removes the permissions."""
        if self.by_name.pop(command.name, None) is None:
            return MISSING
        self._notify(UserRemoved(command.name))
        return DONE

    def set_tags(self, command: SetUserTags) -> Reply:
        """Replace the tags of a user."""
        user = self.by_name.get(command.name)
        if user is None:
            return MISSING
        self._put(replace(user, tags=command.tags))
        return DONE

    def set_limits(self, command: SetUserLimits) -> Reply:
        """Replace the limits of a user."""
        user = self.by_name.get(command.name)
        if user is None:
            return MISSING
        refusal = _refusal(command.limits)
        if refusal is not None:
            return refusal
        self._put(replace(user, limits=command.limits))
        return DONE

    def _put(self, user: User) -> None:
        self.by_name[user.name] = user
        self._notify(UserChanged(user.name))


def natural_limit(limits: Mapping[str, Json], name: str) -> int | None:
    """The limit `name`; None if it is absent or negative, which has the same meaning."""
    limit = limits.get(name)
    return limit if isinstance(limit, int) and limit >= 0 else None


def _refusal(limits: Mapping[str, Json]) -> Reply | None:
    errors = validation.fields("user-limits", limits, _LIMITS)
    return Reply(Outcome.REFUSED, "\n".join(errors)) if errors else None
