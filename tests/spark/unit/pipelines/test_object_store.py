"""Lakes in object stores, without Spark."""

import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from tests.spark.stores import ObjectStoreServer, started_store

from pyspark_warren.pipelines.lake_factory import existing_lake, new_lake
from pyspark_warren.pipelines.lakes import DataFile, LakeBatch, UncommittedBatch
from pyspark_warren.pipelines.object_io import lake_schema, partitioned_writer, single_file_writer
from pyspark_warren.pipelines.object_store import ObjectStore, ObjectStoreError, is_object_store, store_of
from pyspark_warren.pipelines.object_store_delta import ObjectStoreDelta

WRITERS = 6


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStoreServer]:
    with started_store(tmp_path_factory.mktemp("store") / "log") as started:
        yield started


def rows(queues: list[str]) -> pa.RecordBatch:
    """One row for each, on one day."""
    schema = lake_schema()
    columns: dict[str, list[object]] = {name: [None] * len(queues) for name in schema.names}
    days: list[object] = [20_779] * len(queues)
    return pa.RecordBatch.from_pydict(
        columns | {"queue": list(queues), "offset": list(range(len(queues))), "day": days}, schema=schema
    )


def files(reported: Iterator[pa.RecordBatch]) -> list[DataFile]:
    return [pickle.loads(one["file"]) for batch in reported for one in batch.to_pylist()]


def test_options_are_read_from_the_environment_unless_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the environment")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "another store's")
    found = store_of("s3://lake/orders/", {"aws_secret_access_key": "given", "Timeout": "5s"})
    assert found.uri == "s3://lake/orders"
    assert found.options["AWS_SECRET_ACCESS_KEY"] == "given"
    assert found.options["AWS_REGION"] == "eu-central-1"
    assert found.options["AWS_CONDITIONAL_PUT"] == "etag"
    assert found.options["timeout"] == "5s"
    assert "AWS_ALLOW_HTTP" not in found.options
    assert "GOOGLE_SERVICE_ACCOUNT" not in found.options
    assert store_of("s3://l/o", {"AWS_ENDPOINT_URL": "http://here"}).options["AWS_ALLOW_HTTP"] == "true"


def test_an_address_without_a_bucket_or_with_a_query_is_refused() -> None:
    assert [is_object_store(one) for one in ("s3://a/b", "gs://a/b", "abfss://c@a/b", "/s3", Path("s3"))] == [
        True, True, True, False, False,
    ]  # fmt: skip
    for place in ("s3:///orders", "s3://lake/orders?versionId=1"):
        with pytest.raises(ValueError, match="s3://BUCKET/PATH"):
            store_of(place)


def test_secrets_are_not_shown() -> None:
    secret = "abcdefgh+secret"
    found = ObjectStore("s3://lake/orders", {"AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "eu-central-1"})
    assert secret not in repr(found)
    with pytest.raises(ObjectStoreError) as caught, found.translated_errors():
        raise OSError(f"\x1b[31m↳\x1b[0m <Code>Denied</Code>\n  {secret} in eu-central-1")
    assert str(caught.value) == "the object store of 's3://lake/orders': Denied *** in eu-central-1"


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_place_with_other_contents_is_not_a_lake(store: ObjectStoreServer, kind: str) -> None:
    place = store.new_lake()
    with pytest.raises(ValueError, match="there is no lake in"):
        existing_lake(place, store.options)
    store_of(place, store.options).filesystem().open_output_stream("notes.txt").close()
    with pytest.raises(ValueError, match=r"contains 'notes\.txt'"):
        new_lake(place, kind, store.options).prepare()


def test_of_many_drivers_with_one_batch_one_commits(store: ObjectStoreServer) -> None:
    lake = new_lake(store.new_lake(), "delta", store.options)
    assert isinstance(lake, ObjectStoreDelta)
    lake.prepare()
    same = LakeBatch(query="q", number=0, name="test")
    batches = [same] * WRITERS + [LakeBatch(query=str(n), number=0, name="test") for n in range(WRITERS)]
    attempts = [files(partitioned_writer(lake.store)(iter([rows(["a", "a", "b"])]))) for _ in batches]
    assert [(one.queue, one.rows, one.day) for one in attempts[0]] == [
        ("a", 2, "2026-11-22"), ("b", 1, "2026-11-22"),
    ]  # fmt: skip
    failed: list[BaseException] = []

    def commit(batch: LakeBatch, attempt: list[DataFile]) -> None:
        try:
            lake.commit(batch, UncommittedBatch(files=tuple(attempt), folder=None))
        except DeltaError as error:
            failed.append(error)

    threads = [
        threading.Thread(target=commit, args=reported) for reported in zip(batches, attempts, strict=True)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert lake.has(same)
    assert len(lake.snapshot().files) == 2 * (WRITERS + 1)
    assert lake.ends(["a", "b", "c"]) == {"a": 2, "b": 3}


def test_a_batch_of_plain_parquet_is_one_object_with_the_last_offsets_of_queues(
    store: ObjectStoreServer,
) -> None:
    lake = new_lake(store.new_lake(), "parquet", store.options)
    lake.prepare()
    batch = LakeBatch(query="q", number=3, name="test")
    assert lake.store is not None
    assert not lake.has(batch)
    path = f"batch={batch.folder}/part-0.parquet"
    for _ in range(2):
        (written,) = files(
            single_file_writer(lake.store, path, lake_schema(), is_grouped=True)(
                iter([rows(["ü", "ü", "z"])])
            )
        )
        assert (written.path, written.rows) == (Path(path), 3)
    assert lake.has(batch)
    assert lake.snapshot().files == (path,)
    assert lake.ends(["ü", "z", "none"]) == {"ü": 2, "z": 3}
    with pytest.raises(ValueError, match="was removed from the lake"):
        lake.snapshot(None, ["batch=other"])
