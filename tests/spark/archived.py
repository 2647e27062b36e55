"""An archive of `events` that ends, or loses somebody, where it is told to.

    archived.py OPTIONS LAKE FORMAT MARKS WINDOWS

WINDOWS is JSON: where, and who is killed there: `driver` (with its JVM), `worker` or `broker`. Each window is
open once: its mark in the folder MARKS says that it was.

    planned:N    batch N is planned          settling   before a lease is settled whose batch is committed
    reading:N    a task of it reads          settled    behind that, before the next lease is noted
    written:N    its files are written
    committed:N  the lake has it
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql.types import StructType
from tests.spark.conftest import session

import pyspark_warren
from pyspark_warren.options import read_options
from pyspark_warren.pipelines.archive import Progress, archive
from pyspark_warren.schema import COLUMNS
from pyspark_warren.sink import BATCH_ID
from pyspark_warren.source import WarrenStreamReader

BATCH_ROWS = 200
# More than one attempt for each task: a worker that is killed is no end of the query.
MASTER = "local[2,4]"


def killer(windows: Mapping[str, str], driver: list[int], marks: Path) -> Callable[[str], None]:
    """What is called in each window with its name, and kills who is to be killed there."""

    def reached(window: str) -> None:
        victim = windows.get(window)
        if victim is None:
            return
        try:
            os.close(os.open(marks / window, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if victim == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        elif victim == "broker":
            os.kill(int((marks / "broker").read_text()), signal.SIGKILL)
        else:
            # The JVM first: it must not note anything more.
            for process in driver:
                os.kill(process, signal.SIGKILL)
            os._exit(1)

    return reached


def killed_source(reached: Callable[[str], None], last_mark: Path) -> type[pyspark_warren.DefaultSource]:
    """The connector with windows. Made here, so that Spark's workers get all of it."""

    class Reader(WarrenStreamReader):
        """Says where it is."""

        def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
            is_open = bool((start or {}).get("lease")) and last_mark.exists()
            if is_open:
                reached("settling")
            latest = super().latestOffset(start, limit)
            if is_open and latest != start:
                reached("settled")
            return latest

        def read(self, partition: Any) -> Iterator[Any]:
            batches = super().read(partition)
            yield from batches
            context = TaskContext.get()
            assert context is not None
            reached(f"reading:{context.getLocalProperty(BATCH_ID)}")

    class Killed(pyspark_warren.DefaultSource):
        """In place of the connector, under its name."""

        def streamReader(self, schema: StructType) -> Reader:  # noqa: N802
            return Reader(read_options(self.options.copy()), tuple(COLUMNS))

    return Killed


def main() -> None:
    """Archive until everything that is there is in the lake."""
    options, windows = json.loads(sys.argv[1]), json.loads(sys.argv[5])
    lake, kind, marks = sys.argv[2], sys.argv[3], Path(sys.argv[4])
    spark = session("archived", MASTER)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    driver = [jvm.java.lang.ProcessHandle.current().pid(), os.getpid()]
    reached = killer(windows, driver, marks)
    spark.dataSource.register(killed_source(reached, marks / "committed:4"))

    def listen(progress: Progress) -> None:
        print(progress.stage, progress.batch, progress.rows, flush=True)
        reached(f"{progress.stage}:{progress.batch}")

    archive(
        spark, lake, queue="events", format=kind, uri=options["uri"], management_uri=options["managementUri"],
        batch_rows=BATCH_ROWS, once=True, options={"retries": "30", "minPartitions": "2"}, progress=listen,
    ).awaitTermination()  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()
