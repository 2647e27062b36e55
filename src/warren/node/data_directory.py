"""Where a node keeps its data: the directory that the configuration names, the platform's, or memory."""

from collections.abc import Mapping
from pathlib import Path

from warren.node import settings
from warren.node.config import ENVIRONMENT_PREFIX, Config
from warren.node.errors import BootRefused

_ROOT_USER = 0
# The Filesystem Hierarchy Standard's for a service, and the XDG Base Directory Specification's for a user.
_OF_SERVICES = Path("/var/lib")
_OF_USERS = Path(".local/share")
_NAME = "warren"


def chosen_directory(config: Config, environment: Mapping[str, str], user_id: int) -> Path | None:
    """The directory, absolute; None: everything is in memory. BootRefused where both are asked for at once.

    As with all settings, a flag wins over the environment, and the environment over the file.
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
    """Where data is if nobody says where: $XDG_DATA_HOME/warren, /var/lib/warren, ~/.local/share/warren."""
    # Relative ones are invalid by the specification.
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
    """Of a flag, of a variable of the environment, of a line of a file."""
    return 2 if place.startswith("--") else 1 if place.startswith(ENVIRONMENT_PREFIX) else 0
