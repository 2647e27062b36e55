"""Rows are staged by tasks and committed by the driver."""

import threading

import pyarrow as pa
import pytest
from tests.spark.unit.doubles import Answer, Double, RecordedRequest, answering

from pyspark_warren.amqp_publisher import PublishFailed
from pyspark_warren.http import HttpApiError
from pyspark_warren.options import WriteOptions, write_options
from pyspark_warren.sink import BatchWriter, TaskCommitMessage, WriteTask
from pyspark_warren.staged_publish import commit, discard_staged, stage

TASK = WriteTask("query", 7, 1, 12)


def options(double: Double, **given: str) -> WriteOptions:
    place = {
        "managementUri": f"http://127.0.0.1:{double.port}",
        "retries": "0",
        "queue": "q",
        "txn": "staged",
    }
    return write_options(place | given)


def counted(asked: RecordedRequest) -> Answer:
    return 200, {"rows": pa.ipc.open_stream(asked.body).read_all().num_rows, "octets": 1}


def test_rows_are_sent_with_the_relevant_columns() -> None:
    batch = pa.record_batch(
        {"body": [b"a", b"b"], "exchange": ["x", "x"], "offset": [1, 2], "type": ["t", None]}
    )
    with answering(counted) as double:
        assert stage([batch.slice(0, 0), batch, batch], options(double, persistent="false"), TASK.place) == 4
        (asked,) = double.asked
    assert asked.path == "/api/warren/staged///amq.default"
    place = {"query": "query", "batch": "7", "partition": "1", "attempt": "12"}
    assert asked.query == {**place, "mandatory": "true"}
    table = pa.ipc.open_stream(asked.body).read_all()
    assert table.column_names == ["body", "type", "routing_key", "delivery_mode"]
    assert table.slice(0, 1).to_pylist() == [
        {"body": b"a", "type": "t", "routing_key": "q", "delivery_mode": 1}
    ]


def test_a_task_without_rows_stages_nothing() -> None:
    with answering(counted) as double:
        assert stage([], options(double), TASK.place) == 0
        assert double.asked == []


def test_a_task_whose_broker_is_briefly_unavailable_sends_its_rows_again() -> None:
    answers = iter([(503, {}), (503, {}), (200, {"rows": 2, "octets": 2})])
    with answering(lambda _: next(answers)) as double:
        batches = [pa.record_batch({"body": [text]}) for text in (b"a", b"b")]
        assert stage(batches, options(double, retries="5"), TASK.place) == 2
        first, *again = double.asked
        assert [asked.method for asked in double.asked] == ["POST"] * 3
        assert pa.ipc.open_stream(first.body).read_all().column("body").to_pylist() == [b"a", b"b"]
        assert [asked.body for asked in again] == [first.body] * 2


def test_a_task_whose_broker_stays_unavailable_fails() -> None:
    with answering(lambda _: (503, {})) as double, pytest.raises(HttpApiError, match="answered 503 to POST"):
        stage([pa.record_batch({"body": [b"a"]})], options(double, retries="1"), TASK.place)


def test_a_batch_without_stages_is_discarded() -> None:
    with answering(lambda _: (403, {"reason": "user 'u' has staged nothing"})) as double:
        BatchWriter(options(double)).abort([TaskCommitMessage(TASK, 1, is_staged=True)])


def test_the_driver_commits_stages_in_order_and_waits_for_the_result() -> None:
    answers = iter([(202, {"state": "committing", "published": 1}), (200, {"state": "committed", "rows": 2})])
    with answering(lambda _: next(answers)) as double:
        writer = BatchWriter(options(double))
        messages = [
            TaskCommitMessage(WriteTask("query", 7, partition, 30 + partition), partition, is_staged=True)
            for partition in (2, 0, 1)
        ]
        writer.commit([*messages, None])
        bodies = [asked.json for asked in double.asked]
    assert bodies == [
        {
            "query": "query",
            "batch": 7,
            "partitions": [{"partition": 1, "attempt": 31}, {"partition": 2, "attempt": 32}],
        }
    ] * 2  # fmt: skip


def test_a_commit_without_progress_fails_with_the_reason_and_its_state() -> None:
    reported = {
        "state": "committing",
        "rows": 10,
        "published": 5,
        "reason": "queue 'q' is full and refuses it",
    }
    with answering(lambda _: (202, reported)) as double:
        writer = BatchWriter(options(double, timeoutMs="300"))
        with pytest.raises(
            PublishFailed, match=r"5 of 10 .* queue 'q' is full .*restarted streaming query waits for that"
        ):
            writer.commit([TaskCommitMessage(TASK, 10, is_staged=True)])


def test_a_commit_is_waited_for_longer_than_the_broker_takes_to_answer() -> None:
    def late(_: RecordedRequest) -> Answer:
        # It is never set: the answer comes after twice the retry time of the options.
        threading.Event().wait(0.4)
        return 200, {"state": "committed", "rows": 1}

    with answering(late) as double:
        reported = commit(options(double, timeoutMs="200").broker, "query", 7, [(1, 12)])
        assert reported.state == "committed"
        assert len(double.asked) == 1


def test_rows_that_need_not_be_routed_are_staged_without_a_check() -> None:
    with answering(counted) as double:
        stage([pa.record_batch({"body": [b"a"]})], options(double, mandatory="false"), TASK.place)
        assert "mandatory" not in double.asked[0].query


def test_a_commit_with_a_missing_stage_fails() -> None:
    with (
        answering(lambda _: (409, {"error": "missing", "reason": "partition 1"})) as double,
        pytest.raises(HttpApiError, match="partition 1"),
    ):
        commit(options(double).broker, "query", 7, [(1, 12)])


def test_a_batch_that_is_being_published_is_not_discarded() -> None:
    with answering(lambda _: (409, {"error": "conflict", "reason": "committing"})) as double:
        discard_staged(options(double).broker, "query", 7)
        assert [(asked.method, asked.query) for asked in double.asked] == [
            ("DELETE", {"query": "query", "batch": "7"})
        ]
