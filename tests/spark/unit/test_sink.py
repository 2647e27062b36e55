"""Rows as Spark 4.0 passes them to a streaming write, and as they are sent."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_warren.sink import _batches

pytestmark = pytest.mark.versions
SCHEMA = StructType([
    StructField("offset", LongType()), StructField("body", BinaryType()),
    StructField("priority", ShortType()),
    StructField("headers", MapType(StringType(), StringType())), StructField("timestamp", TimestampType()),
])  # fmt: skip


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone of this machine."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_row_is_sent_with_its_time_in_any_zone(zone: None) -> None:
    # The second is in an hour that occurs twice in New York.
    moments = [datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC), datetime(2026, 11, 1, 6, 30, tzinfo=UTC)]
    reported = [TimestampType().fromInternal(int(moment.timestamp()) * 1_000_000) for moment in moments]
    rows = [
        Row(offset=1, body=bytearray(b"x"), priority=5, headers={"a": "b"}, timestamp=moment)
        for moment in reported
    ]
    (batch,) = _batches(
        iter([*rows, Row(offset=2, body=b"", priority=None, headers=None, timestamp=None)]), SCHEMA
    )
    assert batch.to_pylist() == [
        *(
            {"body": b"x", "priority": 5, "headers": [("a", "b")], "timestamp": moment} for moment in moments
        ),
        {"body": b"", "priority": None, "headers": None, "timestamp": None},
    ]  # fmt: skip
