"""Options are case-insensitive, and an invalid one is named with the valid values."""

import re
from collections.abc import Callable

import pytest

from pyspark_warren.options import read_options, write_options
from pyspark_warren.schema import COLUMNS


def test_missing_options_have_defaults() -> None:
    options = read_options({"queue": "orders"})
    assert (options.mode, options.starting, options.ending, options.is_loss_fatal) == (
        "auto", "earliest", "latest", True,
    )  # fmt: skip
    assert (options.broker.target.host, options.broker.target.port, options.broker.transport) == (
        "127.0.0.1", 5672, "auto",
    )  # fmt: skip
    assert options.columns == tuple(COLUMNS)


def test_option_names_are_case_insensitive() -> None:
    options = read_options({"QUEUE": "q", "maxoffsetspertrigger": "5", "FailOnDataLoss": "FALSE"})
    assert (options.queue, options.offsets_max, options.is_loss_fatal) == ("q", 5, False)


def test_column_names_are_case_insensitive() -> None:
    assert read_options({"queue": "q", "columns": "OFFSET, Body"}).columns == ("offset", "body")


def test_no_representation_of_options_contains_the_password() -> None:
    reported = {"queue": "q", "uri": "amqp://u:secret@host", "managementUri": "http://u:secret@host:x"}
    with pytest.raises(ValueError, match="managementUri") as wrong:
        read_options(reported)
    assert "secret" not in str(wrong.value)
    assert "secret" not in repr(read_options({**reported, "managementUri": "http://u:secret@host"}))


def test_the_vhost_may_be_a_separate_option() -> None:
    options = read_options({"queue": "q", "uri": "amqp://u:p@host/a", "vhost": "b"})
    assert (options.broker.target.vhost, options.broker.target.user) == ("b", "u")


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({}, "queue, queuePattern, superStream or a path"),
        ({"queue": "a", "superStream": "b"}, "queue and superStream"),
        (
            {"queue": "a", "mode": "fast"},
            "'mode' must be one of auto, stream, lease, classic, browse, not 'fast'",
        ),
        ({"queue": "a", "transport": "udp"}, "auto, arrow, amqp"),
        ({"queue": "a", "uri": "http://x"}, "'uri' must be an AMQP URI"),
        ({"queue": "a", "maxOffsetsPerTrigger": "0"}, "an integer from 1, not '0'"),
        ({"queue": "a", "prefetch": "70000"}, "from 1 to 65535"),
        ({"queue": "a", "failOnDataLoss": "no"}, "true or false, not 'no'"),
        ({"queue": "a", "startingOffsets": "first"}, "earliest, latest or offsets as JSON"),
        ({"queue": "a", "startingTimestamp": "yesterday"}, "a time as ISO 8601"),
        ({"queue": "a", "startingTimestamp": "5", "startingOffsets": "latest"}, "either"),
        ({"queue": "a", "columns": "body,size"}, "'columns' must be distinct names out of queue, offset"),
        (
            {"queuePattern": "a["},
            "'queuePattern' must be a regular expression for the names of queues: unterminated",
        ),
        (
            {"queue": "a", "managementUri": "http://u:p@h:99999"},
            "'managementUri' must be the address of the HTTP API",
        ),
        ({}, "CREATE TEMPORARY VIEW"),
        ({"queue": "a", "maxOffsetPerTrigger": "5"}, "did you mean 'maxOffsetsPerTrigger'"),
    ],
)
def test_an_invalid_option_is_named(given: dict[str, str], reported: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reported)):
        read_options(given)


@pytest.mark.parametrize("read", [read_options, write_options])
def test_options_of_spark_and_of_the_other_direction_are_ignored(read: Callable[..., object]) -> None:
    read({"queue": "a", "checkpointLocation": "x", "leaseSeconds": "5", "txnId": "a"})


@pytest.mark.parametrize("read", [read_options, write_options])
@pytest.mark.parametrize(
    ("name", "reported"),
    [("mergeSchema", "; "), ("timeout", "; did you mean 'timeoutMs'?"), ("x", "; options are ")],
)
def test_an_unknown_option_is_refused(read: Callable[..., object], name: str, reported: str) -> None:
    with pytest.raises(ValueError, match=f"unknown option '{name.lower()}'{re.escape(reported)}"):
        read({"queue": "a", name: "secret"})


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1700000000000", 1_700_000_000_000), ("2023-11-14T22:13:20", 1_700_000_000_000),
     ("2023-11-14T23:13:20.5+01:00", 1_700_000_000_500)],
)  # fmt: skip
def test_times_are_parsed(text: str, milliseconds: int) -> None:
    assert read_options({"queue": "a", "startingTimestamp": text}).starting == milliseconds


def test_a_queue_to_write_to_is_an_address() -> None:
    options = write_options({"queue": "orders"})
    assert (options.exchange, options.routing_key, options.transaction) == ("", "orders", "auto")
    with pytest.raises(ValueError, match="default exchange"):
        write_options({"queue": "orders", "exchange": "x"})
