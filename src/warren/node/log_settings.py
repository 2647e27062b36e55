"""The settings of the log, each declared once, as in `settings`: its destinations, and its categories."""

from msgspec import Struct

from warren.node.setting_types import Family, Setting
from warren.node.values import LEVELS, boolean, choice, integer, rotation_date, size, text

_FORMATTERS = {name: name for name in ("plaintext", "json")}


class CategoryKeys(Struct, frozen=True):
    """The keys of one category of the log: its level, and a file of its own."""

    level: Setting[str]
    file: Setting[str]
    rotation_size: Setting[int | None]
    rotation_date: Setting[str]
    rotation_count: Setting[int]

    @property
    def all(self) -> tuple[Setting[object] | Family[object], ...]:
        """All settings of the group, in the order of declaration."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)


def _category(name: str, about: str) -> CategoryKeys:
    file = f"`log.{name}.file`"
    return CategoryKeys(
        Setting(
            f"log.{name}.level", "", choice(LEVELS),
            f"minimum level of log messages about {about}; unset: `log.default.level`",
        ),
        Setting(
            f"log.{name}.file", "", text,
            f"name of a file in `log.dir` for the log messages about {about}, instead of `log.file`",
        ),
        Setting(
            f"log.{name}.rotation.size", None, size,
            f"size in bytes at which {file} is rotated, such as `10MiB`; unset: no limit",
        ),
        Setting(
            f"log.{name}.rotation.date", "", rotation_date,
            f"time at which {file} is rotated, such as `$D0` (daily at midnight)",
        ),
        Setting(
            f"log.{name}.rotation.count", 0, integer(0, 1000),
            f"number of rotated files of {file} that are kept",
        ),
    )  # fmt: skip


CONSOLE = Setting("log.console", True, boolean, "write the log to standard error")
CONSOLE_LEVEL = Setting(
    "log.console.level", "", choice(LEVELS),
    "minimum level of log messages on standard error: `debug`, `info`, `warning`, `error`, `critical` or "
    "`none`; unset: `log.default.level`",
)  # fmt: skip
LEVEL = Setting(
    "log.default.level", "INFO", choice(LEVELS),
    "minimum level of log messages: `debug`, `info`, `warning`, `error`, `critical` or `none`",
)  # fmt: skip
CONSOLE_FORMATTER = Setting(
    "log.console.formatter", "plaintext", choice(_FORMATTERS),
    "format of log messages on standard error: `plaintext`, or `json` for one JSON object per line",
)  # fmt: skip
FILE = Setting(
    "log.file", "", text, "name of the log file in `log.dir`, such as `warren.log`; `false`: no file"
)
FILE_LEVEL = Setting(
    "log.file.level", "", choice(LEVELS),
    "minimum level of log messages in the log file; unset: `log.default.level`",
)  # fmt: skip
FILE_FORMATTER = Setting(
    "log.file.formatter", "plaintext", choice(_FORMATTERS),
    "format of log messages in the log file: `plaintext`, or `json` for one JSON object per line",
)  # fmt: skip
ROTATION_SIZE: Setting[int | None] = Setting(
    "log.file.rotation.size", None, size,
    "size in bytes at which the log file is rotated, such as `10485760` or `10MiB`; unset: no limit",
)  # fmt: skip
ROTATION_DATE = Setting(
    "log.file.rotation.date", "", rotation_date,
    "time at which the log file is rotated: `$D0` (daily at midnight), `$W5D16` (Fridays at 16:00), "
    "`$M1D2` (first of the month at 2:00)",
)  # fmt: skip
ROTATION_COUNT = Setting(
    "log.file.rotation.count", 0, integer(0, 1000), "number of rotated log files that are kept"
)
EXCHANGE = Setting("log.exchange", False, boolean, "publish log messages to the exchange `amq.rabbitmq.log`")
EXCHANGE_LEVEL = Setting(
    "log.exchange.level", "", choice(LEVELS),
    "minimum level of log messages published to `amq.rabbitmq.log`; unset: `log.default.level`",
)  # fmt: skip
EXCHANGE_FORMATTER = Setting(
    "log.exchange.formatter", "plaintext", choice(_FORMATTERS),
    "format of log messages published to `amq.rabbitmq.log`: `plaintext`, or `json`",
)  # fmt: skip
DIRECTORY = Setting("log.dir", "", text, "directory of the log file, such as `/var/log/warren`")
CONNECTION = _category("connection", "connections")
CHANNEL = _category("channel", "channel errors")
AUDIT = _category("audit", "changes, and who has made them (audit log)")
USER = _category("user", "logins, tokens and directories")
FEDERATION = _category("federation", "links of federation")
