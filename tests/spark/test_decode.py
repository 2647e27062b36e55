"""Decoding JSON into columns; a body that does not fit is published with the reason, exactly once."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.spark.brokers import STREAM, BrokerUnderTest

from pyspark_warren.pipelines.decode import FROM, REASON, DecodeProgress, mismatch_reason, schema_of, start
from pyspark_warren.pipelines.table_reader import parse_table, read
from warren.cli.main import main

pytestmark = pytest.mark.versions
DDL = "id bigint not null, name string, tags array<string>, price struct<amount: double>"
GOOD = [b'{"id":1,"name":"a"}', b'{"id":2,"tags":["q"],"price":{"amount":2}}', b'{"id":3,"more":true}']
BAD = {
    b"nope": "not JSON: Expecting value: line 1 column 1 (char 0)",
    b"": "not JSON: Expecting value: line 1 column 1 (char 0)",
    b"\xff": "not UTF-8 at byte 0",
    b"[]": "the body is [], not an object",
    b'{"name":"b"}': "id is missing",
    b'{"id":null}': "id is null",
    b'{"id":"x"}': 'id is "x", not bigint',
    b'{"id":1,"tags":"q"}': 'tags is "q", not an array',
    b'{"id":1,"price":{"amount":"much"}}': 'price.amount is "much", not double',
}


def test_the_reason_why_a_body_does_not_fit_is_short(spark: SparkSession) -> None:
    schema = schema_of(spark, DDL)
    assert {body: mismatch_reason(body, schema) for body in BAD} == BAD
    assert schema_of(spark, schema.json()) == schema
    long = mismatch_reason(json.dumps({"id": "x" * 1000}).encode(), schema)
    assert len(long) < 100
    with pytest.raises(ValueError, match="must not have the columns queue"):
        schema_of(spark, "queue string")


def test_a_batch_repeated_after_a_crash_is_written_once(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    for name, arguments in (("json", STREAM), ("misfits", None)):
        warren.declare(name, arguments)
    warren.publish("json", [*GOOD, *BAD])
    seen: list[DecodeProgress] = []

    def run(progress: Callable[[DecodeProgress], None]) -> None:
        start(
            spark,
            source=warren.options | {"queue": "json"},
            schema=schema_of(spark, DDL),
            to=str(tmp_path),
            dead_letters=warren.options | {"queue": "misfits"},
            once=True,
            progress=progress,
        ).awaitTermination()

    def crash(batch: DecodeProgress) -> None:
        # Both parts are written, and Spark has not recorded it.
        seen.append(batch)
        raise RuntimeError("crashed")

    with pytest.raises(StreamingQueryException, match="crashed"):
        run(crash)
    run(seen.append)
    assert seen == [DecodeProgress(batch=0, good=len(GOOD), bad=len(BAD))] * 2
    good = spark.read.parquet(str(tmp_path)).orderBy("offset").collect()
    assert [(row.id, row.name, row.tags) for row in good] == [
        (1, "a", None),
        (2, None, ["q"]),
        (3, None, None),
    ]
    assert (good[1].price.amount, good[1].queue) == (2.0, "json")
    bad = read(spark, parse_table("queue.misfits"), warren.options).collect()
    assert {bytes(row.body): row.headers[REASON] for row in bad} == BAD
    assert {row.headers[FROM] for row in bad} == {"json"}
    assert warren.count("misfits") == len(BAD)


def test_an_invalid_schema_and_a_missing_place_are_usage_errors(
    spark: SparkSession, warren: BrokerUnderTest
) -> None:
    def refused(*arguments: str) -> str:
        where = ["--uri", warren.options["uri"], "--management-uri", warren.options["managementUri"]]
        ended = CliRunner().invoke(
            main, ["spark", "decode", *arguments, *where, "--quiet", "--to", "nowhere"]
        )
        assert ended.exit_code == 2, ended.output
        return ended.output

    given = ["--queue", "json", "--dead-letter-queue", "misfits", "--schema"]
    assert "--schema: [" in refused(*given, "id bigger")
    assert "--schema: the schema must not have the columns offset" in refused(*given, "offset string")
    assert "No such file" in refused(*given, "@nowhere.json")
    assert "exactly one of --dead-letter-exchange and --dead-letter-queue" in refused(
        "--queue", "json", "--schema", "id bigint"
    )
    assert "one of --queue and --stream" in refused("--dead-letter-exchange", "dlx", "--schema", "id bigint")


@pytest.mark.since((4, 2), "queries over queues")
def test_decoding_a_queue_requires_consent_to_consume_it(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("asked")
    warren.publish("asked", [b'{"id":1}', b"no"])
    where = ["--uri", warren.options["uri"], "--management-uri", warren.options["managementUri"]]
    given = ["--queue", "asked", "--schema", "id bigint", "--to", str(tmp_path / "json"), "--available-now"]
    decoding = ["spark", "decode", *given, "--dead-letter-queue", "asked-bad", *where]
    warren.declare("asked-bad")
    reported = CliRunner().invoke(main, decoding)
    assert (reported.exit_code, "add --consume to do so" in reported.output) == (2, True), reported.output
    assert warren.count("asked") == 2
    done = CliRunner().invoke(main, [*decoding, "--consume"])
    assert done.exit_code == 0, done.output
    assert (warren.count("asked"), warren.count("asked-bad")) == (0, 1)
