"""Operator controls of a running node: its settings, its limits and its log, until it stops."""

import logging
from collections.abc import Mapping

from warren.management.controls import ControlRefused, LogView, SettingView
from warren.node.config import Config
from warren.node.effective_settings import effective_settings
from warren.node.log_file import RotatedFile
from warren.node.monitors import Monitors
from warren.node.node_log import CATEGORIES, NodeLog
from warren.node.values import InvalidValue, fraction, size

logger = logging.getLogger("warren.audit")

_MIB = 1 << 20


class NodeControls:
    """The controls of one node; changes are not written to a file, and are logged with the user."""

    def __init__(self, config: Config, monitors: Monitors, log: NodeLog) -> None:
        self._config = config
        self._monitors = monitors
        self._log = log

    def settings(self) -> list[SettingView]:
        """All settings, with secrets masked."""
        return [SettingView(row.key, row.value, row.origin) for row in effective_settings(self._config)]

    def limits(self) -> Mapping[str, int]:
        """The limits by resource, in bytes."""
        return self._monitors.limits()

    def set_limit(self, user: str, resource: str, *, absolute: object, relative: object) -> int:
        """Change the limit of `resource`; returns it in bytes."""
        if (absolute is None) == (relative is None):
            raise ControlRefused("give either absolute, a size, or relative, a fraction of memory")
        try:
            limit = size(str(absolute)) if relative is None else fraction(str(relative))
        except InvalidValue as error:
            raise ControlRefused(f"{'absolute' if relative is None else 'relative'} {error}") from None
        if resource == "memory" and isinstance(limit, float) and limit > 1:
            raise ControlRefused(f"relative must be a fraction between 0.0 and 1.0, not {limit:g}")
        byte_count = self._monitors.limit(resource, limit)
        if byte_count is None:
            raise ControlRefused(f"there is no {resource} alarm: the node has no data directory")
        self._audit(
            user,
            f"{resource} limit set to {byte_count // _MIB} MiB",
            {"resource": resource, "limit": byte_count},
        )
        return byte_count

    def log(self) -> LogView:
        """The destinations and levels of the log."""
        file = self._log.file
        return LogView(
            file="" if file is None else file.baseFilename,
            console=self._log.has_console,
            exchange=self._log.has_exchange,
            levels=self._log.levels(),
        )

    def set_log_level(self, user: str, level: str, category: str) -> None:
        """Set the minimum level of the log, of all categories or of `category`."""
        if category and category not in CATEGORIES:
            raise ControlRefused(f"no such category {category!r}: it must be one of {', '.join(CATEGORIES)}")
        if not self._log.set_level(level, category):
            raise ControlRefused(f"no such level {level!r}")
        self._audit(user, f"log level of {category or 'all categories'} set to {level}", {"level": level})

    def rotate_log(self, user: str) -> str:
        """Rotate the log file; returns its name."""
        file: RotatedFile | None = self._log.file
        if file is None:
            raise ControlRefused("there is no log file: log.file is not set")
        try:
            file.rotate_or_reopen()
        except OSError as error:
            raise ControlRefused(f"{file.baseFilename}: {error.strerror}") from None
        self._audit(user, "log file rotated", {"file": file.baseFilename})
        return file.baseFilename

    def _audit(self, user: str, text: str, facts: Mapping[str, object]) -> None:
        fields = {"event": "node.changed", "user": user, "result": "done", "facts": facts}
        logger.info("user '%s': %s", user, text, extra={"fields": fields})
