"""Measures memory and disk for the alarms: often near a limit, rarely far from it."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from warren.flow.alarms import Alarms, Resource, ResourceLevel
from warren.flow.queue_memory import queue_memory
from warren.limits import DISK_CHECK_MS_MAX, MEMORY_CHECK_MS_MAX, TRIM_MS
from warren.node import settings
from warren.node.config import Config
from warren.runtime.timers import aligned

logger = logging.getLogger("warren.alarms")

_MIB = 1 << 20
_SET = "publishers wait until this alarm clears"


class ResourceProbe(Protocol):
    """The measurements that are needed, implemented by runtime/machine."""

    def memory_used(self) -> int | None: ...
    def memory_total(self) -> int: ...
    def trim_memory(self) -> None: ...
    def disk_free(self, path: Path) -> int: ...


class MemoryMonitor:
    """Compares the memory of this process with vm_memory_high_watermark."""

    resource = "memory"

    def __init__(
        self,
        alarms: Alarms,
        probe: ResourceProbe,
        now: Callable[[], int],
        limit_queue_memory: Callable[[int], None],
    ) -> None:
        self._alarms = alarms
        # Called at each measurement with the bytes of memory that each queue may use.
        self._limit_queue_memory = limit_queue_memory
        self._probe = probe
        self._now = now
        self._limit = 0
        self._total = 0
        self._ratio = 0.0
        # When free memory inside the process may be returned to the system again.
        self._trim_at = 0

    def configure(self, config: Config) -> None:
        """Use the limit that `config` sets."""
        self._total = memory_total(config, self._probe)
        self._ratio = config.get(settings.PAGING_RATIO)
        absolute = config.get(settings.MEMORY_ABSOLUTE)
        if absolute is None or config.is_set(settings.MEMORY_RELATIVE):
            self.limit(config.get(settings.MEMORY_RELATIVE))
        else:
            self.limit(absolute)
        if self._probe.memory_used() is None:
            logger.warning("memory use cannot be measured on this system: there is no memory alarm")

    @property
    def byte_count(self) -> int:
        """The limit (bytes), above which publishers wait."""
        return self._limit

    def limit(self, value: float) -> None:
        """Set the limit to `value`: bytes if int, or a share of the memory if float."""
        self._limit = int(self._total * value) if isinstance(value, float) else value
        logger.info(
            "memory alarm threshold: %d MiB, of %d MiB in total", self._limit // _MIB, self._total // _MIB
        )
        if self._limit >= self._total:
            logger.warning("the memory alarm threshold is not below total memory: set a lower one")

    def check(self) -> int:
        """Measure and update the alarm; returns the time until the next measurement (ms)."""
        level = self._level()
        if level is None:
            return MEMORY_CHECK_MS_MAX
        now = self._now()
        if level.is_low and now >= self._trim_at:
            # Freed memory stays with the process until then, and consumers could never clear the alarm.
            self._trim_at = now + TRIM_MS
            self._probe.trim_memory()
            level = self._level() or level
        self._limit_queue_memory(queue_memory(level.byte_count, int(self._limit * self._ratio), level.limit))
        if self._alarms.update(level):
            used, limit = level.byte_count // _MIB, level.limit // _MIB
            if level.is_low:
                logger.warning(
                    "memory alarm set: %d MiB used, %d MiB allowed; %s: consume messages, limit queues "
                    "(max-length), or raise vm_memory_high_watermark and send SIGHUP",
                    used, limit, _SET,
                )  # fmt: skip
            else:
                logger.warning("memory alarm cleared: %d MiB used, %d MiB allowed", used, limit)
        return level.check_after_ms(MEMORY_CHECK_MS_MAX)

    def _level(self) -> ResourceLevel | None:
        used = self._probe.memory_used()
        return None if used is None else ResourceLevel(Resource.MEMORY, used, self._limit)


class DiskMonitor:
    """Compares the free space on the disk of the data directory with disk_free_limit."""

    resource = "disk"

    def __init__(self, alarms: Alarms, probe: ResourceProbe, folder: Path) -> None:
        self._alarms = alarms
        self._probe = probe
        self._folder = folder
        self._limit = 0
        self._total = 0
        self._is_failing = False

    def configure(self, config: Config) -> None:
        """Use the limit that `config` sets."""
        self._total = memory_total(config, self._probe)
        relative = config.get(settings.DISK_RELATIVE)
        self.limit(config.get(settings.DISK_ABSOLUTE) if relative is None else relative)

    @property
    def byte_count(self) -> int:
        """The limit (bytes), below which publishers wait."""
        return self._limit

    def limit(self, value: float) -> None:
        """Set the limit to `value`: bytes if int, or a share of the memory if float."""
        self._limit = int(self._total * value) if isinstance(value, float) else value
        logger.info("disk alarm threshold: %d MiB free on the disk of %s", self._limit // _MIB, self._folder)

    def check(self) -> int:
        """Measure and update the alarm; returns the time until the next measurement (ms)."""
        try:
            level = ResourceLevel(Resource.DISK, self._probe.disk_free(self._folder), self._limit)
        except OSError as error:
            if not self._is_failing:
                logger.error("cannot measure the free space on the disk of %s: %s", self._folder, error)
            self._is_failing = True
            return DISK_CHECK_MS_MAX
        self._is_failing = False
        if self._alarms.update(level):
            free, limit = level.byte_count // _MIB, level.limit // _MIB
            if level.is_low:
                logger.warning(
                    "disk alarm set: %d MiB free on the disk of %s, threshold %d MiB; %s: free some, "
                    "or lower disk_free_limit and send SIGHUP",
                    free, self._folder, limit, _SET,
                )  # fmt: skip
            else:
                logger.warning("disk alarm cleared: %d MiB free, threshold %d MiB", free, limit)
        return level.check_after_ms(DISK_CHECK_MS_MAX)


Monitor = MemoryMonitor | DiskMonitor


class Monitors:
    """Runs each monitor when its next measurement is due."""

    def __init__(self, monitors: list[Monitor]) -> None:
        self._monitors = monitors
        self._timers: dict[Monitor, asyncio.TimerHandle] = {}

    def configure(self, config: Config) -> None:
        """Measure now, and regularly from then on, with the limits of `config`."""
        self.stop()
        for monitor in self._monitors:
            monitor.configure(config)
            self._check(monitor)

    def limits(self) -> dict[str, int]:
        """The limits by resource, in bytes."""
        return {monitor.resource: monitor.byte_count for monitor in self._monitors}

    def limit(self, resource: str, value: float) -> int | None:
        """Set the limit of `resource`, bytes or a share of memory; returns it in bytes, None if not
        monitored.
        """
        for monitor in self._monitors:
            if monitor.resource == resource:
                monitor.limit(value)
                self._timers[monitor].cancel()
                self._check(monitor)
                return monitor.byte_count
        return None

    def stop(self) -> None:
        """Stop measuring."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _check(self, monitor: Monitor) -> None:
        delay_s = monitor.check() / 1000
        loop = asyncio.get_running_loop()
        due = aligned(loop.time() + delay_s, min(delay_s, 1.0))
        self._timers[monitor] = loop.call_at(due, self._check, monitor)


def memory_total(config: Config, probe: ResourceProbe) -> int:
    """The memory that limits are shares of: the configured total, or the machine's."""
    override = config.get(settings.MEMORY_TOTAL)
    return probe.memory_total() if override is None else override
