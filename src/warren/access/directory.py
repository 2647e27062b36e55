"""Users and groups of an external directory such as LDAP: authentication, and permissions by group.

1. The directory fails closed: a user whom it does not confirm, for whatever reason, is refused.
2. Names are data: they are escaped in a distinguished name (RFC 4514) and match literally in a pattern.
3. Permissions follow from the rules for the groups to which the user belonged at login; topic permissions in
   the metadata for the same user name apply as well.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from warren.access.grants import LDAP, ExternalUser
from warren.limits import PERMISSIONS_CACHED_MAX
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission, Permissions, TopicPermission
from warren.model.patterns import ANYTHING, matches

# The relative distinguished names, each a set of attribute-value pairs.
DistinguishedName = tuple[tuple[tuple[str, str], ...], ...]

_VARIABLE = re.compile(r"\$\{([a-z_]+)\}")
# UTF-8 bytes in hexadecimal, or one character.
_ESCAPED = re.compile(r"((?:\\[0-9a-fA-F]{2})+)|\\(.)", re.DOTALL)
# Splits at a comma or plus sign that is not escaped by a backslash.
_PART = re.compile(r"(?:[^\\,;]|\\.)+", re.DOTALL)
_VALUE = re.compile(r"(?:[^\\+]|\\.)+", re.DOTALL)
EVERYTHING = Permission(ANYTHING, ANYTHING, ANYTHING)

_SPECIAL = frozenset('",+<>;\\=#')


class DirectoryRefused(Exception):
    """The directory refused the credentials; the message gives the reason for the log."""


class DirectoryUnavailable(Exception):
    """The directory could not be asked or did not answer; the message gives the reason for the log."""


class DirectoryEntry(Struct, frozen=True):
    """A user's entry in the directory: login name, distinguished name, and the names of the groups."""

    name: str
    distinguished_name: str
    groups: frozenset[DistinguishedName]


class FindDirectoryEntry(Protocol):
    """Port: looks up and authenticates a user; raises DirectoryRefused or DirectoryUnavailable."""

    def __call__(self, name: str, password: str, /) -> Awaitable[DirectoryEntry]: ...


class GroupGrant(Struct, frozen=True, kw_only=True):
    """Permissions of the members of `group`, or of all users if it is empty.

    `vhost` is `*` for every vhost.
    """

    group: str = ""
    vhost: str = "*"
    permission: Permission = EVERYTHING


class DirectoryRules(Struct, frozen=True, kw_only=True):
    """The permissions and tags that follow from group membership."""

    # Pairs of a user tag and the group that grants it.
    tags: tuple[tuple[str, str], ...] = ()
    grants: tuple[GroupGrant, ...] = ()


class DirectoryGrants:
    """The permissions of a user who was authenticated by the directory."""

    __slots__ = ("_by_vhost", "_permissions", "_person", "_rules")

    def __init__(self, rules: DirectoryRules, person: DirectoryEntry, permissions: Permissions) -> None:
        self._rules = rules
        self._person = person
        self._permissions = permissions
        self._by_vhost: dict[str, Permission | None] = {}

    @property
    def generation(self) -> int:
        """The generation of the metadata's permissions; topic permissions apply to directory users too."""
        return self._permissions.generation

    def permission(self, vhost: str) -> Permission | None:
        """The union of all rules for `vhost` that apply to the user; None if no rule applies."""
        if vhost not in self._by_vhost:
            if len(self._by_vhost) >= PERMISSIONS_CACHED_MAX:
                self._by_vhost.clear()
            self._by_vhost[vhost] = self._found(vhost)
        return self._by_vhost[vhost]

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """The topic permission that the metadata has for the user's name; None if there is none."""
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


class DirectoryUser(ExternalUser, frozen=True, kw_only=True):
    """A user who was authenticated by a directory."""

    grants: DirectoryGrants
    issuer: str = LDAP


class Directory:
    """The directory of one node and the rules that grant permissions to its users."""

    __slots__ = ("_find", "_metadata", "_rules")

    def __init__(self, find: FindDirectoryEntry, rules: DirectoryRules, metadata: Metadata) -> None:
        self._find = find
        self._rules = rules
        self._metadata = metadata

    async def user_of(self, name: str, password: str) -> DirectoryUser:
        """Authenticate `name` with `password`; DirectoryRefused or DirectoryUnavailable if that fails."""
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
    """The variables that rules may use for the user `name`; of `DOMAIN\\user` also the two parts."""
    domain, separator, user = name.partition("\\")
    parts = {"ad_domain": domain, "ad_user": user} if separator else {"ad_domain": "", "ad_user": name}
    return {"username": name, **parts}


def substitute(template: str, values: Mapping[str, str], escaped: Callable[[str], str]) -> str:
    """`template` with each `${name}` replaced by its value, passed through `escaped`.

    Others stay as they are.
    """
    return _VARIABLE.sub(
        lambda found: escaped(values[found[1]]) if found[1] in values else found[0], template
    )


def substitute_distinguished_name(template: str, values: Mapping[str, str]) -> str:
    """`template` with its variables replaced by values escaped for a distinguished name.

    A template that consists of one variable is replaced by the value unescaped.
    """
    if _VARIABLE.fullmatch(template):
        return substitute(template, values, str)
    return substitute(template, values, escaped_value)


def escaped_value(value: str) -> str:
    """`value` escaped for use in a distinguished name (RFC 4514 §2.4)."""
    data = []
    for place, character in enumerate(value):
        is_edge = character == " " and place in (0, len(value) - 1)
        if character in _SPECIAL or is_edge or ord(character) < 0x20:
            data.append(f"\\{ord(character):02x}")
        else:
            data.append(character)
    return "".join(data)


def parse_distinguished_name(name: str) -> DistinguishedName:
    """The normalized parts of a distinguished name: names that differ in case or spacing only are equal."""
    return tuple(tuple(sorted(_pair(pair) for pair in _VALUE.findall(part))) for part in _PART.findall(name))


def is_member(person: DirectoryEntry, group: str, values: Mapping[str, str]) -> bool:
    """True if `person` belongs to `group`, in which variables are replaced.

    All users belong to the empty group.
    """
    return (
        not group or parse_distinguished_name(substitute_distinguished_name(group, values)) in person.groups
    )


def _pair(written: str) -> tuple[str, str]:
    attribute, _, value = written.partition("=")
    # Only unescaped spaces are trimmed at the edges; other white space belongs to the value.
    value = value.lstrip(" ")
    while value.endswith(" ") and not value.endswith("\\ "):
        value = value[:-1]
    return attribute.strip(" ").lower(), _ESCAPED.sub(_unescaped, value).lower()


def _unescaped(found: "re.Match[str]") -> str:
    if found[1] is None:
        return found[2]
    return bytes.fromhex(found[1].replace("\\", "")).decode("utf-8", "surrogateescape")


def _wildcard(template: str, values: Mapping[str, str]) -> str:
    parts = (re.escape(substitute(part, values, str)) for part in template.split("*"))
    return r"^" + r"[\s\S]*".join(parts) + r"\z"


def _either(patterns: Iterable[str], values: Mapping[str, str]) -> str:
    """A pattern that matches where any of `patterns` does.

    Empty, so that it allows nothing, if all are empty.
    """
    found = list(dict.fromkeys(substitute(pattern, values, re.escape) for pattern in patterns if pattern))
    if ANYTHING in found:
        return ANYTHING
    return "|".join(f"(?:{pattern})" for pattern in found)
