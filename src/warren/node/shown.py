"""What every setting is, as people may see it: its value, where that comes from, and no secret."""

from dataclasses import dataclass

from warren.node import settings
from warren.node.config import Config
from warren.node.settings import Family
from warren.node.values import written

_MASK = "********"
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting; a value of None is none at all."""

    key: str
    value: str | None
    origin: str


def shown(config: Config) -> list[Shown]:
    """All of them, in the order in which they are declared."""
    return [row for setting in settings.ALL for row in _rows(config, setting)]


def _rows(config: Config, setting: settings.Setting[object] | Family[object]) -> list[Shown]:
    if not isinstance(setting, Family):
        return [_row(config, setting.key, config.get(setting), is_secret=setting.is_secret)]
    values = config.family(setting)
    if not values:
        place = config.place(setting.key)
        return [Shown(f"{setting.key}.…", None, place or _DEFAULT)]
    return [_row(config, f"{setting.key}.{name}", value, is_secret=False) for name, value in values.items()]


def _row(config: Config, key: str, value: object, *, is_secret: bool) -> Shown:
    given = config.given(key)
    text = written(value) if given is None else given
    if is_secret and text:
        text = _MASK
    return Shown(key, text, config.place(key) or _DEFAULT)
