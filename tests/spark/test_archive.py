"""Archives of queues and streams: each message once, and maintenance of the lake."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.spark.brokers import STREAM, BrokerUnderTest

from pyspark_warren.pipelines.archive import ArchiveProgress, archive
from pyspark_warren.pipelines.maintenance import clean, compact
from pyspark_warren.pipelines.table_reader import parse_table as table_at
from pyspark_warren.pipelines.table_reader import read
from pyspark_warren.versions import HAS_BATCHES
from warren.cli.main import main


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def run(spark: SparkSession, place: BrokerUnderTest, lake: Path, **given: Any) -> list[ArchiveProgress]:
    """Archive the present messages; returns the progress messages."""
    reported: list[ArchiveProgress] = []
    options = place.options
    query = archive(
        spark, lake, uri=options["uri"], management_uri=options["managementUri"], once=True,
        progress=reported.append, **given,
    )  # fmt: skip
    assert query.awaitTermination(200)
    return reported


def rows(lake: Path) -> list[dict[str, Any]]:
    """The rows that a reader of Delta finds, which is not Spark."""
    found: list[dict[str, Any]] = DeltaTable(str(lake)).to_pyarrow_table().to_pylist()
    return found


@pytest.mark.versions
def test_streams_of_a_pattern_are_archived_by_day_and_queue_and_continued(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    for queue in ("arch a/b=ü", "arch-c"):
        warren.declare(queue, STREAM)
        warren.publish(queue, numbered(0, 500))
    lake = tmp_path / "lake"
    reported = run(spark, warren, lake, queue_pattern="arch.*", batch_rows=600 if HAS_BATCHES else None)
    batches = [600, 400] if HAS_BATCHES else [1_000]
    assert [(one.stage, one.batch, one.rows) for one in reported] == [
        step
        for batch, rows in enumerate(batches)
        for step in (("planned", batch, 0), ("written", batch, rows), ("committed", batch, rows))
    ]
    assert reported[-1].version == len(batches)
    warren.publish("arch-c", numbered(500, 600))
    run(spark, warren, lake, queue_pattern="arch.*")
    found = rows(lake)
    assert sorted((row["queue"], row["offset"]) for row in found) == [
        *(("arch a/b=ü", number) for number in range(500)), *(("arch-c", number) for number in range(600)),
    ]  # fmt: skip
    assert all(row["body"] == b"%d" % row["offset"] for row in found)
    assert {row["day"] for row in found} == {row["broker_timestamp"].date() for row in found}

    compact(lake)
    read_again = read(spark, table_at("lake." + str(lake)), {})
    counted = {row["queue"]: row["count"] for row in read_again.groupBy("queue").count().collect()}
    assert counted == {"arch a/b=ü": 500, "arch-c": 600}
    assert "_file" not in read_again.columns

    with pytest.raises(ValueError, match=r"already has rows of arch-c.*starting='archived'"):
        run(spark, warren, lake, queue="arch-c", name="other")
    warren.publish("arch-c", numbered(600, 700))
    run(spark, warren, lake, queue="arch-c", name="other", starting="archived")
    assert sorted(row["offset"] for row in rows(lake) if row["queue"] == "arch-c") == list(range(700))


@pytest.mark.versions
@pytest.mark.since((4, 2), "queries over queues")
def test_a_leased_queue_is_archived_and_then_empty(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("arch-leased")
    warren.publish("arch-leased", numbered(0, 1_000))
    run(spark, warren, tmp_path / "lake", queue="arch-leased", batch_rows=400, format="parquet")
    found = spark.read.parquet(str(tmp_path / "lake"))
    assert sorted(int(row.body) for row in found.select("body").collect()) == list(range(1_000))
    assert len(list((tmp_path / "lake").glob("batch=*"))) == 3
    assert warren.count("arch-leased") == 0
    with pytest.raises(ValueError, match="cannot be compacted: it has no log"):
        compact(tmp_path / "lake")
    with pytest.raises(ValueError, match="already a lake of format 'parquet'"):
        run(spark, warren, tmp_path / "lake", queue="arch-leased")


def test_a_stream_of_rabbitmq_is_archived(
    spark: SparkSession, rabbitmq: BrokerUnderTest, tmp_path: Path
) -> None:
    rabbitmq.declare("arch-stream", dict(STREAM))
    rabbitmq.declare("arch-work")
    for queue in ("arch-stream", "arch-work"):
        rabbitmq.publish(queue, numbered(0, 300))
    for _ in range(2):
        run(spark, rabbitmq, tmp_path / "lake", queue="arch-stream", batch_rows=200)
        run(spark, rabbitmq, tmp_path / "lake", queue="arch-work")
    found = [(row["queue"], int(row["body"])) for row in rows(tmp_path / "lake")]
    assert sorted(found) == [(queue, n) for queue in ("arch-stream", "arch-work") for n in range(300)]
    assert rabbitmq.count("arch-work") == 0


def test_firehose_traces_are_archived(spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`warren trace on`"):
        run(spark, warren, tmp_path / "lake", firehose=True)
    warren.put("/api/vhosts/%2F", {"tracing": True})
    try:
        run(spark, warren, tmp_path / "lake", firehose=True)
        warren.declare("traced")
        warren.publish("traced", numbered(0, 10))
        run(spark, warren, tmp_path / "lake", firehose=True)
    finally:
        warren.put("/api/vhosts/%2F", {"tracing": False})
    found = rows(tmp_path / "lake")
    published = [row["body"] for row in found if row["routing_key"] == "publish."]
    assert published == numbered(0, 10)


def test_small_files_are_compacted_and_orphaned_files_removed_when_they_are_old(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    warren.declare("tended", STREAM)
    warren.publish("tended", numbered(0, 400))
    run(spark, warren, lake, queue="tended", batch_rows=100)
    before = {Path(one) for one in DeltaTable(str(lake)).file_uris()}
    done = compact(lake)
    assert (done.files_before, done.files_after) == (4, 1)
    assert sorted(row["offset"] for row in rows(lake)) == list(range(400))
    assert done.version == DeltaTable(str(lake)).version()

    (kept,) = DeltaTable(str(lake)).file_uris()
    orphan, young = (Path(kept).with_name(f"{name}.parquet") for name in ("orphan", "young"))
    left, fresh = (lake / "_warren" / "staged" / name for name in ("left", "fresh"))
    for path in (orphan, young):
        path.write_bytes(b"x")
    for folder in (left, fresh):
        folder.mkdir()
    week_ago = time.time() - 8 * 86_400
    for path in (orphan, left):
        os.utime(path, (week_ago, week_ago))
    expected = [str(left.relative_to(lake)) + "/", str(orphan.relative_to(lake))]
    assert clean(lake, dry_run=True) == expected
    assert orphan.exists()
    assert clean(lake) == expected
    assert (orphan.exists(), left.exists(), young.exists(), fresh.exists()) == (False, False, True, True)
    assert all(path.exists() for path in before)
    with pytest.raises(ValueError, match="at least 168 hours, not 1"):
        clean(lake, retention_hours=1)


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"format": "csv"}, "format of a lake must be delta or parquet, not 'csv'"),
        ({"batch_rows": 0}, "batch_rows must be at least 1, not 0"),
        ({"queue": "missing"}, "there is no queue 'missing'"),
        ({"queue": "a", "queue_pattern": "b"}, "not queue and queuePattern"),
        ({"queue": "a", "firehose": True}, "the firehose has all messages"),
    ],
)
def test_an_impossible_archive_is_refused_with_the_reason(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, given: dict[str, Any], reported: str
) -> None:
    with pytest.raises(ValueError, match=reported):
        run(spark, warren, tmp_path / "lake", **({"queue": "any"} | given))
    assert not (tmp_path / "lake").exists()


def test_a_folder_with_other_contents_is_not_a_lake(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("any-lake", STREAM)
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ValueError, match=r"is not a lake, since it contains 'notes\.txt'"):
        run(spark, warren, tmp_path, queue="any-lake")
    with pytest.raises(ValueError, match="a folder that the driver and all executors see"):
        run(spark, warren, "hdfs://name/lake", queue="any-lake")  # type: ignore[arg-type]


def test_archives_can_be_made_and_maintained_with_commands(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    warren.declare("commanded")
    warren.publish("commanded", numbered(0, 300))
    archiving = ("archive", "--queue", "commanded", "--to", lake, "--available-now", "--batch-rows", "100")
    where = ("--uri", warren.options["uri"], "--management-uri", warren.options["managementUri"])
    reported = CliRunner().invoke(main, ["spark", *archiving, *where])
    assert (reported.exit_code, "add --consume to do so" in reported.output) == (2, True), reported.output
    assert "'retain'" in reported.output
    assert warren.count("commanded") == 300
    done = command(warren, *archiving, "--consume")
    assert [line.split(",")[0].split() for line in done.splitlines()] == [
        ["batch", str(number), "committed", "100", "rows"] for number in range(3)
    ]
    done = command(warren, "compact", lake, "--json")
    assert json.loads(done) == {"files_before": 3, "files_after": 1, "version": 4}
    assert json.loads(command(warren, "clean", lake, "--json")) == []
    chosen = ("replay", "--from", lake, "--name", "again", "--where", "cast(body as string) < '2'", "--json")
    reported = json.loads(command(warren, *chosen, "--dry-run", "--samples", "1"))
    assert (reported["rows"], len(reported["samples"]), reported["sent"]) == (112, 1, 0)
    done = command(warren, *chosen)
    assert json.loads(done.splitlines()[-1])["sent"] == 112
    assert warren.count("commanded") == 112
    reported = command(warren, *chosen[:-3], "--dry-run", "--samples", "1")
    assert "commanded" in reported
    wrong = CliRunner().invoke(main, ["spark", "archive", "--to", lake])
    assert "--queue, --queue-pattern, --super-stream and --firehose" in wrong.output


def command(place: BrokerUnderTest, *arguments: str) -> str:
    """The output of `warren spark`, which uses the present session."""
    reported = {"WARREN_AMQP_URI": place.options["uri"], "WARREN_URI": place.options["managementUri"]}
    done = CliRunner().invoke(main, ["spark", *arguments], env=reported)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_an_archive_without_new_messages_says_so(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("quiet", STREAM)
    warren.publish("quiet", [b"1", b"2"])
    where = ["--uri", warren.options["uri"], "--management-uri", warren.options["managementUri"]]
    chosen = ["--queue", "quiet", "--to", str(tmp_path / "lake"), "--available-now"]
    first, second = (CliRunner().invoke(main, ["spark", "archive", *chosen, *where]) for _ in range(2))
    assert "committed" in first.output
    assert "no new messages" not in first.output
    assert second.output.endswith("warren: no new messages: the lake has all of them\n")
