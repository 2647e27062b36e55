"""Users of a directory, such as LDAP's: it says who they are, and their groups say what they may do.

1. The directory fails closed: whoever it does not name, for whatever reason, is not let in.
2. A name is a value. In a distinguished name it is escaped (RFC 4514), in a pattern it stands for itself.
3. What somebody may do is what the rules say of the groups of which they were a member as they logged in;
   a restriction of topics that the metadata has for their name holds as well.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import regex

from warren.access.grants import ExternalUser
from warren.limits import PERMISSIONS_CACHED_MAX
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission, Permissions, TopicPermission
from warren.model.patterns import ANYTHING, matches

# The parts of a distinguished name, each an attribute and its value, or several of them.
DistinguishedName = tuple[tuple[tuple[str, str], ...], ...]

_VARIABLE = re.compile(r"\$\{([a-z_]+)\}")
# Octets of UTF-8, or one character.
_ESCAPED = re.compile(r"((?:\\[0-9a-fA-F]{2})+)|\\(.)", re.DOTALL)
# Up to a comma, or a plus, that no backslash stands before.
_PART = re.compile(r"(?:[^\\,;]|\\.)+", re.DOTALL)
_VALUE = re.compile(r"(?:[^\\+]|\\.)+", re.DOTALL)
EVERYTHING = Permission(ANYTHING, ANYTHING, ANYTHING)

_SPECIAL = frozenset('",+<>;\\=#')


class DirectoryRefused(Exception):
    """The directory lets somebody not in; the message says why, for the log."""


class DirectoryUnavailable(Exception):
    """The directory did not say who somebody is; the message says why, for the log."""


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """Whom a directory knows: the name with which they log in, theirs there, and those of their groups."""

    name: str
    distinguished_name: str
    groups: frozenset[DistinguishedName]


class FindDirectoryEntry(Protocol):
    """Port: asks the directory; DirectoryRefused or DirectoryUnavailable if it names nobody."""

    def __call__(self, name: str, password: str, /) -> Awaitable[DirectoryEntry]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGrant:
    """What members of a group may do; everybody, if it names none. `vhost` may have `*` for anything."""

    group: str = ""
    vhost: str = "*"
    permission: Permission = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryRules:
    """What follows from being a member of a group."""

    # Pairs of a tag and a group.
    tags: tuple[tuple[str, str], ...] = ()
    grants: tuple[GroupGrant, ...] = ()


class DirectoryGrants:
    """Of somebody whom a directory knows."""

    __slots__ = ("_by_vhost", "_permissions", "_person", "_rules")

    def __init__(self, rules: DirectoryRules, person: DirectoryEntry, permissions: Permissions) -> None:
        self._rules = rules
        self._person = person
        self._permissions = permissions
        self._by_vhost: dict[str, Permission | None] = {}

    @property
    def generation(self) -> int:
        """Of the permissions of all users: those of topics count here."""
        return self._permissions.generation

    def permission(self, vhost: str) -> Permission | None:
        """What the rules for `vhost` say together."""
        if vhost not in self._by_vhost:
            if len(self._by_vhost) >= PERMISSIONS_CACHED_MAX:
                self._by_vhost.clear()
            self._by_vhost[vhost] = self._found(vhost)
        return self._by_vhost[vhost]

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """As it was set for the name."""
        return self._permissions.get_topic(self._person.name, vhost, exchange)

    def _found(self, vhost: str) -> Permission | None:
        values = variables(self._person.name) | {"vhost": vhost}
        here = [
            grant.permission
            for grant in self._rules.grants
            if is_member(self._person, grant.group, values) and matches(_wildcard(grant.vhost, values), vhost)
        ]
        if not here:
            return None
        return Permission(
            _either((permission.configure for permission in here), values),
            _either((permission.write for permission in here), values),
            _either((permission.read for permission in here), values),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryUser(ExternalUser):
    """A user whom a directory knows."""

    grants: DirectoryGrants


class Directory:
    """The directory of one node, and what its users may do."""

    __slots__ = ("_find", "_metadata", "_rules")

    def __init__(self, find: FindDirectoryEntry, rules: DirectoryRules, metadata: Metadata) -> None:
        self._find = find
        self._rules = rules
        self._metadata = metadata

    async def user_of(self, name: str, password: str) -> DirectoryUser:
        """Who logs in with these; DirectoryRefused or DirectoryUnavailable if that is nobody."""
        person = await self._find(name, password)
        values = variables(name)
        tags = (tag for tag, group in self._rules.tags if is_member(person, group, values))
        return DirectoryUser(
            name=name,
            password_hash=b"",
            hashing_algorithm="",
            tags=tuple(dict.fromkeys(tags)),
            limits={},
            grants=DirectoryGrants(self._rules, person, self._metadata.permissions),
        )


def variables(name: str) -> dict[str, str]:
    """What may stand in braces for the user `name`: of `DOMAIN\\user` also its parts."""
    domain, separator, user = name.partition("\\")
    parts = {"ad_domain": domain, "ad_user": user} if separator else {"ad_domain": "", "ad_user": name}
    return {"username": name, **parts}


def substitute(template: str, values: Mapping[str, str], escaped: Callable[[str], str]) -> str:
    """`template` with each `${name}` replaced by its value, `escaped`; a name that has none stays."""
    return _VARIABLE.sub(
        lambda found: escaped(values[found[1]]) if found[1] in values else found[0], template
    )


def substitute_distinguished_name(template: str, values: Mapping[str, str]) -> str:
    """A distinguished name; what is nothing but a variable is not a part of one, and stays as it is."""
    if _VARIABLE.fullmatch(template):
        return substitute(template, values, str)
    return substitute(template, values, escaped_value)


def escaped_value(value: str) -> str:
    """`value` as it stands in a distinguished name (RFC 4514 §2.4)."""
    octets = []
    for place, character in enumerate(value):
        is_edge = character == " " and place in (0, len(value) - 1)
        if character in _SPECIAL or is_edge or ord(character) < 0x20:
            octets.append(f"\\{ord(character):02x}")
        else:
            octets.append(character)
    return "".join(octets)


def parse_distinguished_name(name: str) -> DistinguishedName:
    """`name` in its parts, so that what is written in two ways is equal: in any case, with any spaces."""
    return tuple(tuple(sorted(_pair(pair) for pair in _VALUE.findall(part))) for part in _PART.findall(name))


def is_member(person: DirectoryEntry, group: str, values: Mapping[str, str]) -> bool:
    """True if `person` belongs to `group`, in which variables may stand; everybody does to none."""
    return (
        not group or parse_distinguished_name(substitute_distinguished_name(group, values)) in person.groups
    )


def _pair(written: str) -> tuple[str, str]:
    attribute, _, value = written.partition("=")
    # A space alone may stand at the edge, and none that is escaped; other white space is a part of the name.
    value = value.lstrip(" ")
    while value.endswith(" ") and not value.endswith("\\ "):
        value = value[:-1]
    return attribute.strip(" ").lower(), _ESCAPED.sub(_unescaped, value).lower()


def _unescaped(found: "re.Match[str]") -> str:
    if found[1] is None:
        return found[2]
    return bytes.fromhex(found[1].replace("\\", "")).decode("utf-8", "surrogateescape")


def _wildcard(template: str, values: Mapping[str, str]) -> str:
    parts = (regex.escape(substitute(part, values, str)) for part in template.split("*"))
    return r"^" + r"[\s\S]*".join(parts) + r"\Z"


def _either(patterns: Iterable[str], values: Mapping[str, str]) -> str:
    """Found where any of `patterns` is; none of them allows anything if it is empty."""
    found = list(dict.fromkeys(substitute(pattern, values, regex.escape) for pattern in patterns if pattern))
    if ANYTHING in found:
        return ANYTHING
    return "|".join(f"(?:{pattern})" for pattern in found)
