"""A lake contains a batch once and completely, whichever and however many drivers write it; without
Spark.
"""

import threading
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as parquet
import pytest
from deltalake import DeltaTable, write_deltalake

from pyspark_warren.pipelines.lake_factory import new_lake
from pyspark_warren.pipelines.lake_scan import LakeSelection, prune_files
from pyspark_warren.pipelines.lakes import (
    Lake,
    LakeBatch,
    UncommittedBatch,
    lake_files,
    lake_folder,
    staging_folder,
)
from pyspark_warren.pipelines.maintenance import compact
from pyspark_warren.schema import COLUMNS, arrow_schema

ROWS = 10
ODD = "a b/c%=ü#?"
# As Spark escapes it.
ODD_FOLDER = "queue=a b%2Fc%25%3Dü%23%3F"


@pytest.fixture(params=["delta", "parquet"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    found = new_lake(tmp_path / "lake", request.param)
    found.prepare()
    return found


def batch(number: int, query: str = "q") -> LakeBatch:
    return LakeBatch(query=query, number=number, name="test")


def written(lake: Lake, one: LakeBatch, folder: str = "queue=orders") -> UncommittedBatch:
    """The files of an attempt at a batch: `ROWS` rows after those of the previous batch."""
    assert lake.root is not None
    place = staging_folder(lake.root, one)
    (place / "day=2026-11-22" / folder).mkdir(parents=True)
    start = one.number * ROWS
    columns = {name: [None] * ROWS for name in COLUMNS if name != "queue"}
    schema = arrow_schema(columns)
    numbers = list(range(start, start + ROWS))
    times = [number * 1_000 for number in numbers]
    values: dict[str, Any] = columns | {"offset": numbers, "broker_timestamp": times}
    table = pa.Table.from_pydict(values, schema=schema)
    parquet.write_table(table, place / "day=2026-11-22" / folder / f"part-{place.name}.parquet")
    (place / "_SUCCESS").touch()
    return UncommittedBatch(files=tuple(lake_files(place)), folder=place)


def offsets(lake: Lake) -> list[int]:
    """The offsets that a reader finds."""
    if lake.format == "delta":
        table = DeltaTable(str(lake.root)).to_pyarrow_table()
    else:
        table = pyarrow.dataset.dataset(lake.root, format="parquet", partitioning="hive").to_table()
    found: list[int] = sorted(table["offset"].to_pylist())
    return found


def test_a_repeated_batch_is_stored_once(lake: Lake) -> None:
    for number in (0, 1):
        assert not lake.has(batch(number))
        lake.commit(batch(number), written(lake, batch(number)))
        assert lake.has(batch(number))
    lake.commit(batch(1), written(lake, batch(1)))
    assert offsets(lake) == list(range(20))
    lake.commit(batch(0, "another"), written(lake, batch(0, "another")))
    assert len(offsets(lake)) == 30
    assert not list((lake.root / "_warren" / "staged").iterdir())


def test_of_many_drivers_with_one_batch_one_commits(lake: Lake) -> None:
    ready = threading.Barrier(6)
    others = threading.Barrier(6)
    failed: list[BaseException] = []

    def commit(place: UncommittedBatch, barrier: threading.Barrier, one: LakeBatch) -> None:
        barrier.wait()
        try:
            lake.commit(one, place)
        except BaseException as error:
            failed.append(error)

    same = [(written(lake, batch(0)), ready, batch(0)) for _ in range(6)]
    apart = [(written(lake, batch(0, str(n))), others, batch(0, str(n))) for n in range(6)]
    threads = [threading.Thread(target=commit, args=one) for one in (*same, *apart)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(offsets(lake)) == 7 * ROWS


def test_the_last_offset_of_each_queue_is_known_whatever_its_name(lake: Lake) -> None:
    lake.commit(batch(0), written(lake, batch(0)))
    lake.commit(batch(1), written(lake, batch(1), ODD_FOLDER))
    assert lake.ends(("orders", ODD, "none")) == {"orders": 10, ODD: 20}
    if lake.format == "delta":
        partitions = DeltaTable(str(lake.root)).partitions()
        assert {"day": "2026-11-22", "queue": ODD} in partitions
        assert set(lake.snapshot().partitions.values()) == {
            (date(2026, 11, 22), "orders"), (date(2026, 11, 22), ODD),
        }  # fmt: skip


def test_an_earlier_snapshot_can_be_read_later(lake: Lake) -> None:
    lake.commit(batch(0), written(lake, batch(0)))
    first = lake.snapshot()
    lake.commit(batch(1), written(lake, batch(1)))
    assert lake.snapshot(first.version, first.batches) == first
    assert len(lake.snapshot().files) == 2


def test_files_without_selected_rows_are_not_read(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake", "delta")
    lake.prepare()
    for number, folder in enumerate(("queue=orders", "queue=orders", ODD_FOLDER)):
        lake.commit(batch(number), written(lake, batch(number), folder))
    snapshot = lake.snapshot()
    start = [0, 10, 20]

    def found(**given: Any) -> list[int]:
        kept = prune_files(snapshot, LakeSelection(**given)).files
        return sorted(int(snapshot.times[file][0].timestamp() * 1000) for file in kept)

    assert found() == start
    assert found(queues=("orders",)) == start[:2]
    assert found(queues=(ODD,)) == start[2:]
    assert found(since=10) == start[1:]
    assert found(until=10) == start[:1]
    assert found(since=10, until=20) == start[1:2]
    compact(lake.root)
    assert len(prune_files(lake.snapshot(), LakeSelection(since=20)).files) == 1


def test_an_empty_batch_is_not_stored(lake: Lake) -> None:
    assert lake.root is not None
    place = staging_folder(lake.root, batch(0))
    place.mkdir(parents=True)
    (place / "_SUCCESS").touch()
    lake.commit(batch(0), UncommittedBatch(files=(), folder=place))
    assert not list(lake.root.glob("batch=*"))
    assert not place.exists()


def test_a_foreign_table_is_refused(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "other"), pa.table({"offset": ["text"]}))
    with pytest.raises(ValueError, match="is not an archive of messages"):
        new_lake(tmp_path / "other", "delta").prepare()
    with pytest.raises(ValueError, match="already a lake of format 'delta', not 'parquet'"):
        new_lake(tmp_path / "other", "parquet").prepare()


@pytest.mark.parametrize("place", ["s3://bucket/lake", "hdfs://name/lake", ""])
def test_a_path_that_is_not_a_folder_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match=r"is not a folder|is empty"):
        lake_folder(place)


def test_a_file_uri_is_a_folder() -> None:
    assert lake_folder("file:///data/my%20lake") == Path("/data/my lake")


def test_drivers_that_start_together_create_one_table(tmp_path: Path) -> None:
    ready = threading.Barrier(8)
    failed: list[BaseException] = []

    def prepare() -> None:
        found = new_lake(tmp_path / "lake", "delta")
        ready.wait()
        try:
            found.prepare()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=prepare) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert DeltaTable(str(tmp_path / "lake")).version() == 0
