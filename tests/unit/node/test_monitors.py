"""Monitors of memory and disk: what is compared with which limit, when, and what is logged."""

import asyncio
import logging
from pathlib import Path

import pytest

from warren.flow.alarms import Alarms
from warren.limits import (
    DISK_CHECK_MS_MAX,
    LEVEL_CHECK_MS_MIN,
    MEMORY_CHECK_MS_MAX,
    QUEUE_MEMORY_MAX,
    QUEUE_MEMORY_STEPS,
)
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.monitors import DiskMonitor, MemoryMonitor, Monitors

GB = 10**9
DATA = Path("/data")


class Readings:
    """A probe whose figures the test sets."""

    def __init__(self) -> None:
        self.used: int | None = 0
        self.total = 10 * GB
        self.free = 100 * GB
        # How much of the used memory a trim returns to the system.
        self.returnable = 0
        self.given_back = 0
        self.fault: OSError | None = None
        self.looks = 0

    def memory_used(self) -> int | None:
        return self.used

    def memory_total(self) -> int:
        return self.total

    def trim_memory(self) -> None:
        self.given_back += 1
        assert self.used is not None
        self.used -= self.returnable
        self.returnable = 0

    def disk_free(self, path: Path) -> int:
        assert path == DATA
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return self.free


class AlarmRecorder:
    """The alarm listener of a monitor, with the time that the test sets."""

    def __init__(self) -> None:
        self.reason = ""
        self.allowed: list[int] = []
        self.alarms = Alarms(self.tell)
        self.now = 0
        self.probe = Readings()

    def tell(self, reason: str) -> None:
        self.reason = reason

    def memory(self, **entries: str) -> MemoryMonitor:
        monitor = MemoryMonitor(self.alarms, self.probe, lambda: self.now, self.allowed.append)
        monitor.configure(config(**entries))
        return monitor

    def disk(self, **entries: str) -> DiskMonitor:
        monitor = DiskMonitor(self.alarms, self.probe, DATA)
        monitor.configure(config(**entries))
        return monitor


def config(**entries: str) -> Config:
    return Config([ConfigEntry(key.replace("__", "."), value, "test") for key, value in entries.items()])


@pytest.mark.parametrize(
    ("entries", "limit"),
    [
        ({}, 4 * GB),
        ({"vm_memory_high_watermark__relative": "0.5"}, 5 * GB),
        ({"vm_memory_high_watermark": "0.1"}, GB),
        ({"vm_memory_high_watermark__absolute": "2GB"}, 2 * GB),
        ({"vm_memory_high_watermark__absolute": "2GB", "vm_memory_high_watermark__relative": "0.3"}, 3 * GB),
        ({"total_memory_available_override_value": "1GB"}, 400_000_000),
    ],
)
def test_the_memory_limit_sets_and_clears_the_alarm(entries: dict[str, str], limit: int) -> None:
    recorder = AlarmRecorder()
    monitor = recorder.memory(**entries)
    recorder.probe.used = limit
    monitor.check()
    assert recorder.reason == ""
    recorder.probe.used = limit + 1
    monitor.check()
    assert recorder.reason == "low on memory"


def test_the_memory_of_queues_is_reduced_as_memory_runs_low() -> None:
    recorder = AlarmRecorder()
    monitor = recorder.memory(vm_memory_high_watermark_paging_ratio="0.75")
    for used in (0, 3 * GB, 3 * GB + GB // 2, 4 * GB, 9 * GB):
        recorder.probe.used = used
        monitor.check()
    half_way = QUEUE_MEMORY_MAX >> QUEUE_MEMORY_STEPS // 2
    least = QUEUE_MEMORY_MAX >> QUEUE_MEMORY_STEPS
    assert recorder.allowed == [QUEUE_MEMORY_MAX, QUEUE_MEMORY_MAX, half_way, least, least]


@pytest.mark.parametrize(
    ("entries", "limit"),
    [
        ({}, 50_000_000),
        ({"disk_free_limit__absolute": "2GiB"}, 2 << 30),
        ({"disk_free_limit": "1GB"}, GB),
        ({"disk_free_limit__relative": "1.5"}, 15 * GB),
        ({"disk_free_limit__relative": "1", "disk_free_limit__absolute": "2GB"}, 10 * GB),
    ],
)
def test_the_disk_limit_sets_and_clears_the_alarm(entries: dict[str, str], limit: int) -> None:
    recorder = AlarmRecorder()
    monitor = recorder.disk(**entries)
    recorder.probe.free = limit
    monitor.check()
    assert recorder.reason == ""
    recorder.probe.free = limit - 1
    monitor.check()
    assert recorder.reason == "low on disk"


def test_free_memory_inside_the_process_is_returned_before_an_alarm_is_set() -> None:
    recorder = AlarmRecorder()
    monitor = recorder.memory()
    recorder.probe.used, recorder.probe.returnable = 5 * GB, 2 * GB
    monitor.check()
    assert (recorder.reason, recorder.probe.given_back) == ("", 1)


def test_during_an_alarm_memory_is_trimmed_once_a_second() -> None:
    recorder = AlarmRecorder()
    monitor = recorder.memory()
    recorder.probe.used = 5 * GB
    for recorder.now in (10_000, 10_100, 10_999, 11_000):
        monitor.check()
    assert (recorder.reason, recorder.probe.given_back) == ("low on memory", 2)
    recorder.probe.used = GB
    recorder.now = 20_000
    monitor.check()
    assert (recorder.reason, recorder.probe.given_back) == ("", 2)


@pytest.mark.parametrize(("share", "is_warned"), [("1.0", True), ("0.9", False)])
def test_a_limit_that_cannot_be_reached_is_warned_about(
    share: str, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    AlarmRecorder().memory(vm_memory_high_watermark=share)
    assert ("set a lower one" in caplog.text) == is_warned


def test_without_figures_of_the_machine_there_is_no_memory_alarm(caplog: pytest.LogCaptureFixture) -> None:
    recorder = AlarmRecorder()
    recorder.probe.used = None
    assert recorder.memory().check() == MEMORY_CHECK_MS_MAX
    assert recorder.reason == ""
    assert "there is no memory alarm" in caplog.text


def test_an_unreadable_disk_is_reported_once_and_measured_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = AlarmRecorder()
    monitor = recorder.disk()
    recorder.probe.fault = OSError(5, "Input/output error")
    assert [monitor.check(), monitor.check()] == [DISK_CHECK_MS_MAX] * 2
    assert caplog.text.count("Input/output error") == 1
    recorder.probe.fault, recorder.probe.free = None, 0
    assert monitor.check() == LEVEL_CHECK_MS_MIN
    assert recorder.reason == "low on disk"


def test_a_second_change_at_one_position_is_not_recorded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "warren.alarms")
    recorder = AlarmRecorder()
    memory, disk = recorder.memory(vm_memory_high_watermark__absolute="100MiB"), recorder.disk()
    recorder.probe.used, recorder.probe.free = 200 << 20, 1 << 20
    for monitor in (memory, disk):
        monitor.check()
        monitor.check()
    recorder.probe.used, recorder.probe.free = 0, GB
    memory.check()
    disk.check()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in lines] == [
        "memory alarm threshold", "disk alarm threshold",
        "memory alarm set", "disk alarm set", "memory alarm cleared", "disk alarm cleared",
    ]  # fmt: skip
    assert lines[0].endswith(": 100 MiB, of 9536 MiB in total")
    assert lines[1].endswith(": 47 MiB free on the disk of /data")
    assert "200 MiB used, 100 MiB allowed" in lines[2]
    assert "raise vm_memory_high_watermark and send SIGHUP" in lines[2]
    assert "1 MiB free on the disk of /data, threshold 47 MiB" in lines[3]


def test_new_limits_apply_at_once_and_a_stopped_monitor_measures_no_more() -> None:
    async def work() -> None:
        recorder = AlarmRecorder()
        recorder.probe.free = GB
        monitors = Monitors([DiskMonitor(recorder.alarms, recorder.probe, DATA)])
        monitors.configure(config(disk_free_limit="2GB"))
        assert recorder.reason == "low on disk"
        monitors.configure(config())
        assert (recorder.reason, recorder.probe.looks) == ("", 2)
        recorder.probe.free = 50_000_000
        monitors.configure(config())
        await asyncio.sleep(LEVEL_CHECK_MS_MIN * 3 / 1000)
        assert recorder.probe.looks > 3
        monitors.stop()
        looks = recorder.probe.looks
        await asyncio.sleep(LEVEL_CHECK_MS_MIN * 2 / 1000)
        assert recorder.probe.looks == looks

    asyncio.run(work())


def test_a_limit_set_at_run_time_applies_until_settings_are_reloaded() -> None:
    async def work() -> None:
        recorder = AlarmRecorder()
        recorder.probe.free = GB
        memory = MemoryMonitor(recorder.alarms, recorder.probe, lambda: 0, recorder.allowed.append)
        monitors = Monitors([memory, DiskMonitor(recorder.alarms, recorder.probe, DATA)])
        monitors.configure(config())
        assert monitors.limit("disk", 2 * GB) == 2 * GB
        assert recorder.reason == "low on disk"
        assert monitors.limits()["disk"] == 2 * GB
        assert monitors.limit("memory", 0.5) == int(recorder.probe.memory_total() * 0.5)
        monitors.configure(config())
        assert recorder.reason == ""
        assert monitors.limit("patience", 1) is None
        monitors.stop()

    asyncio.run(work())
