"""OAuth 2 scopes, as RabbitMQ reads them: the permissions that a token grants.

configure:VHOST/NAME   write:VHOST/NAME/ROUTING-KEY   read:VHOST/NAME   tag:administrator

Each part is a wildcard pattern: `*` matches any text, and `%2F` and other percent-encodings a character. Only
scopes with a routing key permit publishing to a topic exchange or binding it. Other scopes are ignored.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from msgspec import Struct

from warren.limits import TOKEN_SCOPES_MAX
from warren.metadata.permissions import Permission, TopicPermission
from warren.model.patterns import ANYTHING, matches

_ACCESSES = ("configure", "write", "read")
_TAG = "tag:"
_PARTS = (2, 3)
# A negative lookahead of the empty string, which matches nothing.
_NOTHING = "(?!)"


class _Scope(Struct, frozen=True):
    """One scope, its parts as regular expressions; `routing_key` matches nothing if there is none."""

    access: str
    vhost: str
    name: str
    routing_key: str


class Scopes:
    """The scopes of one token, without the prefix of the resource server."""

    __slots__ = ("_scopes", "tags")

    def __init__(self, words: Iterable[str]) -> None:
        found = list(words)[:TOKEN_SCOPES_MAX]
        self._scopes = [scope for word in found if (scope := _scope(word)) is not None]
        # RabbitMQ's user tags: administrator, monitoring, …
        self.tags = tuple(word.removeprefix(_TAG) for word in found if word.startswith(_TAG))

    def permission(self, vhost: str) -> Permission | None:
        """The permissions that the scopes grant in `vhost`; None if no scope names it."""
        here = [scope for scope in self._scopes if matches(scope.vhost, vhost)]
        if not here:
            return None
        configure, write, read = (
            _either(scope.name for scope in here if scope.access == access) for access in _ACCESSES
        )
        return Permission(configure, write, read)

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission:
        """The routing keys that the scopes permit for publishing to `exchange` and for binding to it."""
        here = [
            scope for scope in self._scopes if matches(scope.vhost, vhost) and matches(scope.name, exchange)
        ]
        write, read = (
            _either(scope.routing_key for scope in here if scope.access == access) for access in _ACCESSES[1:]
        )
        return TopicPermission(write, read)


def _scope(word: str) -> _Scope | None:
    access, _, resource = word.partition(":")
    parts = resource.split("/")
    if access not in _ACCESSES or len(parts) not in _PARTS:
        return None
    vhost, name, *routing_key = map(_pattern, parts)
    return _Scope(access, vhost, name, *(routing_key or [_NOTHING]))


def _pattern(wildcard: str) -> str:
    # Braces are escaped as well, so that a token cannot contain variables.
    parts = (re.escape(unquote(part, errors="surrogateescape")) for part in wildcard.split("*"))
    return r"^" + r"[\s\S]*".join(parts) + r"\z"


def _either(patterns: Iterable[str]) -> str:
    found = list(dict.fromkeys(patterns))
    if _pattern("*") in found:
        return ANYTHING
    return "|".join(found) or _NOTHING
