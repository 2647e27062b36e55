"""A query from `events` to `out`, batch by batch, that ends with SIGKILL where it is told to.

    killed.py OPTIONS CHECKPOINT MARK WINDOW

WINDOW is where batch 1 ends with the driver and its JVM, once: MARK is the file that says that it did.
`staged`: a task has left its rows; `decided`: before the driver commits; `committed`: after that, before
Spark knows; `never`: nowhere.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType
from tests.spark.conftest import session

import pyspark_warren
from pyspark_warren.options import WriteOptions, write_options
from pyspark_warren.sink import ArrowStreamWriter
from warren.spark import register

BATCH = 1


def killer(processes: list[int], mark: Path) -> Callable[[], None]:
    """What ends `processes`, if nobody has done so yet."""

    def kill() -> None:
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        for process in processes:
            os.kill(process, signal.SIGKILL)
        os._exit(1)

    return kill


def killed_source(window: str, kill: Callable[[], None]) -> type[pyspark_warren.DefaultSource]:
    """The connector, with an end in `window`. Made here, so that Spark's workers get all of it."""

    class Writer(ArrowStreamWriter):
        """Ends in a window of batch 1."""

        def __init__(self, options: WriteOptions) -> None:
            super().__init__(options)

        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            told = super().write(iterator)
            if window == "staged" and told.task.batch == BATCH:  # type: ignore[attr-defined]
                kill()
            return told

        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
            if window == "decided" and batchId == BATCH:
                kill()
            super().commit(messages, batchId)
            if window == "committed" and batchId == BATCH:
                kill()

    class Killed(pyspark_warren.DefaultSource):
        """The same under another name."""

        @classmethod
        def name(cls) -> str:
            return "killed"

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
            return Writer(write_options(self.options.copy()))

    return Killed


def main() -> None:
    """Run the query until everything that is there was read."""
    options, checkpoint, mark, window = json.loads(sys.argv[1]), *sys.argv[2:]
    spark = session("killed")
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    # The JVM first: it must not note what has been committed.
    processes = [jvm.java.lang.ProcessHandle.current().pid(), os.getpid()]
    register(spark)
    spark.dataSource.register(killed_source(window, killer(processes, Path(mark))))
    rows = (
        spark.readStream.format("warren")
        .options(**options)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 1_000)
        .load("events")
    )
    query = (
        rows.selectExpr("body", "'out' as routing_key")
        .writeStream.format("killed")
        .options(**options)
        .option("exchange", "")
        .option("txn", "staged")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
