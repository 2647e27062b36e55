"""The alarms of a node: what runs low, since when publishers are held up for it, and why.

Whoever measures hands the figures in; an alarm is on while the last figure is beyond its limit, and nothing
else sets or clears it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from warren.limits import LEVEL_CHANGE_PER_MS_MAX, LEVEL_CHECK_MS_MIN


class Resource(Enum):
    """What may run low, as connection.blocked names it."""

    DISK = "disk"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class ResourceLevel:
    """How much of a resource there was at the last look (bytes used of memory, free on the disk)."""

    resource: Resource
    octets: int
    limit: int

    @property
    def is_low(self) -> bool:
        """Too much memory is used, or too little of the disk is free."""
        if self.resource is Resource.MEMORY:
            return self.octets > self.limit
        return self.octets < self.limit

    def check_after_ms(self, ms_max: int) -> int:
        """When to look again: the nearer the limit, on either side of it, the sooner."""
        distance = abs(self.octets - self.limit)
        return max(LEVEL_CHECK_MS_MIN, min(distance // LEVEL_CHANGE_PER_MS_MAX, ms_max))


class AlarmListener(Protocol):
    """Makes an alarm known."""

    def __call__(self, source: str, *, is_set: bool) -> None:
        """The alarm of `source` was set, or cleared."""


def _nobody(source: str, *, is_set: bool) -> None:
    """Where nobody has to know."""


class Alarms:
    """What runs low on one node."""

    __slots__ = ("_levels", "_on_alarm", "_on_reason_changed")

    def __init__(self, on_reason_changed: Callable[[str], None], on_alarm: AlarmListener = _nobody) -> None:
        # Called with the new reason when it changes; see `reason`.
        self._on_reason_changed = on_reason_changed
        # Called with what runs low, or does not any more.
        self._on_alarm = on_alarm
        self._levels: dict[Resource, ResourceLevel] = {}

    def update(self, level: ResourceLevel) -> bool:
        """Take note of `level`. True when that has set or cleared an alarm, and everybody was told."""
        was_low = self.is_low(level.resource)
        self._levels[level.resource] = level
        if level.is_low == was_low:
            return False
        self._on_alarm(level.resource.value, is_set=level.is_low)
        self._on_reason_changed(self.reason)
        return True

    def level(self, resource: Resource) -> ResourceLevel | None:
        """What was measured last; None if it is not measured."""
        return self._levels.get(resource)

    def is_low(self, resource: Resource) -> bool:
        """True while the alarm of `resource` is on."""
        level = self._levels.get(resource)
        return level is not None and level.is_low

    @property
    def low(self) -> list[Resource]:
        """The alarms that are on, in RabbitMQ's order."""
        return [resource for resource in Resource if self.is_low(resource)]

    @property
    def reason(self) -> str:
        """Why publishers are held up, in the words of connection.blocked; empty when they are not."""
        low = self.low
        return "low on " + " & ".join(resource.value for resource in low) if low else ""
