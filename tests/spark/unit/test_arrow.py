"""Rows over HTTP: whatever breaks on the way, each is read once."""

import pytest
from tests.spark.unit.doubles import Answer, Asked, answering, offsets, stream_of

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
    told = {"epoch": "e", "first_offset": 5, "committed_offset": 15, "bytes": 2_000, "offset": 7}
    with answering(lambda _: (200, told)) as double:
        streams = ArrowStreams(double.options().broker)
        assert streams.bounds("q") == StreamBounds(epoch="e", first=5, committed=15, message_bytes=200)
        assert streams.offset_at("q", 1_000) == 7
        assert double.asked[1].query == {"timestamp": "1000"}


def test_an_answer_that_ends_early_is_gone_on_with() -> None:
    def answer(asked: Asked) -> Answer:
        start = int(asked.query["start"])
        return 200, stream_of(offsets(start, min(start + 4, 10)))

    found, queries = read(answer, wanted(0, 10))
    assert found == [b"%d" % number for number in range(10)]
    assert [query["start"] for query in queries] == ["0", "4", "8"]
    assert {(query["end"], query["epoch"], query["columns"]) for query in queries} == {
        ("10", "e", "body,offset")
    }


def test_an_answer_that_breaks_off_is_gone_on_with() -> None:
    answers = iter([(299, stream_of(offsets(0, 5), offsets(5, 10))), (200, stream_of(offsets(5, 10)))])
    found, queries = read(lambda _: next(answers), wanted(0, 10))
    assert found == [b"%d" % number for number in range(10)]
    assert [query["start"] for query in queries] == ["0", "5"]


def test_an_answer_that_always_breaks_off_is_given_up() -> None:
    with pytest.raises(HttpApiError, match="was cut off at 0"):
        read(lambda _: (299, stream_of(offsets(0, 5))), wanted(0, 10))


def test_what_is_gone_is_told_or_left_out() -> None:
    def answer(asked: Asked) -> Answer:
        if int(asked.query["start"]) < 4:
            return 410, {"error": "gone", "reason": "retention", "first_offset": 4}
        return 200, stream_of(offsets(4, 10))

    with pytest.raises(DataLoss, match="0 to 3 of the stream 'q'"):
        read(answer, wanted(0, 10))
    found, _ = read(answer, wanted(0, 10, fatal=False))
    assert found == [b"%d" % number for number in range(4, 10)]


def test_another_stream_of_the_name_is_told() -> None:
    with pytest.raises(DataLoss, match="declared again"):
        read(lambda _: (409, {"error": "conflict", "reason": "epoch"}), wanted(0, 10))
