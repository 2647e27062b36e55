"""Sends the log where the configuration says: to standard error, to a file, or to both.

Passwords are never logged, only names, addresses and reasons.
"""

import logging
import sys
from collections.abc import Callable
from pathlib import Path

from warren.node import log_settings
from warren.node.config import Config
from warren.node.config_file import ConfigError
from warren.node.log_file import RotatedFile, Rotation
from warren.node.log_formatters import LEVEL_NAMES, JsonFormatter, TextFormatter
from warren.node.log_settings import CategoryKeys
from warren.node.log_writer import LogWriter
from warren.node.values import LEVELS

_ROOT = "warren"
# Above all levels: lets nothing through.
_NONE = logging.CRITICAL + 1
_FORMATTERS: dict[str, Callable[[], logging.Formatter]] = {"plaintext": TextFormatter, "json": JsonFormatter}
# The categories whose level may differ from the default, and which may have a file of their own.
CATEGORIES: dict[str, CategoryKeys] = {
    "connection": log_settings.CONNECTION,
    "channel": log_settings.CHANNEL,
    "audit": log_settings.AUDIT,
    "user": log_settings.USER,
    "federation": log_settings.FEDERATION,
}
# The names under which a category is logged, if they are not its own.
_NAMES = {"user": ("login", "tokens", "ldap")}


class NodeLog:
    """The log of this process."""

    def __init__(self, config: Config) -> None:
        # Our lines do not contain these, so they are not looked up for each record.
        logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
        # Disables the look-up of the caller: the logging HOWTO sets it to None for that.
        logging._srcfile = None
        self.file = _file(config)
        self.has_console = config.get(log_settings.CONSOLE)
        self.has_exchange = False
        handlers: list[logging.Handler] = [] if self.file is None else [self.file]
        if self.has_console:
            console = logging.StreamHandler(sys.stderr)
            _prepare(
                console, config.get(log_settings.CONSOLE_FORMATTER), config.get(log_settings.CONSOLE_LEVEL)
            )
            handlers.append(console)
        self._writers = [LogWriter(handler) for handler in handlers]
        root = logging.getLogger(_ROOT)
        root.handlers[:] = [writer.waiting for writer in self._writers]
        root.addHandler(logging.NullHandler())
        root.propagate = False
        # A handler whose level is lower than the default still gets its records.
        default = _level(config.get(log_settings.LEVEL))
        root.setLevel(min([default, *(handler.level for handler in handlers if handler.level)]))
        # A category without a level of its own follows the default, also when that changes.
        self._followers = [handler for handler in handlers if not handler.level]
        self._others = [handler for handler in handlers if handler.level]
        for handler in self._followers:
            handler.setLevel(default)
        self._files = [] if self.file is None else [self.file]
        # The files of one category each.
        self._own: dict[str, RotatedFile] = {}
        for name, keys in CATEGORIES.items():
            chosen = config.get(keys.level)
            _set_level(name, _level(chosen) if chosen else logging.NOTSET)
            self._add_file(config, name, keys)

    def _add_file(self, config: Config, category: str, keys: CategoryKeys) -> None:
        """Write the records of `category` to its own file, if it has one, instead of to that of all."""
        rotation = Rotation(
            size_max=config.get(keys.rotation_size) or 0,
            date=config.get(keys.rotation_date),
            count=config.get(keys.rotation_count),
        )
        file = _opened(config, config.get(keys.file), rotation)
        if file is None:
            return
        self._own[category] = file
        chosen = config.get(keys.level)
        (self._others if chosen or file.level else self._followers).append(file)
        file.setLevel(_level(chosen) if chosen else file.level or _level(config.get(log_settings.LEVEL)))
        names = {logger.name for logger in _loggers(category)}
        if self.file is not None:
            self._writers[0].waiting.addFilter(lambda record: record.name not in names)
        writer = LogWriter(file)
        writer.waiting.addFilter(lambda record: record.name in names)
        logging.getLogger(_ROOT).addHandler(writer.waiting)
        self._writers.append(writer)
        self._files.append(file)

    def publish(self, exchange: logging.Handler, config: Config) -> None:
        """Publish log records to `exchange` from now on."""
        _prepare(
            exchange, config.get(log_settings.EXCHANGE_FORMATTER), config.get(log_settings.EXCHANGE_LEVEL)
        )
        root = logging.getLogger(_ROOT)
        self.has_exchange = True
        (self._others if exchange.level else self._followers).append(exchange)
        exchange.setLevel(exchange.level or _level(config.get(log_settings.LEVEL)))
        root.setLevel(min(root.level, exchange.level))
        root.addHandler(exchange)

    def reopen(self) -> None:
        """Reopen the log files, after they have been renamed."""
        for file in self._files:
            file.reopen()

    def levels(self) -> dict[str, str]:
        """The minimum level by category, for categories with a level of their own, and the default."""
        default = min([handler.level for handler in self._followers], default=logging.getLogger(_ROOT).level)
        own = {name: _loggers(name)[0].level for name in CATEGORIES}
        return {"default": _name(default)} | {name: _name(level) for name, level in own.items() if level}

    def set_level(self, level: str, category: str = "") -> bool:
        """Set the minimum level of `category`, or of all categories; False if there is no such category."""
        name = LEVELS.get(level.lower())
        if name is None:
            return False
        if category:
            _set_level(category, _level(name))
            if category in self._own:
                self._own[category].setLevel(_level(name))
            return True
        for handler in self._followers:
            handler.setLevel(_level(name))
        least = min([_level(name), *(handler.level for handler in self._others)])
        logging.getLogger(_ROOT).setLevel(least)
        return True

    def stop(self) -> None:
        """Write queued messages, then stop logging."""
        root = logging.getLogger(_ROOT)
        root.handlers[:] = []
        root.propagate = True
        for writer in self._writers:
            writer.stop()


def _file(config: Config) -> RotatedFile | None:
    rotation = Rotation(
        size_max=config.get(log_settings.ROTATION_SIZE) or 0,
        date=config.get(log_settings.ROTATION_DATE),
        count=config.get(log_settings.ROTATION_COUNT),
    )
    return _opened(config, config.get(log_settings.FILE), rotation)


def _opened(config: Config, name: str, rotation: Rotation) -> RotatedFile | None:
    if not name or name.lower() in ("false", "off"):
        return None
    path = Path(config.get(log_settings.DIRECTORY)) / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = RotatedFile(path, rotation)
    except OSError as error:
        raise ConfigError(f"cannot write the log file {str(path)!r}: {error.strerror}") from error
    _prepare(file, config.get(log_settings.FILE_FORMATTER), config.get(log_settings.FILE_LEVEL))
    return file


def _prepare(handler: logging.Handler, formatter: str, level: str) -> None:
    handler.setFormatter(_FORMATTERS[formatter]())
    if level:
        handler.setLevel(_level(level))


def _loggers(category: str) -> list[logging.Logger]:
    return [logging.getLogger(f"{_ROOT}.{name}") for name in _NAMES.get(category, (category,))]


def _set_level(category: str, level: int) -> None:
    for logger in _loggers(category):
        logger.setLevel(level)


def _name(level: int) -> str:
    return LEVEL_NAMES.get(level, "none")


def _level(name: str) -> int:
    return _NONE if name == "NONE" else logging.getLevelNamesMapping()[name]
