"""An archive of `events`, during which a process is killed at given windows.

    archived.py OPTIONS LAKE FORMAT MARKS WINDOWS

WINDOWS names the windows and the process to kill in each (killing.py):

    planned:N    batch N is planned          settling:N  before its lease is acknowledged, after its commit
    reading:N    a task of it reads          settled:N   after that, before the next lease is recorded
    written:N    its files are written
    committed:N  the lake contains it
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql.types import StructType
from tests.spark.killing import killer, victim_session

import pyspark_warren
from pyspark_warren.options import read_options
from pyspark_warren.pipelines.archive import ArchiveProgress, archive
from pyspark_warren.schema import COLUMNS
from pyspark_warren.sink import BATCH_ID
from pyspark_warren.source import WarrenStreamReader

BATCH_ROWS = 200


def killed_source(reached: Callable[[str], None], last: Path) -> type[pyspark_warren.DefaultSource]:
    """The connector with windows. It is defined inside a function so that Spark's workers receive
    all of it.
    """

    class WindowedReader(WarrenStreamReader):
        """A reader that reaches the windows of planning and reading."""

        def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
            batch = last.read_text() if (start or {}).get("lease") else ""
            reached(f"settling:{batch}")
            latest = super().latestOffset(start, limit)
            if latest != start:
                reached(f"settled:{batch}")
            return latest

        def read(self, partition: Any) -> Iterator[Any]:
            batches = super().read(partition)
            yield from batches
            context = TaskContext.get()
            assert context is not None
            reached(f"reading:{context.getLocalProperty(BATCH_ID)}")

    class WindowedSource(pyspark_warren.DefaultSource):
        """Replaces the connector under its name."""

        def streamReader(self, schema: StructType) -> WindowedReader:  # noqa: N802
            return WindowedReader(read_options(self.options.copy()), tuple(COLUMNS))

    return WindowedSource


def main() -> None:
    """Archive until everything that exists is in the lake."""
    options, windows = json.loads(sys.argv[1]), json.loads(sys.argv[5])
    lake, kind, marks = sys.argv[2], sys.argv[3], Path(sys.argv[4])
    spark = victim_session("archived", windows, marks)
    reached = killer(windows, marks)
    # The last batch that the lake contains.
    last = marks / "last"
    spark.dataSource.register(killed_source(reached, last))

    # Spark has no checkpoint in an object store.
    checkpoint = str(marks / "checkpoint") if "://" in lake else None

    def listen(progress: ArchiveProgress) -> None:
        print(progress.stage, progress.batch, progress.rows, flush=True)
        if progress.stage in ("committed", "repeated"):
            last.write_text(str(progress.batch))
        reached(f"{progress.stage}:{progress.batch}")

    archive(
        spark, lake, queue="events", format=kind, checkpoint=checkpoint, uri=options["uri"],
        management_uri=options["managementUri"], batch_rows=BATCH_ROWS, once=True,
        options={"retries": "30", "minPartitions": "2"}, progress=listen,
    ).awaitTermination()  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()
