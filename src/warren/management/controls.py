"""What people may ask of a running node itself: its settings, its limits and its log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class ControlRefused(Exception):
    """It cannot be done; the message says why."""


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting, with where its value comes from; a value of None is none at all."""

    key: str
    value: str | None
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """Where the log goes; an empty `file` is none."""

    file: str
    console: bool
    exchange: bool
    # The least that is logged, by category.
    levels: Mapping[str, str]


class Controls(Protocol):
    """Port: the node. `user` is who asks, for the audit log; ControlRefused says what is in the way."""

    def settings(self) -> list[SettingView]:
        """All of them, with secrets masked."""

    def limits(self) -> Mapping[str, int]:
        """Octets by resource: above which, or below which, publishers wait."""

    def set_limit(self, user: str, resource: str, *, absolute: object, relative: object) -> int:
        """Another limit of `resource`, until the node stops or its settings are read again; in octets."""

    def log(self) -> LogView:
        """Where the log goes, and how much of it."""

    def set_log_level(self, user: str, level: str, category: str) -> None:
        """The least that is logged, of everything or of `category`, until the node stops."""

    def rotate_log(self, user: str) -> str:
        """Have the log file begin anew; its name."""
