"""Reads a configuration file: rabbitmq.conf's `key = value` lines, or TOML.

Both formats are read into a list of dotted keys with their values as text, each with its file and line.
"""

import re
import tomllib
from pathlib import Path

from msgspec import Struct

_LINE = re.compile(r"(?P<key>[^=#\s]+)\s*=\s*(?P<value>.*)")
_QUOTED = re.compile(r"""(?P<quote>['"])(?P<value>.*)(?P=quote)\s*(#.*)?""")

# File name suffixes that are read in a directory.
_SUFFIXES = (".conf", ".toml")
# That of Erlang terms, RabbitMQ's format before 3.7.
CLASSIC = ".config"


class ConfigError(Exception):
    """The configuration cannot be used; the text names the place and the key."""


class ConfigEntry(Struct, frozen=True):
    """One assignment, with the file and line it was read from."""

    key: str
    value: str
    place: str


def read(name: str) -> list[ConfigEntry]:
    """Read the assignments in the file `name`, in order; in a directory, those of its files by name."""
    if name.endswith(CLASSIC):
        # `advanced_config` reads it.
        return []
    if Path(name).is_dir():
        files = (str(path) for path in sorted(Path(name).iterdir()) if path.suffix in _SUFFIXES)
        return [entry for file in files for entry in read(file)]
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read the configuration file {name!r}: {reason}") from error
    if name.endswith(".toml"):
        return _read_toml(name, text)
    return _read_lines(name, text)


def _read_lines(name: str, text: str) -> list[ConfigEntry]:
    entries: list[ConfigEntry] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise ConfigError(f"{name}:{number}: not of the form 'key = value'")
        entries.append(ConfigEntry(match["key"], _value(match["value"]), f"{name}:{number}"))
    return entries


def _value(written: str) -> str:
    """Return the value without its quotes, or, if it is not quoted, without a trailing `#` comment."""
    quoted = _QUOTED.fullmatch(written)
    if quoted is not None:
        return quoted["value"]
    return written.partition("#")[0].rstrip()


def _read_toml(name: str, text: str) -> list[ConfigEntry]:
    try:
        return _flatten(name, "", tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        # Besides TOMLDecodeError: ValueError for numbers of thousands of digits, RecursionError for deep
        # nesting.
        raise ConfigError(f"{name}: {error}") from error


def _flatten(name: str, prefix: str, value: object) -> list[ConfigEntry]:
    """Flatten tables into dotted keys, and arrays into keys numbered from 1, as rabbitmq.conf writes them."""
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [(str(at), item) for at, item in enumerate(value, 1)]
    else:
        written = str(value).lower() if isinstance(value, bool) else str(value)
        return [ConfigEntry(prefix, written, name)]
    return [
        entry for key, item in pairs for entry in _flatten(name, f"{prefix}.{key}" if prefix else key, item)
    ]
