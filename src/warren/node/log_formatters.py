"""Formats log records as RabbitMQ's lines, or as JSON with the fields of RabbitMQ's formatter.

    2026-11-21 03:04:05.678+00:00 [info] <warren.node> ready
    {"time":"2026-11-21 03:04:05.678901+00:00","level":"info","domain":"warren.node","msg":"ready"}

The `fields` of a caller (a connection, a user) follow these in JSON, as data.
"""

import json
import logging
from datetime import UTC, datetime

LEVEL_NAMES = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
    logging.CRITICAL: "critical",
}
# The position of the milliseconds in "2026-11-21 03:04:05.678+00:00".
_STAMP_MS_AT = 20
# The attribute of a record that contains the `fields` of its caller.
FIELDS = "fields"


class TextFormatter(logging.Formatter):
    """Formats one line per record; control characters, which clients could insert, are escaped."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1
        # The text before and after the milliseconds, cached for all lines of one second.
        self._before = self._after = ""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by a traceback if there is one."""
        second = int(record.created)
        if second != self._second:
            self._second = second
            when = (
                datetime.fromtimestamp(second, UTC).astimezone().isoformat(sep=" ", timespec="milliseconds")
            )
            self._before, self._after = when[:_STAMP_MS_AT], when[_STAMP_MS_AT + 3 :]
        message = record.getMessage()
        if not message.isprintable():
            message = "".join(map(_printable, message))
        stamp = f"{self._before}{int((record.created - second) * 1000):03d}{self._after}"
        line = f"{stamp} [{level_name(record)}] <{record.name}> {message}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per record, in one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON object of `record`."""
        when = datetime.fromtimestamp(record.created, UTC).astimezone()
        found: dict[str, object] = {
            "time": when.isoformat(sep=" ", timespec="microseconds"),
            "level": level_name(record),
            "domain": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        fields = getattr(record, FIELDS, None)
        if isinstance(fields, dict):
            found |= {name: value for name, value in fields.items() if name not in found}
        return json.dumps(found, default=str, separators=(",", ":"))


def level_name(record: logging.LogRecord) -> str:
    """Return RabbitMQ's name of the level of `record`."""
    return LEVEL_NAMES.get(record.levelno, record.levelname.lower())


def _printable(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()
