"""The resource alarms of a node and of the others in its cluster, which block publishers.

The measured levels are passed in; an alarm of this node is set while the last level is beyond its limit, and
by nothing else. Alarms of the others are what they tell. Publishers are blocked while any node has an alarm.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from msgspec import Struct

from warren.limits import LEVEL_CHANGE_PER_MS_MAX, LEVEL_CHECK_MS_MIN


class Resource(Enum):
    """A resource with an alarm, by its name in connection.blocked."""

    DISK = "disk"
    MEMORY = "memory"


# In RabbitMQ's order.
_RESOURCES = tuple(Resource)


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
    """The alarms of one node, and those that the others have told it."""

    __slots__ = ("_levels", "_on_alarm", "_on_reason_changed", "_others")

    def __init__(self, on_reason_changed: Callable[[str], None], on_alarm: AlarmListener = _nobody) -> None:
        # Called with the new reason when it changes; see `reason`.
        self._on_reason_changed = on_reason_changed
        # Called with the resource whose alarm of this node was set or cleared.
        self._on_alarm = on_alarm
        self._levels: dict[Resource, ResourceLevel] = {}
        # The alarms of other nodes that have some, by their names.
        self._others: dict[str, tuple[Resource, ...]] = {}

    def update(self, level: ResourceLevel) -> bool:
        """Record `level`. True if this has set or cleared an alarm; the listeners were called then."""
        was_low, before = self.is_low(level.resource), self.reason
        self._levels[level.resource] = level
        if level.is_low == was_low:
            return False
        self._on_alarm(level.resource.value, is_set=level.is_low)
        self._report_reason(before)
        return True

    def tell(self, node: str, low: tuple[Resource, ...]) -> None:
        """Record which alarms another node has: none, if it is gone."""
        before = self.reason
        if low:
            self._others[node] = low
        else:
            self._others.pop(node, None)
        self._report_reason(before)

    def level(self, resource: Resource) -> ResourceLevel | None:
        """The last level of `resource`; None if it is not measured."""
        return self._levels.get(resource)

    def is_low(self, resource: Resource) -> bool:
        """True while the alarm of `resource` is set on this node."""
        level = self._levels.get(resource)
        return level is not None and level.is_low

    @property
    def low(self) -> list[Resource]:
        """The resources of this node whose alarm is set, in RabbitMQ's order."""
        return [resource for resource in _RESOURCES if self.is_low(resource)]

    @property
    def others(self) -> Mapping[str, tuple[Resource, ...]]:
        """The alarms of the other nodes that have some, by their names."""
        return self._others

    @property
    def blocking(self) -> list[Resource]:
        """The resources whose alarm is set on any node, in RabbitMQ's order."""
        told = {resource for low in self._others.values() for resource in low}
        return [resource for resource in _RESOURCES if resource in told or self.is_low(resource)]

    @property
    def reason(self) -> str:
        """The reason text of connection.blocked; empty if no alarm is set."""
        blocking = self.blocking
        return "low on " + " & ".join(resource.value for resource in blocking) if blocking else ""

    def _report_reason(self, before: str) -> None:
        reason = self.reason
        if reason != before:
            self._on_reason_changed(reason)
