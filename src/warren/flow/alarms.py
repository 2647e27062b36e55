"""The resource alarms of a node, which block publishers.

The measured levels are passed in; an alarm is set while the last level is beyond its limit, and by nothing
else.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from msgspec import Struct

from warren.limits import LEVEL_CHANGE_PER_MS_MAX, LEVEL_CHECK_MS_MIN


class Resource(Enum):
    """A resource with an alarm, by its name in connection.blocked."""

    DISK = "disk"
    MEMORY = "memory"


class ResourceLevel(Struct, frozen=True):
    """The last measured level of a resource: bytes of memory in use, or bytes free on the disk."""

    resource: Resource
    byte_count: int
    limit: int

    @property
    def is_low(self) -> bool:
        """True if the level is beyond its limit: too much memory in use, or too little disk space free."""
        if self.resource is Resource.MEMORY:
            return self.byte_count > self.limit
        return self.byte_count < self.limit

    def check_after_ms(self, ms_max: int) -> int:
        """The time until the next measurement (ms): the closer to the limit, the sooner; at most `ms_max`."""
        distance = abs(self.byte_count - self.limit)
        return max(LEVEL_CHECK_MS_MIN, min(distance // LEVEL_CHANGE_PER_MS_MAX, ms_max))


class AlarmListener(Protocol):
    """Reports the setting and clearing of an alarm."""

    def __call__(self, source: str, *, is_set: bool) -> None:
        """The alarm of `source` was set, or cleared if `is_set` is False."""


def _nobody(source: str, *, is_set: bool) -> None:
    """The default listener, which does nothing."""


class Alarms:
    """The alarms of one node."""

    __slots__ = ("_levels", "_on_alarm", "_on_reason_changed")

    def __init__(self, on_reason_changed: Callable[[str], None], on_alarm: AlarmListener = _nobody) -> None:
        # Called with the new reason when it changes; see `reason`.
        self._on_reason_changed = on_reason_changed
        # Called with the resource whose alarm was set or cleared.
        self._on_alarm = on_alarm
        self._levels: dict[Resource, ResourceLevel] = {}

    def update(self, level: ResourceLevel) -> bool:
        """Record `level`. True if this has set or cleared an alarm; the listeners were called then."""
        was_low = self.is_low(level.resource)
        self._levels[level.resource] = level
        if level.is_low == was_low:
            return False
        self._on_alarm(level.resource.value, is_set=level.is_low)
        self._on_reason_changed(self.reason)
        return True

    def level(self, resource: Resource) -> ResourceLevel | None:
        """The last level of `resource`; None if it is not measured."""
        return self._levels.get(resource)

    def is_low(self, resource: Resource) -> bool:
        """True while the alarm of `resource` is set."""
        level = self._levels.get(resource)
        return level is not None and level.is_low

    @property
    def low(self) -> list[Resource]:
        """The resources whose alarm is set, in RabbitMQ's order."""
        return [resource for resource in Resource if self.is_low(resource)]

    @property
    def reason(self) -> str:
        """The reason text of connection.blocked; empty if no alarm is set."""
        low = self.low
        return "low on " + " & ".join(resource.value for resource in low) if low else ""
