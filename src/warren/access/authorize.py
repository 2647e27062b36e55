"""Authorization: the permissions of one user in one vhost, as checked by one channel.

Results are cached until any permission changes, so that a revoked permission takes effect at once; RabbitMQ
caches them for the life of the channel.
"""

import re
from collections.abc import Mapping

from warren.access.grants import Grants, grants_of
from warren.access.web_grants import WebGrants, WebQuestion
from warren.errors import AccessRefused, NotAllowed, Undecided
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
    """Checks the permissions of `user` in `vhost`; a refusal is an AccessRefused with RabbitMQ's text.

    It is an Undecided if a web server has to be asked first (`access/web_grants`).
    """

    __slots__ = (
        "_allowed", "_decisions", "_generation", "_grants", "_web", "identity", "user", "variables", "vhost",
    )  # fmt: skip

    def __init__(self, grants: Grants, user: User, vhost: str) -> None:
        self._grants = grants
        # Of a user whose permissions a web server decides: what asks it, and its answers.
        self._web = grants if isinstance(grants, WebGrants) else None
        self._decisions = None if self._web is None else self._web.decisions()
        self.user = user.name
        # What is compared to tell the user from others; the name is what is shown.
        self.identity = user.identity
        self.vhost = vhost
        # The values of the variables in topic permissions.
        self.variables: Mapping[str, str] = {"username": user.name, "vhost": vhost}
        # Operations allowed since the permissions last changed. A refusal closes the channel, so none is
        # cached.
        self._allowed: set[tuple[object, ...]] = set()
        self._generation = -1

    @property
    def generation(self) -> int:
        """A counter that advances whenever a result may have changed, for callers that cache results."""
        return self._grants.generation

    def check_configure(self, entity: Entity) -> None:
        """Raise AccessRefused unless the user may create and delete `entity`."""
        self._check(entity, CONFIGURE)

    def check_write(self, entity: Entity) -> None:
        """Raise AccessRefused unless the user may publish to `entity` or bind it."""
        self._check(entity, WRITE)

    def check_read(self, entity: Entity) -> None:
        """Raise AccessRefused unless the user may consume from, purge, or bind to `entity`."""
        self._check(entity, READ)

    def check_read_or_write(self, entity: Entity) -> None:
        """Raise AccessRefused unless the user may read or write `entity`."""
        try:
            self._check(entity, READ)
        except Undecided:
            raise
        except AccessRefused:
            self._check(entity, WRITE)

    def check_any(self, entity: Entity) -> None:
        """Raise AccessRefused unless the user has any permission on `entity`, and may know that it exists."""
        accesses = (CONFIGURE, WRITE, READ)
        if self._web is not None:
            web = self._web
            if all(self._web_refusal(web, entity, access) is not None for access in accesses):
                raise self._refusal(entity)
            return
        permission = self._grants.permission(self.vhost)
        name = _checked_name(entity)
        if permission is None or not any(
            _is_match(_pattern(permission, access), name) for access in accesses
        ):
            raise self._refusal(entity)

    def check_write_exchange(self, name: str) -> None:
        """Raise AccessRefused unless the user may publish to the exchange `name`."""
        self._check(ExchangeName(self.vhost, name), WRITE)

    def check_read_queue(self, name: str) -> None:
        """Raise AccessRefused unless the user may consume from the queue `name`."""
        self._check(QueueName(self.vhost, name), READ)

    def restricts_topics(self, exchange: str) -> bool:
        """True if the user's permissions on the topic exchange depend on the routing key."""
        return self._grants.topic_permission(self.vhost, exchange) is not None

    def check_topic_write(self, exchange: str, routing_key: str) -> None:
        """Raise AccessRefused unless the user may publish to the topic exchange with `routing_key`."""
        self._check_topic(exchange, WRITE, routing_key)

    def check_topic_read(self, exchange: str, routing_key: str) -> None:
        """Raise AccessRefused unless the user may bind to the topic exchange with `routing_key`."""
        self._check_topic(exchange, READ, routing_key)

    def _check(self, entity: Entity, access: str) -> None:
        if self._web is not None:
            note = self._web_refusal(self._web, entity, access)
            if note is not None:
                raise self._refusal(entity, note)
            return
        permission = self._grants.permission(self.vhost)
        if permission is None:
            raise self._refusal(entity)
        pattern = _pattern(permission, access)
        # The most frequent patterns are decided faster than a cache lookup.
        if pattern == ANYTHING:
            return
        key = (entity, access)
        if self._is_known(key):
            return
        if not _is_match(pattern, _checked_name(entity)):
            raise self._refusal(entity)
        self._remember(key)

    def _web_refusal(self, grants: WebGrants, entity: Entity, access: str) -> str | None:
        """None if the web server allows it, else what the refusal says behind the name of the user."""
        kind = "exchange" if isinstance(entity, ExchangeName) else "queue"
        return self._note_of(grants.about_resource(entity.vhost, kind, _checked_name(entity), access))

    def _note_of(self, question: WebQuestion) -> str | None:
        decisions = self._decisions
        assert decisions is not None
        return None if decisions.is_allowed(question) else decisions.note(question)

    def _check_topic(self, exchange: str, access: str, routing_key: str) -> None:
        if self._web is not None:
            note = self._note_of(self._web.about_topic(self.vhost, exchange, access, routing_key))
            if note is not None:
                raise self._topic_refusal(exchange, routing_key, note)
            return
        permission = self._grants.topic_permission(self.vhost, exchange)
        if permission is None:
            return
        key = (exchange, access, routing_key)
        if self._is_known(key):
            return
        pattern = permission.write if access == WRITE else permission.read
        if not _is_match(expand_pattern(pattern, self.variables), routing_key):
            raise self._topic_refusal(exchange, routing_key)
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

    def _refusal(self, entity: Entity, note: str = "") -> AccessRefused:
        shown = entity
        if isinstance(entity, ExchangeName):
            shown = ExchangeName(entity.vhost, _checked_name(entity))
        return AccessRefused(f"access to {shown} refused for user '{self.user}'{note}")

    def _topic_refusal(self, exchange: str, routing_key: str, note: str = "") -> AccessRefused:
        return AccessRefused(
            f"access to topic '{routing_key}' in exchange '{exchange}' in vhost '{self.vhost}' "
            f"refused for user '{self.user}'{note}"
        )


def check_vhost(metadata: Metadata, user: User, vhost: str) -> None:
    """Raise NotAllowed unless the vhost exists and `user` has permissions in it; or Undecided."""
    if metadata.vhost(vhost) is None:
        raise NotAllowed(f"vhost {vhost} not found")
    grants = grants_of(metadata, user)
    if grants.permission(vhost) is None:
        note = grants.vhost_note(vhost) if isinstance(grants, WebGrants) else ""
        raise NotAllowed(f"access to vhost '{vhost}' refused for user '{user.name}'{note}")


def expand_pattern(pattern: str, variables: Mapping[str, str]) -> str:
    """`pattern` with each `{name}` replaced by the variable's value, escaped so that it matches literally."""
    for name, value in variables.items():
        pattern = pattern.replace("{" + name + "}", re.escape(value))
    return pattern


def _checked_name(entity: Entity) -> str:
    """The name that patterns are matched against; the default exchange is matched as `amq.default`."""
    if not entity.name and isinstance(entity, ExchangeName):
        return DEFAULT_EXCHANGE_ALIAS
    return entity.name


def _pattern(permission: Permission, access: str) -> str:
    if access == CONFIGURE:
        return permission.configure
    return permission.write if access == WRITE else permission.read


def _is_match(pattern: str, name: str) -> bool:
    # An empty pattern stands for `^$`, as in RabbitMQ, and so allows nothing.
    return matches(pattern or "^$", name)
