"""A query from `events` to `sent` in batches, during which a process is killed at given windows.

    killed.py READ WRITE CHECKPOINT MARKS WINDOWS

READ and WRITE are options. With an `exchange` in WRITE, rows are shuffled before they are written. WINDOWS
names the windows and the process to kill in each (killing.py):

    staging:N  a task is staging its rows                   decided:N    before the driver commits
    staged:N   it has staged or published them              committed:N  after that, before Spark records it
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType
from tests.spark.killing import killer, victim_session

import pyspark_warren
from pyspark_warren.options import WriteOptions, write_options
from pyspark_warren.sink import BATCH_ID, ArrowStreamWriter
from warren.spark import register

BATCH_ROWS = 500
SHUFFLED = 3


def killed_source(reached: Callable[[str], None]) -> type[pyspark_warren.DefaultSource]:
    """The connector with windows. It is defined inside a function so that Spark's workers receive
    all of it.
    """

    class WindowedWriter(ArrowStreamWriter):
        """A writer that reaches the windows of staging and committing."""

        def __init__(self, options: WriteOptions) -> None:
            super().__init__(options)

        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            batch = TaskContext.get().getLocalProperty(BATCH_ID)  # type: ignore[union-attr]

            def leaving() -> Iterator[Any]:
                for rows in iterator:
                    yield rows
                    reached(f"staging:{batch}")

            reported = super().write(leaving())
            reached(f"staged:{batch}")
            return reported

        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
            reached(f"decided:{batchId}")
            super().commit(messages, batchId)
            reached(f"committed:{batchId}")

    class WindowedSource(pyspark_warren.DefaultSource):
        """Replaces the connector under another name."""

        @classmethod
        def name(cls) -> str:
            return "killed"

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
            return WindowedWriter(write_options(self.options.copy()))

    return WindowedSource


def main() -> None:
    """Run the query until everything that exists was read."""
    read, write, windows = json.loads(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[5])
    checkpoint, marks = sys.argv[3], Path(sys.argv[4])
    spark = victim_session("killed", windows, marks)
    register(spark)
    spark.dataSource.register(killed_source(killer(windows, marks)))
    reader = spark.readStream.format("warren").options(**read).option("maxOffsetsPerTrigger", BATCH_ROWS)
    rows = reader.load("events").select("body")
    if "exchange" in write:
        rows = rows.repartition(SHUFFLED)
    writer = rows.writeStream.format("killed").options(**write).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
