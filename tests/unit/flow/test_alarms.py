"""Resource alarms: when they are set and cleared, what publishers are told, and the time of the next
measurement.
"""

import pytest

from warren.flow.alarms import Alarms, Resource, ResourceLevel
from warren.limits import DISK_CHECK_MS_MAX, LEVEL_CHECK_MS_MIN

GB = 10**9


def memory(byte_count: int, limit: int = 100) -> ResourceLevel:
    return ResourceLevel(Resource.MEMORY, byte_count, limit)


def disk(byte_count: int, limit: int = 100) -> ResourceLevel:
    return ResourceLevel(Resource.DISK, byte_count, limit)


@pytest.mark.parametrize(
    ("level", "is_low"),
    [(memory(101), True), (memory(100), False), (disk(99), True), (disk(100), False)],
)
def test_an_alarm_is_set_above_the_memory_limit_or_below_the_disk_limit(
    level: ResourceLevel, is_low: bool
) -> None:
    assert level.is_low == is_low


def test_listeners_are_notified_of_changes_only() -> None:
    reported: list[str] = []
    alarms = Alarms(reported.append)
    assert [alarms.update(memory(byte_count)) for byte_count in (1, 200, 300, 100, 50)] == [
        False, True, False, True, False,
    ]  # fmt: skip
    assert reported == ["low on memory", ""]


def test_two_alarms_are_named_in_the_order_of_rabbitmq_and_cleared_separately() -> None:
    reported: list[str] = []
    alarms = Alarms(reported.append)
    for level in (memory(101), disk(0), memory(0), disk(200)):
        alarms.update(level)
    assert reported == ["low on memory", "low on disk & memory", "low on disk", ""]


def test_the_latest_measurement_is_available() -> None:
    alarms = Alarms(lambda _: None)
    assert alarms.level(Resource.DISK) is None
    assert not alarms.is_low(Resource.DISK)
    alarms.update(disk(50))
    alarms.update(disk(7))
    assert alarms.level(Resource.DISK) == disk(7)
    assert alarms.low == [Resource.DISK]


def test_an_alarm_of_any_node_blocks_publishers_until_the_last_one_is_cleared() -> None:
    reported: list[str] = []
    alarms = Alarms(reported.append)
    alarms.tell("b@here", (Resource.MEMORY,))
    alarms.tell("c@here", (Resource.MEMORY,))
    alarms.update(memory(101))
    alarms.tell("b@here", ())
    alarms.update(memory(0))
    assert reported == ["low on memory"]
    alarms.tell("c@here", (Resource.DISK, Resource.MEMORY))
    alarms.tell("c@here", ())
    alarms.tell("c@here", ())
    assert reported == ["low on memory", "low on disk & memory", ""]


def test_alarms_of_other_nodes_are_none_of_this_one() -> None:
    events: list[tuple[str, bool]] = []
    alarms = Alarms(lambda _: None, lambda source, *, is_set: events.append((source, is_set)))
    alarms.tell("b@here", (Resource.DISK,))
    alarms.update(memory(101))
    assert alarms.low == [Resource.MEMORY]
    assert not alarms.is_low(Resource.DISK)
    assert alarms.others == {"b@here": (Resource.DISK,)}
    assert alarms.blocking == [Resource.DISK, Resource.MEMORY]
    assert events == [("memory", True)]


def test_measurements_are_more_frequent_near_the_limit() -> None:
    looks = [
        disk(byte_count, limit=GB).check_after_ms(DISK_CHECK_MS_MAX)
        for byte_count in (20 * GB, 5 * GB, GB + GB // 5, GB, 0)
    ]
    assert looks == [DISK_CHECK_MS_MAX, 4000, 200, LEVEL_CHECK_MS_MIN, 1000]
