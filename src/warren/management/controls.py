"""Operations on the running node: its settings, its limits and its log."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class ControlRefused(Exception):
    """The operation is not possible; the message says why."""


class SettingView(Struct, frozen=True):
    """A setting and the source of its value; None means that it has no value."""

    key: str
    value: str | None
    origin: str


class LogView(Struct, frozen=True, kw_only=True):
    """Where the log is written; `file` is empty if it is written to no file."""

    file: str
    console: bool
    exchange: bool
    # The lowest level that is logged, by category.
    levels: Mapping[str, str]


class Controls(Protocol):
    """Port of the node. `user` is recorded in the audit log; ControlRefused says what is not possible."""

    def settings(self) -> list[SettingView]:
        """All settings, with secrets masked."""

    def limits(self) -> Mapping[str, int]:
        """The thresholds in bytes, by resource: above (memory) or below (disk) them publishers wait."""

    def set_limit(self, user: str, resource: str, *, absolute: object, relative: object) -> int:
        """Set the limit of `resource` until the node stops or reloads its settings; returns it in bytes."""

    def log(self) -> LogView:
        """Where the log is written, and at which levels."""

    def set_log_level(self, user: str, level: str, category: str) -> None:
        """Set the lowest level that is logged, of all categories or of `category`, until the node stops."""

    def rotate_log(self, user: str) -> str:
        """Begin a new log file; returns the file name."""
