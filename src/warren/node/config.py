"""The configuration of a node: defaults, then the file, then the environment, then the command line."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from warren.node import (
    advanced_config,
    cluster_settings,
    config_file,
    limit_settings,
    no_effect,
    oauth2_settings,
    rabbitmq_environment,
    settings,
)
from warren.node.advanced_config import AdvancedConfig
from warren.node.all_settings import BY_KEY, FAMILIES, family_of
from warren.node.config_file import CLASSIC, ConfigEntry, ConfigError
from warren.node.setting_types import Family, NoEffect, Setting, group_key
from warren.node.values import InvalidValue

Value = TypeVar("Value")

ENVIRONMENT_PREFIX = "WARREN_"
# Variables that the build or the command line reads, or that Kubernetes sets for a service of this name.
_OTHER_VARIABLES = frozenset((
    "PURE", "COMPILED", "CONFIG", "HOST", "PORT", "URI", "USER", "PASSWORD", "VHOST", "CACERT", "CERT", "KEY",
    "KEY_PASSWORD", "INSECURE",
))  # fmt: skip

_VARIABLE_NAMED = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
# Prefix of an encrypted value, which only RabbitMQ can decrypt.
_ENCRYPTED = "encrypted:"
# The likeness of two words, of at most 1, from which one is the other with a spelling mistake.
_MISSPELT = 0.85

# Settings of Warren that were renamed; the old key still works, with a warning.
DEPRECATED_KEYS = {"login_failures.free": "login_failures.allowed"}
# New name of a setting by its old name, which older files use.
_ALIASES = {
    "management.listener.port": "management.tcp.port",
    "management.listener.ip": "management.tcp.ip",
    "vm_memory_high_watermark": "vm_memory_high_watermark.relative",
    "disk_free_limit": "disk_free_limit.absolute",
    "log.level": "log.default.level",
    "max_connections": settings.CONNECTIONS_MAX.key,
    "max_channels_per_connection": settings.CHANNELS.key,
    "exchange_max": limit_settings.EXCHANGES.key,
    "auth_oauth2.https.verify": oauth2_settings.VERIFY.key,
    "inet_dist_listen_min": cluster_settings.DISTRIBUTION_PORT.key,
    "inet_dist_listen_max": "distribution.listener.port_range.max",
    **DEPRECATED_KEYS,
}


class Config:
    """The values of all settings, with the place where each was set, and warnings for the operator."""

    def __init__(self, entries: Iterable[ConfigEntry] = ()) -> None:
        self._values: dict[str, object] = {}
        self._families: dict[str, dict[str, object]] = {}
        self.warnings: list[str] = []
        self._given: dict[str, ConfigEntry] = {}
        # The files that were read, in order.
        self.files: tuple[str, ...] = ()
        # What RabbitMQ's advanced.config contains.
        self.advanced = AdvancedConfig()
        # Each entry in order, with the reason why its key has no effect; empty if it has.
        self._entries: list[tuple[ConfigEntry, str]] = []
        # Reads the whole configuration again.
        self.again: Callable[[], Config] = lambda: self
        for entry in entries:
            self._assign(entry)

    def get(self, setting: Setting[Value]) -> Value:
        """Return the value of `setting`, or its default."""
        return cast(Value, self._values.get(setting.key, setting.default))

    def family(self, family: Family[Value]) -> dict[str, Value]:
        """Return the values of `family` by name; the defaults if none of them is set."""
        return cast(dict[str, Value], self._families.get(family.key, family.default))

    def groups(self, family: Family[Value]) -> dict[str, dict[str, object]]:
        """Return the attributes of each group of `family` by their names.

        An attribute that ends with a dot has a dictionary of the values by the names that follow it.
        """
        found: dict[str, dict[str, object]] = {}
        for name, value in self.family(family).items():
            parts = group_key(family, name)
            assert parts is not None
            group = found.setdefault(parts.group, {})
            if parts.attribute.endswith("."):
                cast(dict[str, object], group.setdefault(parts.attribute, {}))[parts.rest] = value
            else:
                group[parts.attribute] = value
        return found

    def is_set(self, setting: Setting[Value] | Family[Value]) -> bool:
        """True if a file, an environment variable or a flag sets `setting`."""
        return setting.key in self._values or setting.key in self._families

    def given(self, key: str) -> str | None:
        """Return the text that was given for `key`; None if it is not set."""
        entry = self._given.get(_plain(key))
        return None if entry is None else entry.value

    def place(self, key: str) -> str:
        """Return where `key` is set: a line of a file, a variable or a flag; empty if it is not set."""
        entry = self._given.get(_plain(key))
        return "" if entry is None else entry.place

    def effects(self) -> list[tuple[ConfigEntry, str]]:
        """Return each key that is given, in order, with the reason why it has no effect; empty if it has."""
        found = []
        for entry, reason in self._entries:
            last = self.place(_ALIASES.get(entry.key, entry.key))
            found.append((entry, reason or (f"{last} overrides it" if last != entry.place else "")))
        return found

    def _assign(self, entry: ConfigEntry) -> None:
        key = _ALIASES.get(entry.key, entry.key)
        reason = ""
        if entry.key in DEPRECATED_KEYS:
            self.warnings.append(f"{entry.place}: {entry.key} is deprecated: use {key}")
        self._given[_plain(key)] = entry
        setting = BY_KEY.get(key)
        if isinstance(setting, Setting):
            self._values[setting.key] = _parse(setting, entry)
        elif isinstance(setting, Family) and entry.value.lower() == "none":
            self._families[setting.key] = {}
        elif (family := family_of(key)) is not None and family.attributes:
            reason = self._assign_attribute(family, key, entry)
        elif family is not None and not no_effect.is_listed(key):
            name = _plain(key[len(family.key) + 1 :])
            self._families.setdefault(family.key, {})[name] = _parse(family, entry)
        else:
            reason = no_effect.reason_of(key) or ""
            if not reason:
                raise ConfigError(f"{entry.place}: unknown key {entry.key!r}{_suggestion(key)}")
        if reason:
            self.warnings.append(f"{entry.place}: {entry.key} has no effect: {reason}")
        self._entries.append((entry, reason))

    def _assign_attribute(self, family: Family[object], key: str, entry: ConfigEntry) -> str:
        """Set an attribute of a group of `family`; returns the reason if that has no effect."""
        parts = group_key(family, _plain(key[len(family.key) + 1 :]))
        if parts is None:
            known = ", ".join(name + ("…" if name.endswith(".") else "") for name in family.attributes)
            raise ConfigError(f"{entry.place}: unknown key {entry.key!r}: it ends with none of {known}")
        parse = family.attributes[parts.attribute]
        if isinstance(parse, NoEffect):
            return parse.reason
        self._given[f"{family.key}.{parts.name}"] = entry
        self._families.setdefault(family.key, {})[parts.name] = _parsed(parse, entry)
        return ""


def load(file: str, environment: Mapping[str, str], flags: Iterable[ConfigEntry] = ()) -> Config:
    """Load the configuration in order of precedence; without `file`, from the files in the environment."""
    files = [file] if file else _files(environment)
    entries = [_completed(entry, environment) for name in files for entry in config_file.read(name)]
    advanced = advanced_config.find(files, environment)
    found, warnings = _environment(environment)
    flags = list(flags)
    rabbitmq = rabbitmq_environment.read(environment, [*entries, *advanced.entries, *found, *flags])
    config = Config([*rabbitmq.defaults, *entries, *advanced.entries, *rabbitmq.prevailing, *found, *flags])
    config.warnings.extend((*rabbitmq.warnings, *warnings))
    config.advanced = advanced
    config.warnings.extend(config.advanced.warnings)
    config.files = tuple(files)
    config.again = lambda: load(file, environment, flags)
    return config


def _files(environment: Mapping[str, str]) -> list[str]:
    """Return the files in WARREN_CONFIG, or else those in RabbitMQ's variables."""
    own = environment.get(ENVIRONMENT_PREFIX + "CONFIG")
    if own:
        return [own]
    name, folder = environment.get("RABBITMQ_CONFIG_FILE", ""), environment.get("RABBITMQ_CONFIG_FILES", "")
    if name and not Path(name).exists():
        name += next((suffix for suffix in (".conf", CLASSIC) if Path(name + suffix).exists()), ".conf")
    return [found for found in (name, folder) if found]


def _completed(entry: ConfigEntry, environment: Mapping[str, str]) -> ConfigEntry:
    """Return `entry` with $(NAME) in its value replaced by environment variables."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise ConfigError(f"{entry.place}: {entry.key}: the environment has no variable {match[1]!r}")
        return environment[match[1]]

    if "$(" not in entry.value:
        return entry
    return ConfigEntry(entry.key, _VARIABLE_NAMED.sub(value, entry.value), entry.place)


def _environment(environment: Mapping[str, str]) -> tuple[list[ConfigEntry], list[str]]:
    """Read settings from environment variables: WARREN_LISTENERS_TCP_DEFAULT sets listeners.tcp.default.

    An unknown variable causes only a warning.
    """
    entries: list[ConfigEntry] = []
    warnings: list[str] = []
    for variable, value in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable[len(ENVIRONMENT_PREFIX) :]
        key = _VARIABLES.get(name) or _family_key(name)
        if key is not None:
            entries.append(ConfigEntry(key, value, variable))
        elif name not in _OTHER_VARIABLES and not name.startswith(("PORT_", "SERVICE_")):
            warnings.append(f"{variable}: unknown setting")
    return entries, warnings


def _family_key(name: str) -> str | None:
    for family in FAMILIES:
        start = _variable(family.key) + "_"
        if name.startswith(start):
            return f"{family.key}.{name[len(start) :].lower()}"
    return None


def _parse(setting: Setting[object] | Family[object], entry: ConfigEntry) -> object:
    is_secret = isinstance(setting, Setting) and setting.is_secret
    return _parsed(setting.parse, entry, is_secret=is_secret)


def _parsed(parse: Callable[[str], object], entry: ConfigEntry, *, is_secret: bool = False) -> object:
    if entry.value.startswith(_ENCRYPTED):
        raise ConfigError(
            f"{entry.place}: {entry.key} is encrypted by RabbitMQ, whose key Warren does not have: "
            "use an environment variable instead: $(NAME)"
        )
    try:
        return parse(entry.value)
    except InvalidValue as error:
        what = "" if is_secret else f", not {entry.value!r}"
        raise ConfigError(f"{entry.place}: {entry.key} {error}{what}") from error


def _suggestion(key: str) -> str:
    if any(family.key == key for family in FAMILIES):
        return f", only '{key} = none' or keys such as '{key}.1'"
    close = get_close_matches(key, filter(partial(_is_misspelt, key), BY_KEY), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _is_misspelt(key: str, known: str) -> bool:
    """True if `key` is `known` with a mistake in one of its parts.

    One whose other parts differ is about something else, however alike it looks: TLS of another port.
    """
    parts, known_parts = key.split("."), known.split(".")
    if len(parts) != len(known_parts):
        return False
    wrong = [(one, other) for one, other in zip(parts, known_parts, strict=True) if one != other]
    return len(wrong) == 1 and SequenceMatcher(None, *wrong[0]).ratio() >= _MISSPELT


def _plain(key: str) -> str:
    """`key` without the backslash before a dot that is a part of a name."""
    return key.replace("\\.", ".")


def _variable(key: str) -> str:
    return key.upper().replace(".", "_")


_VARIABLES = {_variable(key): key for key in (*BY_KEY, *DEPRECATED_KEYS)}
