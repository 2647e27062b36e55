"""OAuth 2 scopes, as RabbitMQ reads them: the permissions that a token grants.

configure:VHOST/NAME   write:VHOST/NAME/ROUTING-KEY   read:VHOST/NAME   tag:administrator

Each part is a wildcard pattern: `*` matches any text, and `%2F` and other percent-encodings a character; or,
in the other syntax, a regular expression of the whole text. `{vhost}` in a part is the virtual host, and the
name of a claim in braces its value. Only scopes with a routing key permit publishing to a topic exchange or
binding it. Other scopes are ignored.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from urllib.parse import unquote

from msgspec import Struct

from warren.limits import TOKEN_SCOPES_MAX
from warren.limits_access import SCOPE_PATTERN_SIZE_MAX
from warren.metadata.permissions import Permission, TopicPermission
from warren.model.patterns import ANYTHING, matches, pattern_error

_ACCESSES = ("configure", "write", "read")
_TAG = "tag:"
_PARTS = (2, 3)
# A negative lookahead of the empty string, which matches nothing.
_NOTHING = "(?!)"
_VARIABLE = re.compile(r"\{([A-Za-z0-9_:./-]+)\}")
_VHOST = "vhost"
_NO_VARIABLES: Mapping[str, str] = {}
# What a topic permission would replace by the name of the user.
_USERNAME = "{username}"
# RabbitMQ refuses options, callouts, comments and verbs. Names and numbers of groups would be those of other
# scopes, since all of them become one expression.
_REFUSED = re.compile(r"\(\?(?:[A-Za-z#&+\-\d(]|<[^=!]|')|\(\*|\\[gk]")


class ScopeSyntax(Enum):
    """How the parts of a scope are written; the values are RabbitMQ's names."""

    WILDCARD = "wildcard"
    REGEX = "regex"


class _Scope(Struct, frozen=True):
    """One scope, its parts as regular expressions; `routing_key` matches nothing if there is none."""

    access: str
    vhost: str
    name: str
    routing_key: str


class Scopes:
    """The scopes of one token, without the prefix of the resource server."""

    __slots__ = ("_claims", "_of_each_vhost", "_scopes", "_syntax", "tags")

    def __init__(
        self,
        words: Iterable[str],
        syntax: ScopeSyntax = ScopeSyntax.WILDCARD,
        claims: Mapping[str, object] | None = None,
    ) -> None:
        found = list(words)[:TOKEN_SCOPES_MAX]
        self._syntax = syntax
        self._claims = {name: value for name, value in (claims or {}).items() if isinstance(value, str)}
        # Those that name the variable for the virtual host are read for each of them.
        self._of_each_vhost = [word for word in found if f"{{{_VHOST}}}" in word]
        self._scopes = self._read((word for word in found if word not in self._of_each_vhost), self._claims)
        # RabbitMQ's user tags: administrator, monitoring, …
        self.tags = tuple(word.removeprefix(_TAG) for word in found if word.startswith(_TAG))

    def permission(self, vhost: str) -> Permission | None:
        """The permissions that the scopes grant in `vhost`; None if no scope names it."""
        here = self._here(vhost)
        if not here:
            return None
        configure, write, read = (
            self._either(scope.name for scope in here if scope.access == access) for access in _ACCESSES
        )
        return Permission(configure, write, read)

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission:
        """The routing keys that the scopes permit for publishing to `exchange` and for binding to it."""
        here = [scope for scope in self._here(vhost) if matches(self._either((scope.name,)), exchange)]
        write, read = (
            self._either(scope.routing_key for scope in here if scope.access == access)
            for access in _ACCESSES[1:]
        )
        return TopicPermission(write, read)

    def _here(self, vhost: str) -> list[_Scope]:
        scopes = self._scopes
        if self._of_each_vhost:
            scopes = [*scopes, *self._read(self._of_each_vhost, {**self._claims, _VHOST: vhost})]
        return [scope for scope in scopes if matches(self._either((scope.vhost,)), vhost)]

    def _read(self, words: Iterable[str], variables: Mapping[str, str]) -> list[_Scope]:
        read = wildcard_pattern if self._syntax is ScopeSyntax.WILDCARD else _regular
        found = []
        for word in words:
            access, _, resource = word.partition(":")
            written = resource.split("/")
            if access not in _ACCESSES or len(written) not in _PARTS:
                continue
            parts = [part for one in written if (part := read(one, variables)) is not None]
            if len(parts) == len(written):
                vhost, name, *routing_key = parts
                found.append(_Scope(access, vhost, name, *(routing_key or [_NOTHING])))
        return found

    def _either(self, patterns: Iterable[str]) -> str:
        """The pattern of the texts that one of `patterns` matches from the first to the last byte."""
        found = list(dict.fromkeys(patterns))
        if self._syntax is ScopeSyntax.REGEX:
            # The groups of each alternative are counted from one, as if it were alone.
            return r"\A(?|" + "|".join(found) + r")\z" if found else _NOTHING
        if wildcard_pattern("*") in found:
            return ANYTHING
        return "|".join(found) or _NOTHING


def wildcard_pattern(written: str, variables: Mapping[str, str] = _NO_VARIABLES) -> str:
    """The regular expression of the texts that the wildcard pattern `written` matches."""
    parts = (
        _literal(text) if value is None else re.escape(value) for text, value in _pieces(written, variables)
    )
    return rf"^{''.join(parts)}\z"


def _literal(text: str) -> str:
    # Braces are escaped as well, so that a token cannot contain variables of topic permissions.
    return r"[\s\S]*".join(re.escape(unquote(part, errors="surrogateescape")) for part in text.split("*"))


def _regular(written: str, variables: Mapping[str, str]) -> str | None:
    """`written` as a part of a larger expression; None if it is refused or is no regular expression."""
    if len(written.encode("utf-8", "surrogatepass")) > SCOPE_PATTERN_SIZE_MAX or _REFUSED.search(written):
        return None
    source = "".join(
        text if value is None else re.escape(value) for text, value in _pieces(written, variables)
    ).replace(_USERNAME, "\\" + _USERNAME)
    # Alone, so that it closes no group of what it becomes a part of, and as one, so that it leaves none open.
    return source if pattern_error(source) is None and pattern_error(f"(?:{source})") is None else None


def _pieces(written: str, variables: Mapping[str, str]) -> Iterable[tuple[str, str | None]]:
    """The pieces of `written`: text, or the name of a variable with its value."""
    end = 0
    for found in _VARIABLE.finditer(written):
        if found[1] in variables:
            yield written[end : found.start()], None
            yield found[1], variables[found[1]]
            end = found.end()
    yield written[end:], None
