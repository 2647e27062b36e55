"""The settings in effect: the value of each, its origin, and secrets masked."""

from collections.abc import Callable

from msgspec import Struct

from warren.client.rabbitmq_uri import uri_without_credentials
from warren.node import settings
from warren.node.all_settings import ALL
from warren.node.config import Config
from warren.node.setting_types import Family, NoEffect, Setting, group_key
from warren.node.values import OneOf, format_value

MASK = "********"
_DEFAULT = "default"


class EffectiveSetting(Struct, frozen=True):
    """A setting in effect; a value of None means that the key is not set."""

    key: str
    value: str | None
    origin: str


def effective_settings(config: Config) -> list[EffectiveSetting]:
    """Return all settings of `config`, in the order of declaration."""
    return [row for setting in ALL for row in _rows(config, setting)]


def _rows(config: Config, setting: Setting[object] | Family[object]) -> list[EffectiveSetting]:
    if not isinstance(setting, Family):
        value = written_word(setting.parse, config.get(setting))
        return [_row(config, setting.key, value, is_secret=setting.is_secret)]
    values = config.family(setting)
    if not values:
        return [EffectiveSetting(setting.key, "none", config.place(setting.key) or _DEFAULT)]
    rows = [
        _row(
            config,
            f"{setting.key}.{name}",
            written_word(_parser(setting, name), value),
            is_secret=name.rpartition(".")[2] in setting.secrets,
        )
        for name, value in values.items()
    ]
    return [_without_credentials(row) for row in rows] if setting is settings.STATIC_SHOVELS else rows


def _parser(family: Family[object], name: str) -> Callable[[str], object]:
    """What has read the value of `name`."""
    parts = group_key(family, name)
    parse = None if parts is None else family.attributes[parts.attribute]
    return family.parse if parse is None or isinstance(parse, NoEffect) else parse


def _without_credentials(row: EffectiveSetting) -> EffectiveSetting:
    """Hide the password in the address of a shovel."""
    if row.value is None or "://" not in row.value:
        return row
    return EffectiveSetting(row.key, uri_without_credentials(row.value), row.origin)


def written_word(parse: Callable[[str], object], value: object) -> object:
    """Return `value`, or the word that `parse` reads as it: the text can be used in a file."""
    if isinstance(parse, OneOf):
        return next((word for word, chosen in parse.choices.items() if chosen == value), value)
    return value


def _row(config: Config, key: str, value: object, *, is_secret: bool) -> EffectiveSetting:
    given = config.given(key)
    text = format_value(value) if given is None else given
    if is_secret and text:
        text = MASK
    return EffectiveSetting(key, text or None, config.place(key) or _DEFAULT)
