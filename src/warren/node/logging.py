"""Log lines as RabbitMQ writes them, to standard error and perhaps a file.

    2026-11-21 03:04:05.678+00:00 [info] <warren.node> ready

Nothing here ever sees a password: what is logged is names, addresses and reasons.
"""

import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

from warren.node import settings
from warren.node.config import Config
from warren.node.config_file import ConfigError

_ROOT = "warren"
_LEVEL_NAMES = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
    logging.CRITICAL: "critical",
}
# Above everything: a level that lets nothing through.
_NONE = logging.CRITICAL + 1
# Where the milliseconds are in "2026-11-21 03:04:05.678+00:00".
_STAMP_MS_AT = 20


class Lines(logging.Formatter):
    """One line per record; control characters of a client's making are escaped."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1
        # What stands around the milliseconds in every line of that second.
        self._before = self._after = ""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and behind it a traceback if there is one."""
        second = int(record.created)
        if second != self._second:
            self._second = second
            when = (
                datetime.fromtimestamp(second, UTC).astimezone().isoformat(sep=" ", timespec="milliseconds")
            )
            self._before, self._after = when[:_STAMP_MS_AT], when[_STAMP_MS_AT + 3 :]
        level = _LEVEL_NAMES.get(record.levelno, record.levelname.lower())
        message = record.getMessage()
        if not message.isprintable():
            message = "".join(map(_printable, message))
        stamp = f"{self._before}{int((record.created - second) * 1000):03d}{self._after}"
        line = f"{stamp} [{level}] <{record.name}> {message}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _printable(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def start(config: Config) -> None:
    """Send the log where `config` says; may be called again, the last call counts."""
    # Not in any line of ours, so not looked up for each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # The same for the caller: None is what the logging HOWTO gives for it.
    logging._srcfile = None
    root = logging.getLogger(_ROOT)
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    level = _level(config.get(settings.LOG_LEVEL))
    root.setLevel(level)
    root.propagate = False
    if config.get(settings.LOG_CONSOLE):
        console = logging.StreamHandler(sys.stderr)
        _add(root, console, config.get(settings.LOG_CONSOLE_LEVEL))
    name = config.get(settings.LOG_FILE)
    if name and name.lower() not in ("false", "off"):
        path = Path(config.get(settings.LOG_DIRECTORY)) / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _add(root, logging.FileHandler(path, encoding="utf-8"), config.get(settings.LOG_FILE_LEVEL))
        except OSError as error:
            raise ConfigError(f"cannot write the log file {str(path)!r}: {error.strerror}") from error
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    connections = config.get(settings.LOG_CONNECTION_LEVEL)
    logging.getLogger("warren.connection").setLevel(_level(connections) if connections else logging.NOTSET)


def _add(root: logging.Logger, handler: logging.Handler, level: str) -> None:
    handler.setFormatter(Lines())
    if level:
        handler.setLevel(_level(level))
        # A handler that wants more than the default gets it.
        root.setLevel(min(root.level, _level(level)))
    root.addHandler(handler)


def _level(name: str) -> int:
    return _NONE if name == "NONE" else logging.getLevelNamesMapping()[name]
