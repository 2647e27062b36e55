"""Static shovels: those of the configuration, with the keys of the parameter `shovel`.

    shovel.NAME.src-uri = amqp://…      shovel.NAME.src-uri.1 = amqp://…     several addresses are numbered
    shovel.NAME.src-queue = from        shovel.NAME.dest-queue = to

Tables are written as JSON. RabbitMQ 3.10 has static shovels in its classic configuration only.
"""

import json

from warren.metadata.commands import INTERNAL_USER, Json
from warren.metadata.shovel_definition import ShovelDefinition, parse_shovel
from warren.node import settings
from warren.node.config import Config
from warren.node.config_file import ConfigError
from warren.shovel.shovel_settings import STATIC_VHOST, ShovelSettings

_NUMBERS = frozenset(("prefetch-count", "src-prefetch-count", "reconnect-delay", "rate-limit"))
_COUNTS = frozenset(("delete-after", "src-delete-after"))
_TABLES = ("-args", "-properties", "-headers")
_BOOLEANS = {"true": True, "false": False}


def static_definitions(config: Config) -> dict[str, dict[str, Json]]:
    """The definitions of the static shovels by name, as the parameter has them. Raises ConfigError."""
    found: dict[str, dict[str, Json]] = {}
    for rest, text in config.family(settings.STATIC_SHOVELS).items():
        name, _, key = rest.partition(".")
        key, _, number = key.partition(".")
        if not name or not key:
            place = config.place(f"{settings.STATIC_SHOVELS.key}.{rest}")
            raise ConfigError(f"{place}: the keys of a static shovel are shovel.NAME.KEY")
        definition = found.setdefault(name, {})
        if number:
            addresses = definition.setdefault(key, [])
            if not isinstance(addresses, list):
                raise ConfigError(f"{_place(config, name)}: {key} is given with and without a number")
            addresses.append(text)
        else:
            definition[key] = _value(key, text)
    return found


def static_shovels(config: Config) -> tuple[ShovelSettings, ...]:
    """The static shovels. Raises ConfigError, which names the place of the first key of a wrong one."""
    return tuple(
        ShovelSettings(
            name=name, vhost=STATIC_VHOST, user=INTERNAL_USER, definition=_parsed(config, name, definition)
        )
        for name, definition in static_definitions(config).items()
    )


def _parsed(config: Config, name: str, definition: dict[str, Json]) -> ShovelDefinition:
    parsed = parse_shovel(definition)
    if isinstance(parsed, str):
        raise ConfigError(f"{_place(config, name)}: shovel {name!r}: {parsed}")
    return parsed


def _place(config: Config, name: str) -> str:
    prefix = f"{settings.STATIC_SHOVELS.key}.{name}."
    keys = (f"{settings.STATIC_SHOVELS.key}.{rest}" for rest in config.family(settings.STATIC_SHOVELS))
    return next((config.place(key) for key in keys if key.startswith(prefix)), "")


def _value(key: str, text: str) -> Json:
    """Return `text` as JSON has it; what is not of the type of `key` stays text, which is refused then."""
    try:
        if key in _NUMBERS:
            return float(text) if "." in text else int(text)
        if key in _COUNTS and text.isdigit():
            return int(text)
        if key.endswith(_TABLES):
            table: Json = json.loads(text)
            return table
    except (ValueError, RecursionError):
        return text
    return (
        _BOOLEANS.get(text, text) if key.startswith(("add-", "dest-add-")) or "predeclared" in key else text
    )
