"""Who may do what: the permissions of one user in one vhost, asked by one channel.

Answers are kept until any permission changes, so that a permission taken away is gone at once; RabbitMQ keeps
them for the life of the channel.
"""

from collections.abc import Mapping

import regex

from warren.access.grants import Grants, grants_of
from warren.errors import AccessRefused, NotAllowed
from warren.limits import PERMISSIONS_CACHED_MAX
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission
from warren.metadata.users import User
from warren.model.names import DEFAULT_EXCHANGE_ALIAS, ExchangeName, QueueName
from warren.model.patterns import ANYTHING, matches

CONFIGURE = "configure"
WRITE = "write"
READ = "read"

Entity = QueueName | ExchangeName


class Authorizer:
    """What `user` may do in `vhost`; every refusal is an AccessRefused with RabbitMQ's text."""

    __slots__ = ("_allowed", "_generation", "_grants", "user", "variables", "vhost")

    def __init__(self, grants: Grants, user: str, vhost: str) -> None:
        self._grants = grants
        self.user = user
        self.vhost = vhost
        # What stands in braces in topic permissions.
        self.variables: Mapping[str, str] = {"username": user, "vhost": vhost}
        # What was allowed since the permissions last changed; a refusal ends the channel, so none is kept.
        self._allowed: set[tuple[object, ...]] = set()
        self._generation = -1

    @property
    def generation(self) -> int:
        """Advances whenever an answer may have changed; for those who keep answers themselves."""
        return self._grants.generation

    def check_configure(self, entity: Entity) -> None:
        """Raise unless the user may create and delete `entity`."""
        self._check(entity, CONFIGURE)

    def check_write(self, entity: Entity) -> None:
        """Raise unless the user may publish to, or bind, `entity`."""
        self._check(entity, WRITE)

    def check_read(self, entity: Entity) -> None:
        """Raise unless the user may consume, purge, or bind to, `entity`."""
        self._check(entity, READ)

    def check_any(self, entity: Entity) -> None:
        """Raise unless the user may do anything at all with `entity`, and so may know that it exists."""
        permission = self._grants.permission(self.vhost)
        name = _checked_name(entity)
        if permission is None or not any(
            _is_match(_pattern(permission, access), name) for access in (CONFIGURE, WRITE, READ)
        ):
            raise self._refusal(entity)

    def check_write_exchange(self, name: str) -> None:
        """Raise unless the user may publish to the exchange `name`."""
        self._check(ExchangeName(self.vhost, name), WRITE)

    def check_read_queue(self, name: str) -> None:
        """Raise unless the user may consume from the queue `name`."""
        self._check(QueueName(self.vhost, name), READ)

    def restricts_topics(self, exchange: str) -> bool:
        """True if what the user may do with the topic exchange depends on the routing key."""
        return self._grants.topic_permission(self.vhost, exchange) is not None

    def check_topic_write(self, exchange: str, routing_key: str) -> None:
        """Raise unless the user may publish to the topic exchange with `routing_key`."""
        self._check_topic(exchange, WRITE, routing_key)

    def check_topic_read(self, exchange: str, routing_key: str) -> None:
        """Raise unless the user may bind to the topic exchange with `routing_key`."""
        self._check_topic(exchange, READ, routing_key)

    def _check(self, entity: Entity, access: str) -> None:
        permission = self._grants.permission(self.vhost)
        if permission is None:
            raise self._refusal(entity)
        pattern = _pattern(permission, access)
        # What most permissions say is quicker found out than looked up.
        if pattern == ANYTHING:
            return
        key = (entity, access)
        if self._is_known(key):
            return
        if not _is_match(pattern, _checked_name(entity)):
            raise self._refusal(entity)
        self._remember(key)

    def _check_topic(self, exchange: str, access: str, routing_key: str) -> None:
        permission = self._grants.topic_permission(self.vhost, exchange)
        if permission is None:
            return
        key = (exchange, access, routing_key)
        if self._is_known(key):
            return
        pattern = permission.write if access == WRITE else permission.read
        if not _is_match(expand_pattern(pattern, self.variables), routing_key):
            raise AccessRefused(
                f"access to topic '{routing_key}' in exchange '{exchange}' in vhost '{self.vhost}' "
                f"refused for user '{self.user}'"
            )
        self._remember(key)

    def _is_known(self, key: tuple[object, ...]) -> bool:
        if self._generation != self.generation:
            self._generation = self.generation
            self._allowed.clear()
        return key in self._allowed

    def _remember(self, key: tuple[object, ...]) -> None:
        if len(self._allowed) >= PERMISSIONS_CACHED_MAX:
            self._allowed.clear()
        self._allowed.add(key)

    def _refusal(self, entity: Entity) -> AccessRefused:
        shown = entity
        if isinstance(entity, ExchangeName):
            shown = ExchangeName(entity.vhost, _checked_name(entity))
        return AccessRefused(f"access to {shown} refused for user '{self.user}'")


def check_vhost(metadata: Metadata, user: User, vhost: str) -> None:
    """Raise NotAllowed unless there is a vhost of the name and `user` has permissions in it."""
    if metadata.vhost(vhost) is None:
        raise NotAllowed(f"vhost {vhost} not found")
    if grants_of(metadata, user).permission(vhost) is None:
        raise NotAllowed(f"access to vhost '{vhost}' refused for user '{user.name}'")


def expand_pattern(pattern: str, variables: Mapping[str, str]) -> str:
    """`pattern` with each `{name}` replaced; a value stands for itself, not for a pattern."""
    for name, value in variables.items():
        pattern = pattern.replace("{" + name + "}", regex.escape(value))
    return pattern


def _checked_name(entity: Entity) -> str:
    """The name that patterns are matched with: the default exchange has one of its own for that."""
    if not entity.name and isinstance(entity, ExchangeName):
        return DEFAULT_EXCHANGE_ALIAS
    return entity.name


def _pattern(permission: Permission, access: str) -> str:
    if access == CONFIGURE:
        return permission.configure
    return permission.write if access == WRITE else permission.read


def _is_match(pattern: str, name: str) -> bool:
    # An empty pattern allows nothing, as RabbitMQ has it: it stands for `^$`.
    return matches(pattern or "^$", name)
