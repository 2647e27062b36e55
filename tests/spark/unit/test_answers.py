"""Answers of the HTTP API are read as documented, and anything else is refused with the reason."""

from collections.abc import Callable

import pytest
from tests.spark.unit.doubles import answering

from pyspark_warren import answers
from pyspark_warren.answers import CommitAnswer, LeaseAnswer, UnexpectedAnswer
from pyspark_warren.http import HttpApi, HttpApiError
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.streams import StreamBounds


def test_the_documented_fields_are_read() -> None:
    stream = {"epoch": "e", "first_offset": 5, "committed_offset": 15, "bytes": 2_000}
    assert answers.stream_bounds(stream) == StreamBounds(epoch="e", first=5, committed=15, message_bytes=200)
    assert answers.stream_bounds({"epoch": "e", "first_offset": 5, "committed_offset": 5}).message_bytes == 0
    assert answers.granted_lease({"lease": None, "messages": 0}) == LeaseAnswer(id="", messages=0, state="")
    assert answers.granted_lease({"lease": "l", "messages": 3, "state": "active"}).id == "l"
    assert answers.staged_rows({"rows": 3, "bytes": 1}) == 3
    assert answers.staged_rows({"rows": 0, "state": "committed"}) is None
    reported = {"state": "committing", "rows": 5, "published": 2, "reason": None}
    assert answers.commit(reported) == CommitAnswer(
        state="committing", rows=5, published=2, unroutable=0, reason=""
    )
    assert answers.queue_types([{"name": "q", "type": "stream"}, {"name": "down"}]) == {
        "q": "stream",
        "down": "",
    }
    assert answers.traced_vhosts([{"name": "/", "tracing": True}, {"name": "v"}]) == {"/"}
    assert answers.first_offset({"first_offset": 6}, 5) == 6
    assert answers.first_offset({"first_offset": 5}, 5) is None
    assert answers.first_offset({"first_offset": "6"}, 5) is None


@pytest.mark.parametrize(
    ("read", "reported", "text"),
    [
        (answers.stream_bounds, None, "an object is expected, not None"),
        (
            answers.stream_bounds,
            {"epoch": 5, "first_offset": 0, "committed_offset": 0},
            "'epoch' must be a text",
        ),
        (
            answers.stream_bounds,
            {"epoch": "e", "first_offset": 9, "committed_offset": 5},
            "the stream begins at 9 and ends at 5",
        ),
        (answers.stream_offset, {"offset": -1}, "'offset' must be a number of 0 or more, not -1"),
        (answers.stream_offset, {"offset": True}, "not True"),
        (answers.stream_offset, {"offset": 2**63}, "not 9223372036854775808"),
        (answers.granted_lease, {"lease": None, "messages": 1}, "'lease' must be a text, not None"),
        (answers.ready_messages, {"messages": "a" * 500}, f"not '{'a' * 60}'...$"),
        (answers.queue_types, {"error": "x"}, "a list is expected, not an object"),
        (answers.bound_queues, [[]], "an object is expected, not a list"),
    ],
)
def test_anything_else_is_refused(read: Callable[[object], object], reported: object, text: str) -> None:
    with pytest.raises(UnexpectedAnswer, match=text):
        read(reported)


@pytest.mark.parametrize("reported", [b"<html>", b"{" * 9, b"[" * 100_000, b"\xff"])
def test_an_answer_that_is_not_json_is_an_error_with_the_address(reported: bytes) -> None:
    with answering(lambda _: (200, reported)) as double, pytest.raises(HttpApiError) as caught:
        HttpApi(double.options().broker).get("/api/overview")
    assert f"127.0.0.1:{double.port} gave an unexpected answer to /api/overview: it is not JSON" in str(
        caught.value
    )
    assert not caught.value.is_retryable


def test_a_list_of_queues_of_another_program_is_refused() -> None:
    with answering(lambda _: (200, {"queues": []})) as double:
        options = double.options(queue="", queuePattern="q.*", transport="arrow")
        with pytest.raises(HttpApiError, match="a list is expected, not an object"):
            detect_strategy(options, is_streaming=False)
