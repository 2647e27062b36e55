"""The arguments of a stream consumer: start offset and filter."""

import random

import pytest
from tests.sim.disk import SimulatedDisk
from tests.unit.queues.samples import sent

from warren.queues.stream_read_options import StreamReadOptions
from warren.store.streams.chunk import ChunkShape
from warren.store.streams.stream_log import StreamLog, StreamLogDependencies
from warren.wire.table import Timestamp

HOUR_MS = 3_600_000
NOW = 100 * HOUR_MS


@pytest.fixture(scope="module")
def log() -> StreamLog:
    """Three chunks of two messages, published in the 97th, 98th and 99th hour."""
    disk = SimulatedDisk(random.Random(1))
    log = StreamLog(
        1, StreamLogDependencies(disk=disk, random_bytes=random.Random(2).randbytes, report=print), []
    )
    for hour in (97, 98, 99):
        for body in (b"one", b"two"):
            log.append(sent(body, now=hour * HOUR_MS))
        disk.perform(log.take_batch())
        log.written()
    return log


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        ("first", 0),
        ("last", 4),
        ("next", 6),
        (0, 0),
        (3, 3),
        (1_000, 1_000),
        (-5, 0),
        (Timestamp(0), 0),
        (Timestamp(98 * 3_600), 2),
        (Timestamp(98 * 3_600 + 1), 4),
        (Timestamp(200 * 3_600), 6),
        ("2h", 2),
        ("7D", 0),
        ("1s", 6),
    ],
)
def test_a_start_resolves_to_an_offset(log: StreamLog, start: object, offset: int) -> None:
    assert StreamReadOptions({"x-stream-offset": start}).offset(log, NOW) == offset


def test_without_a_start_only_new_messages_are_delivered(log: StreamLog) -> None:
    assert StreamReadOptions({}).offset(log, NOW) == 6


def test_an_empty_stream_begins_at_its_end() -> None:
    disk = SimulatedDisk(random.Random(1))
    log = StreamLog(
        1, StreamLogDependencies(disk=disk, random_bytes=random.Random(2).randbytes, report=print), []
    )
    for start in ("first", "last", "next", "1h", Timestamp(0)):
        assert StreamReadOptions({"x-stream-offset": start}).offset(log, NOW) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-stream-offset": "banana"},
        {"x-stream-offset": True},
        {"x-stream-offset": 1.5},
        {"x-stream-offset": "0D"},
        {"x-stream-offset": None},
        {"x-stream-filter": 5},
        {"x-stream-filter": []},
        {"x-stream-filter": ["a", 5]},
        {"x-stream-match-unfiltered": "yes"},
    ],
)
def test_an_invalid_argument_is_named(arguments: dict[str, object]) -> None:
    (name,) = arguments
    with pytest.raises(ValueError, match=f"'{name}' is "):
        StreamReadOptions(arguments)


@pytest.mark.parametrize(
    ("value", "wanted", "unfiltered", "is_wanted"),
    [
        ("eu", "eu", False, True),
        ("us", "eu", False, False),
        ("us", ["eu", "us"], False, True),
        (None, "eu", False, False),
        (None, "eu", True, True),
        ("us", "eu", True, False),
        (5, "eu", True, False),
    ],
)
def test_a_filter_selects_messages_with_its_value(
    value: object, wanted: object, unfiltered: bool, is_wanted: bool
) -> None:
    headers = {"other": "eu"} if value is None else {"x-stream-filter-value": value}
    message = sent(b"", headers=headers)
    stream_read_options = StreamReadOptions(
        {"x-stream-filter": wanted, "x-stream-match-unfiltered": unfiltered}
    )
    assert stream_read_options.is_filtered
    assert stream_read_options.wants(ChunkShape(message.address, message.property_list, 0, 0)) is is_wanted


def test_without_a_filter_no_message_is_skipped() -> None:
    assert not StreamReadOptions({}).is_filtered
