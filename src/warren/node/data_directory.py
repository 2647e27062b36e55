"""Chooses the data directory of a node: the configured one, the platform's default, or none (in memory)."""

from collections.abc import Mapping
from pathlib import Path

from warren.node import settings
from warren.node.config import ENVIRONMENT_PREFIX, Config
from warren.node.errors import BootRefused

_ROOT_USER = 0
# Paths of the Filesystem Hierarchy Standard for a service, and of the XDG Base Directory Specification for a
# user.
_OF_SERVICES = Path("/var/lib")
_OF_USERS = Path(".local/share")
_NAME = "warren"


def chosen_directory(config: Config, environment: Mapping[str, str], user_id: int) -> Path | None:
    """Return the absolute data directory, or None for memory only; BootRefused if both are configured at one
    level.

    As for all settings, a flag has precedence over the environment, and the environment over the file.
    """
    directory, in_memory = config.get(settings.DATA_DIRECTORY), config.get(settings.IN_MEMORY)
    if directory and in_memory:
        key, other = settings.DATA_DIRECTORY.key, settings.IN_MEMORY.key
        difference = _precedence(config.place(key)) - _precedence(config.place(other))
        if difference == 0:
            raise BootRefused(f"{key} and {other} are both set: choose one of them")
        in_memory = difference < 0
    if in_memory:
        return None
    return Path(directory).absolute() if directory else default_directory(environment, user_id)


def default_directory(environment: Mapping[str, str], user_id: int) -> Path:
    """The default data directory: $XDG_DATA_HOME/warren, /var/lib/warren or ~/.local/share/warren."""
    # The XDG specification declares relative paths invalid.
    data_home = Path(environment.get("XDG_DATA_HOME", ""))
    if data_home.is_absolute():
        return data_home / _NAME
    if user_id == _ROOT_USER:
        return _OF_SERVICES / _NAME
    home = Path(environment.get("HOME", ""))
    if home.is_absolute():
        return home / _OF_USERS / _NAME
    raise BootRefused("no home directory for the data: set --data-dir, or choose --in-memory")


def _precedence(place: str) -> int:
    """Return the precedence of the place a setting comes from: flag, environment variable, or file."""
    return 2 if place.startswith("--") else 1 if place.startswith(ENVIRONMENT_PREFIX) else 0
