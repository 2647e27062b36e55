"""Rows over HTTP are read once each, whatever breaks in between."""

import struct

import pyarrow as pa
import pytest
from tests.spark.unit.doubles import Answer, RecordedRequest, answering, offsets, stream_of

from pyspark_warren.arrow import ArrowStreams
from pyspark_warren.http import HttpApiError
from pyspark_warren.streams import DataLoss, OffsetRange, StreamBounds

ROWS = "/api/warren/streams///q/rows"


def wanted(start: int, end: int, *, fatal: bool = True) -> OffsetRange:
    return OffsetRange(queue="q", epoch="e", start=start, end=end, is_loss_fatal=fatal)


def read(answer: object, range_: OffsetRange) -> tuple[list[bytes], list[dict[str, str]]]:
    with answering(answer) as double:  # type: ignore[arg-type]
        streams = ArrowStreams(double.options().broker)
        found = [row["body"] for batch in streams.read(range_, ("body",)) for row in batch.to_pylist()]
        assert {asked.path for asked in double.asked} == {ROWS}
        return found, [asked.query for asked in double.asked]


def test_bounds_are_those_of_the_stream() -> None:
    reported = {"epoch": "e", "first_offset": 5, "committed_offset": 15, "bytes": 2_000, "offset": 7}
    with answering(lambda _: (200, reported)) as double:
        streams = ArrowStreams(double.options().broker)
        assert streams.bounds("q") == StreamBounds(epoch="e", first=5, committed=15, message_bytes=200)
        assert streams.offset_at("q", 1_000) == 7
        assert double.asked[1].query == {"timestamp": "1000"}


def test_an_answer_that_ends_early_is_continued() -> None:
    def answer(asked: RecordedRequest) -> Answer:
        start = int(asked.query["start"])
        return 200, stream_of(offsets(start, min(start + 4, 10)))

    found, queries = read(answer, wanted(0, 10))
    assert found == [b"%d" % number for number in range(10)]
    assert [query["start"] for query in queries] == ["0", "4", "8"]
    assert {(query["end"], query["epoch"], query["columns"]) for query in queries} == {
        ("10", "e", "body,offset")
    }


def test_an_answer_that_breaks_off_is_continued() -> None:
    answers = iter([(299, stream_of(offsets(0, 5), offsets(5, 10))), (200, stream_of(offsets(5, 10)))])
    found, queries = read(lambda _: next(answers), wanted(0, 10))
    assert found == [b"%d" % number for number in range(10)]
    assert [query["start"] for query in queries] == ["0", "5"]


def test_an_answer_that_always_breaks_off_is_an_error() -> None:
    with pytest.raises(HttpApiError, match="is incomplete, it ended at 0"):
        read(lambda _: (299, stream_of(offsets(0, 5))), wanted(0, 10))


def test_removed_messages_are_reported_or_left_out() -> None:
    def answer(asked: RecordedRequest) -> Answer:
        if int(asked.query["start"]) < 4:
            return 410, {"error": "gone", "reason": "retention", "first_offset": 4}
        return 200, stream_of(offsets(4, 10))

    with pytest.raises(DataLoss, match="0 to 3 of the stream 'q'"):
        read(answer, wanted(0, 10))
    found, _ = read(answer, wanted(0, 10, fatal=False))
    assert found == [b"%d" % number for number in range(4, 10)]


def test_a_redeclared_stream_is_detected() -> None:
    with pytest.raises(DataLoss, match="declared again"):
        read(lambda _: (409, {"error": "conflict", "reason": "epoch"}), wanted(0, 10))


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (pa.record_batch({"body": [b"a"]}), "without a column 'offset' of the expected type"),
        (
            pa.record_batch({"offset": ["5"], "body": [b"a"]}),
            "without a column 'offset' of the expected type",
        ),
        (pa.record_batch({"offset": pa.array([1], pa.int64())}), "without a column 'body'"),
        (
            pa.record_batch({"offset": pa.array([None], pa.int64()), "body": [b"a"]}),
            "rows that have no offset",
        ),
        (offsets(0, 11), "answered up to 10: at 0, rows before 10 are wanted"),
    ],
)
def test_rows_other_than_those_that_were_asked_for_are_refused(batch: pa.RecordBatch, text: str) -> None:
    with pytest.raises(HttpApiError, match=text):
        read(lambda _: (200, stream_of(batch)), wanted(0, 10))


def test_rows_that_were_read_before_are_refused_instead_of_read_forever() -> None:
    with pytest.raises(HttpApiError, match="answered up to 4: at 5, rows before 10 are wanted"):
        read(lambda _: (200, stream_of(offsets(0, 5))), wanted(0, 10))


def test_a_batch_that_lies_about_its_own_size_is_refused() -> None:
    whole = stream_of(pa.record_batch({"offset": pa.array([0, 1], pa.int64()), "body": [b"ab", b"cd"]}))
    # The ends of the bodies: the second one is far outside of the batch.
    ends = struct.pack("<3i", 0, 2, 4)
    assert whole.count(ends) == 1
    with pytest.raises(HttpApiError, match="is incomplete, it ended at 0"):
        read(lambda _: (200, whole.replace(ends, struct.pack("<3i", 0, 2**30, 4))), wanted(0, 10))


def test_a_stream_that_is_said_to_begin_where_it_was_read_is_an_error() -> None:
    gone = {"error": "gone", "reason": "retention", "first_offset": 0}
    with pytest.raises(HttpApiError, match="410"):
        read(lambda _: (410, gone), wanted(0, 10, fatal=False))
