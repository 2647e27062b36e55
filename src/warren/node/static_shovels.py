"""Static shovels: those of the configuration, with the keys of the parameter `shovel`.

    shovel.NAME.src-uri = amqp://…      shovel.NAME.src-uri.1 = amqp://…     several addresses are numbered
    shovel.NAME.src-queue = from        shovel.NAME.dest-queue = to

Tables are written as JSON. RabbitMQ 3.10 has static shovels in its classic configuration only, which is read
as well (`classic_shovels`).
"""

import json
from collections.abc import Mapping

from msgspec import Struct

from warren.metadata.commands import OPERATOR, Json
from warren.metadata.shovel_definition import ShovelDefinition, parse_shovel
from warren.node import settings
from warren.node.classic_shovels import ClassicShovel, classic_shovels
from warren.node.config import Config
from warren.node.config_file import ConfigError
from warren.node.term_values import InvalidTerm
from warren.shovel.shovel_settings import STATIC_VHOST, ShovelSettings

_NUMBERS = frozenset(
    ("prefetch-count", "src-prefetch-count", "reconnect-delay", "rate-limit", "src-delete-after-duration")
)
_COUNTS = frozenset(("delete-after", "src-delete-after"))
_TABLES = ("-args", "-properties", "-headers")
_FLAGS = frozenset(("src-predeclared", "dest-predeclared", "exactly-once", "single-run"))
_BOOLEANS = {"true": True, "false": False}
# RabbitMQ 4's key for the queues of all shovels, which is not one of a shovel called topology.
_TOPOLOGY = "topology.predeclared"


class StaticShovels(Struct, frozen=True, kw_only=True):
    """The shovels of a configuration."""

    shovels: tuple[ShovelSettings, ...]
    # Their definitions by name, with the keys of the parameter; they contain passwords.
    definitions: Mapping[str, Mapping[str, Json]]
    # Keys that have no effect.
    warnings: tuple[str, ...]
    # Keys of all shovels, static and dynamic, that do not have them.
    defaults: Mapping[str, Json]


def static_shovels(config: Config) -> StaticShovels:
    """The static shovels. Raises ConfigError, which names the file or the line of a wrong one."""
    defaults = _defaults(config)
    definitions = _definitions(config)
    shovels = [
        _settings(name, _parsed(config, name, defaults | definition))
        for name, definition in definitions.items()
    ]
    warnings: list[str] = []
    file = config.advanced.file
    try:
        classic = classic_shovels(config.advanced.shovels, warnings.append)
    except InvalidTerm as error:
        raise ConfigError(f"{file}: {error}") from None
    for name, shovel in classic.items():
        if name in definitions:
            raise ConfigError(f"{file}: shovel {name!r} is defined in {_place(config, name)} as well")
        shovels.append(_classic_settings(name, shovel))
    return StaticShovels(
        shovels=tuple(shovels),
        definitions={**definitions, **{name: shovel.parameter for name, shovel in classic.items()}},
        warnings=tuple(f"{file}: {warning}" for warning in warnings),
        defaults=defaults,
    )


def _defaults(config: Config) -> dict[str, Json]:
    """The keys of all shovels: their queues have to exist if `shovel.topology.predeclared` is true."""
    text = config.family(settings.STATIC_SHOVELS).get(_TOPOLOGY, "false")
    if text not in _BOOLEANS:
        key = f"{settings.STATIC_SHOVELS.key}.{_TOPOLOGY}"
        raise ConfigError(f"{config.place(key)}: {key} should be true or false, actually was {text!r}")
    return {"src-predeclared": True, "dest-predeclared": True} if _BOOLEANS[text] else {}


def _definitions(config: Config) -> dict[str, dict[str, Json]]:
    """The definitions of the shovels in the keys of the configuration, as the parameter has them."""
    found: dict[str, dict[str, Json]] = {}
    for rest, text in config.family(settings.STATIC_SHOVELS).items():
        if rest == _TOPOLOGY:
            continue
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


def _settings(name: str, definition: ShovelDefinition) -> ShovelSettings:
    return ShovelSettings(name=name, vhost=STATIC_VHOST, user=OPERATOR, definition=definition)


def _classic_settings(name: str, shovel: ClassicShovel) -> ShovelSettings:
    return ShovelSettings(
        name=name,
        vhost=STATIC_VHOST,
        user=OPERATOR,
        definition=shovel.definition,
        source_declarations=shovel.source_declarations,
        destination_declarations=shovel.destination_declarations,
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
    return _BOOLEANS.get(text, text) if key.startswith(("add-", "dest-add-")) or key in _FLAGS else text
