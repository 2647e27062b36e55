"""The permissions and topic permissions of users."""

from msgspec import Struct

from warren.metadata.commands import (
    DONE,
    ClearPermissions,
    ClearTopicPermissions,
    Outcome,
    Reply,
    SetPermissions,
    SetTopicPermissions,
)
from warren.metadata.events import Listener, PermissionsChanged
from warren.model.patterns import pattern_error


class Permission(Struct, frozen=True):
    """The patterns of the names that a user may configure, write to and read from."""

    configure: str
    write: str
    read: str


class TopicPermission(Struct, frozen=True):
    """The patterns of the routing keys with which a user may publish and bind."""

    write: str
    read: str


class Permissions:
    """Permissions and topic permissions by user and vhost."""

    __slots__ = ("_notify", "by_user_and_vhost", "generation", "topics_by_user_and_vhost")

    def __init__(self, notify: Listener) -> None:
        self._notify = notify
        self.by_user_and_vhost: dict[tuple[str, str], Permission] = {}
        self.topics_by_user_and_vhost: dict[tuple[str, str], dict[str, TopicPermission]] = {}
        # Advances with every change; a cached result is stored with this number.
        self.generation = 0

    def get(self, user: str, vhost: str) -> Permission | None:
        """The permissions of `user` in `vhost`; None if the user has no access."""
        return self.by_user_and_vhost.get((user, vhost))

    def get_topic(self, user: str, vhost: str, exchange: str) -> TopicPermission | None:
        """The topic permission of `user` on an exchange; None if there is none."""
        topics = self.topics_by_user_and_vhost.get((user, vhost))
        return None if topics is None else topics.get(exchange)

    def put(self, command: SetPermissions) -> Reply:
        """Set permissions; REFUSED if a pattern is not a regular expression."""
        refusal = pattern_refusal(command.configure, command.write, command.read)
        if refusal is not None:
            return refusal
        key = (command.user, command.vhost)
        self.by_user_and_vhost[key] = Permission(command.configure, command.write, command.read)
        self._changed(*key)
        return DONE

    def clear(self, command: ClearPermissions) -> Reply:
        """Remove permissions, if there are any."""
        if self.by_user_and_vhost.pop((command.user, command.vhost), None) is not None:
            self._changed(command.user, command.vhost)
        return DONE

    def put_topic(self, command: SetTopicPermissions) -> Reply:
        """Set topic permissions; REFUSED if a pattern is not a regular expression."""
        refusal = pattern_refusal(command.write, command.read)
        if refusal is not None:
            return refusal
        topics = self.topics_by_user_and_vhost.setdefault((command.user, command.vhost), {})
        topics[command.exchange] = TopicPermission(command.write, command.read)
        self._changed(command.user, command.vhost)
        return DONE

    def clear_topic(self, command: ClearTopicPermissions) -> Reply:
        """Remove the topic permissions of one exchange, or of all."""
        key = (command.user, command.vhost)
        topics = self.topics_by_user_and_vhost.get(key)
        if topics is not None:
            if command.exchange is None:
                topics.clear()
            topics.pop(command.exchange or "", None)
            if not topics:
                del self.topics_by_user_and_vhost[key]
            self._changed(*key)
        return DONE

    def forget_user(self, user: str) -> None:
        """Remove all permissions of `user`."""
        self._forget([key for key in self._keys() if key[0] == user])

    def forget_vhost(self, vhost: str) -> None:
        """Remove all permissions in `vhost`."""
        self._forget([key for key in self._keys() if key[1] == vhost])

    def _keys(self) -> dict[tuple[str, str], None]:
        return dict.fromkeys([*self.by_user_and_vhost, *self.topics_by_user_and_vhost])

    def _forget(self, keys: list[tuple[str, str]]) -> None:
        for key in keys:
            self.by_user_and_vhost.pop(key, None)
            self.topics_by_user_and_vhost.pop(key, None)
            self._changed(*key)

    def _changed(self, user: str, vhost: str) -> None:
        self.generation += 1
        self._notify(PermissionsChanged(user, vhost))


def pattern_refusal(*patterns: str) -> Reply | None:
    """The refusal if one of `patterns` is not a regular expression."""
    for pattern in patterns:
        error = pattern_error(pattern)
        if error is not None:
            text = f"invalid regular expression '{pattern}': {error[0]} at {error[1]}"
            return Reply(Outcome.REFUSED, text)
    return None
