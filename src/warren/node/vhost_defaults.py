"""What each new virtual host gets: RabbitMQ's `default_users`, `default_policies` and `default_limits`.

    default_users.alice.vhost_pattern = ^tenant-       default_limits.vhosts.1.pattern = ^tenant-
    default_users.alice.password = …                   default_limits.vhosts.1.max_queues = 100
    default_policies.operator.short.vhost_pattern = ^tenant-
    default_policies.operator.short.max_length = 1000

A pattern is found anywhere in a name; without one it matches every name. As in RabbitMQ, a user that exists
keeps its password and tags, and virtual hosts that exist get nothing.
"""

import re
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from warren.metadata.commands import (
    Json,
    MetadataCommand,
    PutUser,
    Reply,
    SetPermissions,
    SetPolicy,
    SetVhostLimits,
)
from warren.metadata.definitions_import import DEFAULT_HASHING, PasswordHasher
from warren.metadata.machine import Metadata
from warren.metadata.parameters import limits_refusal
from warren.metadata.policies import checked_policy
from warren.model.patterns import ANYTHING, matches, new_pattern_error
from warren.node import vhost_settings
from warren.node.config import Config
from warren.node.config_file import ConfigError
from warren.node.setting_types import Family
from warren.node.values import InvalidValue, integer

_USER_KEYS = ("vhost_pattern", "password", "tags", "configure", "write", "read")
_VHOST_PATTERN, _PATTERN = "vhost_pattern", "pattern"
_LIMITS = ("max_connections", "max_queues")
# A part of some keys of policies.
_CLASSIC = ".classic_queues"
_MIRRORING = ("classic_queues.ha_mode", "classic_queues.ha_params", "classic_queues.ha_sync_mode")
_UNITS_MS = {
    "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "f": 1_209_600_000,
}  # fmt: skip
_DURATION = re.compile(r"(?:\d{1,12}(?:ms|[smhdwf]))+", re.IGNORECASE)
_PART = re.compile(r"(\d+)(ms|[smhdwf])", re.IGNORECASE)
# In these settings RabbitMQ's units are powers of 1,024, whatever they are called.
_SIZE_UNITS = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}
_SIZE = re.compile(r"(\d{1,19})([a-z]*)", re.IGNORECASE)


class _User(Struct, frozen=True, kw_only=True):
    """A user of the virtual hosts whose name matches a pattern."""

    vhost_pattern: str
    # What creates the user.
    account: PutUser
    configure: str
    write: str
    read: str


class VhostDefaults(Struct, frozen=True, kw_only=True):
    """What new virtual hosts get, by patterns of their names."""

    users: tuple[_User, ...] = ()
    policies: tuple[tuple[str, SetPolicy], ...] = ()
    limits: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    # Keys that have no effect.
    warnings: tuple[str, ...] = ()

    def commands(self, vhost: str, metadata: Metadata) -> list[MetadataCommand]:
        """The commands for the new virtual host `vhost`."""
        found: list[MetadataCommand] = []
        limits = next((limits for pattern, limits in self.limits if matches(pattern, vhost)), {})
        if limits:
            found.append(SetVhostLimits(vhost=vhost, limits=limits))
        for pattern, policy in self.policies:
            if matches(pattern, vhost):
                found.append(replace(policy, vhost=vhost))
        for user in self.users:
            if matches(user.vhost_pattern, vhost):
                name = user.account.name
                if name not in metadata.users.by_name:
                    found.append(user.account)
                found.append(
                    SetPermissions(
                        user=name, vhost=vhost, configure=user.configure, write=user.write, read=user.read
                    )
                )
        return found


def vhost_defaults(config: Config, hash_password: PasswordHasher) -> VhostDefaults:
    """Read what new virtual hosts get. Raises ConfigError, which names the line of what is wrong."""
    warnings: list[str] = []
    reader = _Reader(config, warnings.append)
    return VhostDefaults(
        users=reader.users(hash_password),
        policies=reader.policies(),
        limits=reader.limits(),
        warnings=tuple(warnings),
    )


class _Reader:
    """Reads the keys of one configuration."""

    def __init__(self, config: Config, warn: Callable[[str], None]) -> None:
        self._config = config
        self._warn = warn

    def users(self, hash_password: PasswordHasher) -> tuple[_User, ...]:
        """The users of `default_users`."""
        users = []
        for name, values in self._grouped(vhost_settings.USERS, "").items():
            key = f"{vhost_settings.USERS.key}.{name}"
            for attribute in values:
                self._known(f"{key}.{attribute}", attribute, _USER_KEYS)
            hashed = hash_password(values["password"]) if "password" in values else None
            tags = (tag.strip() for tag in values.get("tags", "").split(","))
            patterns = {
                attribute: self._pattern(f"{key}.{attribute}", values.get(attribute, ANYTHING))
                for attribute in (_VHOST_PATTERN, "configure", "write", "read")
            }
            account = PutUser(
                name=name,
                # A user without a password cannot log in with one.
                password_hash=b"" if hashed is None else hashed.salted_hash,
                hashing_algorithm=DEFAULT_HASHING if hashed is None else hashed.algorithm,
                tags=tuple(tag for tag in tags if tag),
            )
            users.append(_User(account=account, **patterns))
        return tuple(users)

    def policies(self) -> tuple[tuple[str, SetPolicy], ...]:
        """The policies of `default_policies.operator`, each with the pattern of its virtual hosts."""
        policies = []
        for name, values in self._grouped(vhost_settings.POLICIES, "operator.").items():
            key = f"{vhost_settings.POLICIES.key}.operator.{name}"
            where = self._pattern(f"{key}.{_VHOST_PATTERN}", values.pop(_VHOST_PATTERN, ANYTHING))
            queues, kinds = values.pop("queue_pattern", ANYTHING), values.pop("apply_to", "all")
            definition: dict[str, Json] = {}
            for attribute, text in values.items():
                full = f"{key}.{attribute}"
                if attribute in _MIRRORING:
                    place = self._config.place(full)
                    self._warn(f"{place}: {full} has no effect: classic queues are not mirrored")
                    continue
                self._known(full, attribute, _POLICY_VALUES)
                setting = attribute.removeprefix("classic_queues.").replace("_", "-")
                definition[setting] = self._value(full, _POLICY_VALUES[attribute], text)
            command = SetPolicy(
                vhost="", name=name, pattern=queues, definition=definition, apply_to=kinds, is_operator=True
            )
            checked = checked_policy(command) if definition else None
            if isinstance(checked, Reply):
                first = f"{key}.{next(iter(values))}"
                raise ConfigError(f"{self._config.place(first)}: {key}: {checked.text.strip()}")
            if checked is not None:
                policies.append((where, command))
        return tuple(policies)

    def limits(self) -> tuple[tuple[str, Mapping[str, Json]], ...]:
        """The limits of `default_limits.vhosts`, each with the pattern of its virtual hosts."""
        limits = []
        for name, values in self._grouped(vhost_settings.LIMITS, "vhosts.").items():
            key = f"{vhost_settings.LIMITS.key}.vhosts.{name}"
            where = self._pattern(f"{key}.{_PATTERN}", values.pop(_PATTERN, ANYTHING))
            numbers: dict[str, Json] = {}
            for attribute, text in values.items():
                self._known(f"{key}.{attribute}", attribute, _LIMITS)
                numbers[attribute.replace("_", "-")] = self._value(f"{key}.{attribute}", integer(1), text)
            assert limits_refusal(numbers) is None
            limits.append((where, numbers))
        return tuple(limits)

    def _grouped(self, family: Family[str], prefix: str) -> dict[str, dict[str, str]]:
        """The values of `family` by name and attribute, in the order of the file."""
        found: dict[str, dict[str, str]] = {}
        for name, value in self._config.family(family).items():
            of, _, attribute = name.removeprefix(prefix).rpartition(".")
            if of.endswith(_CLASSIC):
                of, attribute = of.removesuffix(_CLASSIC), f"{_CLASSIC[1:]}.{attribute}"
            if not name.startswith(prefix) or not of:
                key = f"{family.key}.{name}"
                raise ConfigError(f"{self._config.place(key)}: unknown key {key!r}")
            found.setdefault(of, {})[attribute] = value
        return found

    def _known(self, key: str, attribute: str, known: "Mapping[str, object] | tuple[str, ...]") -> None:
        if attribute not in known:
            raise ConfigError(
                f"{self._config.place(key)}: unknown key {key!r}: it is none of {', '.join(known)}"
            )

    def _pattern(self, key: str, pattern: str) -> str:
        error = new_pattern_error(pattern)
        if error is not None:
            raise ConfigError(
                f"{self._config.place(key)}: {key} must be a regular expression, not {pattern!r}: {error[0]}"
            )
        return pattern

    def _value(self, key: str, parse: Callable[[str], Json], text: str) -> Json:
        try:
            return parse(text)
        except InvalidValue as error:
            raise ConfigError(f"{self._config.place(key)}: {key} {error}, not {text!r}") from error


def _duration(value: str) -> int:
    """Parse a time in ms: 500ms, 30s, 1d12h, or a number of milliseconds."""
    if value.isdigit() and len(value) <= 12:
        return int(value)
    if not _DURATION.fullmatch(value):
        raise InvalidValue("must be a time such as 500ms, 30s, 15m, 12h or 7d")
    return sum(int(number) * _UNITS_MS[unit.lower()] for number, unit in _PART.findall(value))


def _size(value: str) -> int:
    """Parse a size in bytes: 1000, 64KB, 1GB."""
    match = _SIZE.fullmatch(value)
    if match is None or match[2].lower() not in _SIZE_UNITS:
        raise InvalidValue("must be a size such as 1000, 64KB, 10MB or 1GB")
    return int(match[1]) * _SIZE_UNITS[match[2].lower()]


_POLICY_VALUES: dict[str, Callable[[str], Json]] = {
    "expires": _duration,
    "message_ttl": _duration,
    "max_length": integer(1),
    "max_length_bytes": _size,
    "max_in_memory_length": integer(1),
    "max_in_memory_bytes": _size,
    "delivery_limit": integer(1),
    "classic_queues.queue_version": integer(1),
}
