"""Lakes in an object store have the guarantees of those in a folder, and errors name their cause."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.patience import patient
from tests.spark.archived import BATCH_ROWS as KILLED_ROWS
from tests.spark.brokers import STREAM, BrokerUnderTest
from tests.spark.killing import restarted_broker, run
from tests.spark.stores import ObjectStoreServer, started_store

from pyspark_warren.pipelines import sql
from pyspark_warren.pipelines.archive import archive
from pyspark_warren.pipelines.decode import DecodeProgress, schema_of, start
from pyspark_warren.pipelines.lakes import BATCH
from pyspark_warren.pipelines.maintenance import clean, compact
from pyspark_warren.pipelines.object_store import ObjectStoreError, store_of
from pyspark_warren.pipelines.object_store_parquet import ObjectStoreParquet
from pyspark_warren.pipelines.replay import ReplayResult, replay

ROWS = 600
BATCHES = 7
BATCH_ROWS = 200
QUEUE_S_MAX = patient(200)
# Spark is started four times: seconds for each, and a minute and more on a busy machine.
WINDOWS_S_MAX = 1_200
# Failing requests are repeated, and each may take its time.
FAILED_S_MAX = patient(90)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStoreServer]:
    with started_store(tmp_path_factory.mktemp("store") / "log") as started:
        yield started


def put(
    spark: SparkSession,
    warren: BrokerUnderTest,
    store: ObjectStoreServer,
    *,
    lake: str,
    folder: Path,
    kind: str,
    queue: str,
) -> None:
    """Archive a stream, in batches."""
    query = archive(
        spark, lake, queue=queue, format=kind, checkpoint=str(folder / "checkpoint"), batch_rows=BATCH_ROWS,
        once=True, storage_options=store.options, **warren_options(warren),
    )  # fmt: skip
    assert query.awaitTermination(QUEUE_S_MAX)


@pytest.mark.long
@pytest.mark.timeout(WINDOWS_S_MAX)
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_each_message_is_in_the_lake_once_whichever_process_is_killed_between_files_and_commit(
    spark: SparkSession, store: ObjectStoreServer, tmp_path: Path, kind: str
) -> None:
    marks, log, lake = tmp_path / "marks", tmp_path / "query.log", store.new_lake()
    marks.mkdir()
    bodies = [b"%d" % number for number in range(BATCHES * KILLED_ROWS)]
    windows = {"reading:1": "driver", "written:2": "driver", "committed:3": "driver"}
    with restarted_broker(tmp_path, marks) as place:
        place.declare("events", STREAM)
        place.publish("events", bodies)
        for window, victim in windows.items():
            reported = ("archived.py", tmp_path, place.options, lake, kind, str(marks), {window: victim})
            assert run(*reported, environment=store.options) == -signal.SIGKILL, log.read_text()
            assert (marks / window).exists(), window
        others = {"reading:4": "worker", "written:5": "broker"}
        reported = ("archived.py", tmp_path, place.options, lake, kind, str(marks), others)
        assert run(*reported, environment=store.options) == 0, log.read_text()
        assert all((marks / window).exists() for window in others)
    ((rows, distinct),) = selected(spark, store, f"select count(*), count(distinct body) from lake.`{lake}`")
    assert (rows, distinct) == (len(bodies), len(bodies)), "rows in the lake, and those that differ"
    assert store.options["AWS_SECRET_ACCESS_KEY"] not in log.read_text()
    if kind == "delta":
        store.age(8)
        removed = clean(lake, storage_options=store.options)
        assert removed, "files that were written and not committed"
        assert not {one for one in removed if "_delta_log" in one}


def warren_options(warren: BrokerUnderTest) -> dict[str, str]:
    return {"uri": warren.options["uri"], "management_uri": warren.options["managementUri"]}


@pytest.fixture(scope="module", params=["delta", pytest.param("parquet", marks=pytest.mark.long)])
def lake(
    request: pytest.FixtureRequest, spark: SparkSession, warren: BrokerUnderTest, store: ObjectStoreServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, str]:  # fmt: skip
    """A lake with the messages of a stream, and its format."""
    found, queue = store.new_lake(), "stored a/b=ü"
    warren.declare(queue, dict(STREAM))
    warren.publish(queue, [b"%d" % number for number in range(ROWS)])
    folder = tmp_path_factory.mktemp("stored")
    for _ in range(2):
        put(spark, warren, store, lake=found, folder=folder, kind=request.param, queue=queue)
    return found, request.param


def selected(spark: SparkSession, store: ObjectStoreServer, query: str) -> list[tuple[object, ...]]:
    found = sql.parse(query, {})
    sql.prepare(spark, found, {}, store.options)
    return [tuple(row) for row in sql.run(spark, found).collect()]


def test_sql_reads_a_lake(spark: SparkSession, store: ObjectStoreServer, lake: tuple[str, str]) -> None:
    columns = "queue, count(*), count(distinct offset), min(body), max(day)"
    query = f"select {columns} from lake.`{lake[0]}` group by 1"
    ((queue, rows, offsets, body, day),) = selected(spark, store, query)
    assert (queue, rows, offsets, body) == ("stored a/b=ü", ROWS, ROWS, "0")
    assert str(day) >= "2026"


def sent(
    spark: SparkSession, warren: BrokerUnderTest, store: ObjectStoreServer, *, lake: str, folder: Path
) -> ReplayResult:
    return replay(
        spark, lake, name="again", exchange="", routing_key="stored again", where="offset >= 100",
        batch_rows=BATCH_ROWS, checkpoint=str(folder / "again"), storage_options=store.options,
        **warren_options(warren),
    )  # fmt: skip


def test_a_replay_publishes_the_selection_once(
    spark: SparkSession,
    warren: BrokerUnderTest,
    store: ObjectStoreServer,
    lake: tuple[str, str],
    tmp_path: Path,
) -> None:
    warren.declare("stored again")
    first = sent(spark, warren, store, lake=lake[0], folder=tmp_path)
    assert (first.rows, first.sent, first.sent_before) == (ROWS - 100, ROWS - 100, 0)
    again = sent(spark, warren, store, lake=lake[0], folder=tmp_path)
    assert (again.sent, again.sent_before) == (0, ROWS - 100)
    assert warren.count("stored again") == ROWS - 100


def test_an_archive_without_its_checkpoint_continues_after_the_last_batch(
    spark: SparkSession,
    warren: BrokerUnderTest,
    store: ObjectStoreServer,
    lake: tuple[str, str],
    tmp_path: Path,
) -> None:
    with pytest.raises(ValueError, match="already has rows of stored a/b=ü"):
        put(spark, warren, store, lake=lake[0], folder=tmp_path, kind=lake[1], queue="stored a/b=ü")
    query = archive(
        spark, lake[0], queue="stored a/b=ü", format=lake[1], checkpoint=str(tmp_path / "other"), once=True,
        starting="archived", storage_options=store.options, **warren_options(warren),
    )  # fmt: skip
    assert query.awaitTermination(QUEUE_S_MAX)
    assert selected(spark, store, f"select count(*) from lake.`{lake[0]}`") == [(ROWS,)]


def test_a_foreign_object_among_the_batches_is_named(store: ObjectStoreServer) -> None:
    lake = store_of(store.new_lake(), store.options)
    assert lake is not None
    place = f"{BATCH}=by-hand/part-0.parquet"
    with lake.filesystem().open_output_stream(place) as strange:
        parquet.write_table(pa.table({"text": ["mine"]}), strange)
    with pytest.raises(
        ValueError, match=rf"{place} is not a batch of a lake, since it has no columns 'queue' and 'offset'"
    ):
        ObjectStoreParquet(lake).ends(["q"])


def test_small_files_are_compacted_and_orphans_are_removed(
    spark: SparkSession, store: ObjectStoreServer, lake: tuple[str, str]
) -> None:
    place, kind = lake
    if kind == "parquet":
        with pytest.raises(ValueError, match="plain Parquet and cannot be compacted"):
            compact(place, storage_options=store.options)
        assert clean(place, storage_options=store.options) == []
        return
    table = DeltaTable(place, storage_options=store.options | {"AWS_ALLOW_HTTP": "true"})
    before = table.file_uris()
    done = compact(place, storage_options=store.options)
    assert (done.files_before, done.files_after) == (len(before), 1)
    assert clean(place, storage_options=store.options) == []
    orphan = "day=2026-11-22/queue=x/part-orphan.parquet"
    store_of(place, store.options).filesystem().open_output_stream(orphan).close()
    assert clean(place, storage_options=store.options) == []
    store.age(8)
    # Compacted files stay for a week from now, as the log records the time of the compaction.
    assert clean(place, storage_options=store.options, dry_run=True) == [orphan]
    assert clean(place, storage_options=store.options) == [orphan]
    assert clean(place, storage_options=store.options) == []
    assert selected(spark, store, f"select count(*), count(distinct offset) from lake.`{place}`") == [
        (ROWS, ROWS)
    ]


def test_decoded_rows_are_there_once_when_their_batch_is_repeated(
    spark: SparkSession, warren: BrokerUnderTest, store: ObjectStoreServer, tmp_path: Path
) -> None:
    for name, arguments in (("json", STREAM), ("misfits", None)):
        warren.declare(name, dict(arguments or {}))
    warren.publish("json", [b'{"id":1,"at":"2026-11-22T10:00:00Z"}', b'{"id":2,"tags":["a"]}', b"nope"])
    place, seen = store.new_lake(), list[DecodeProgress]()

    def crash(batch: DecodeProgress) -> None:
        seen.append(batch)
        if len(seen) == 1:
            raise RuntimeError("crashed")

    def run() -> None:
        start(
            spark, source=warren.options | {"queue": "json"}, to=place, progress=crash, once=True,
            schema=schema_of(spark, "id bigint not null, at timestamp, tags array<string>"),
            dead_letters=warren.options | {"queue": "misfits"}, checkpoint=str(tmp_path / "checkpoint"),
            storage_options=store.options,
        ).awaitTermination()  # fmt: skip

    with pytest.raises(StreamingQueryException, match="crashed"):
        run()
    run()
    assert seen == [DecodeProgress(batch=0, good=2, bad=1)] * 2
    found = selected(spark, store, f"select id, hour(at), tags from lake.`{place}` order by id")
    assert [(one[0], one[2]) for one in found] == [(1, None), (2, ["a"])]
    assert warren.count("misfits") == 1


@pytest.mark.parametrize("kind", ["delta", "parquet"])
@pytest.mark.parametrize(
    ("place", "changed", "said"),
    [
        ("s3://nosuch/orders", {}, "NoSuchBucket"),
        ("s3://lake/other", {"AWS_ACCESS_KEY_ID": "AKIANOBODYNOBODYNOBO"}, "InvalidAccessKeyId"),
        ("s3://lake/other", {"AWS_SECRET_ACCESS_KEY": "not the secret"}, "SignatureDoesNotMatch"),
        ("s3://lake/other", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "error sending request"),
    ],
    ids=["bucket", "key", "secret", "endpoint"],
)
def test_an_unreachable_store_is_reported_soon_and_without_secrets(
    spark: SparkSession, warren: BrokerUnderTest, store: ObjectStoreServer, tmp_path: Path,
    place: str, changed: dict[str, str], said: str, kind: str,
) -> None:  # fmt: skip
    warren.declare("unreached", dict(STREAM))
    options = store.options | changed
    begun = time.monotonic()
    with pytest.raises(ObjectStoreError, match=f"the object store of '{re.escape(place)}'.*{said}") as caught:
        archive(
            spark, place, queue="unreached", format=kind, checkpoint=str(tmp_path), once=True,
            storage_options=options, **warren_options(warren),
        )  # fmt: skip
    assert time.monotonic() - begun < FAILED_S_MAX
    for secret in (options["AWS_SECRET_ACCESS_KEY"], options["AWS_ACCESS_KEY_ID"]):
        assert secret not in str(caught.value)


def test_a_lake_in_a_store_requires_a_checkpoint_in_a_folder(
    spark: SparkSession, warren: BrokerUnderTest, store: ObjectStoreServer
) -> None:
    warren.declare("unreached", dict(STREAM))
    with pytest.raises(ValueError, match=r"--checkpoint"):
        archive(
            spark, store.new_lake(), queue="unreached", storage_options=store.options,
            **warren_options(warren),
        )  # fmt: skip
