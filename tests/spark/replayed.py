"""A replay of a lake to `replayed`, during which a process is killed at given windows.

    replayed.py OPTIONS LAKE MARKS WINDOWS

WINDOWS names the windows and the process to kill in each (killing.py):

    staged:N   a task has staged its rows of batch N    sent:N  it is published, and not recorded yet
    decided:N  before the driver commits it
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType
from tests.spark.killing import killer, victim_session

import pyspark_warren
from pyspark_warren.options import write_options
from pyspark_warren.pipelines.replay import ReplayResult, replay
from pyspark_warren.sink import BatchWriter

BATCH_ROWS = 200


def killed_source(reached: Callable[[str], None]) -> type[pyspark_warren.DefaultSource]:
    """The connector with windows. It is defined inside a function so that Spark's workers receive
    all of it.
    """

    class WindowedWriter(BatchWriter):
        """A writer that reaches the windows of staging and committing."""

        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            reported = super().write(iterator)
            reached(f"staged:{self._options.transaction_version}")
            return reported

        def commit(self, messages: Any) -> None:
            reached(f"decided:{self._options.transaction_version}")
            super().commit(messages)
            reached(f"sent:{self._options.transaction_version}")

    class WindowedSource(pyspark_warren.DefaultSource):
        """Replaces the connector under its name."""

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
            return WindowedWriter(write_options(self.options.copy()))

    return WindowedSource


def send(spark: SparkSession, lake: str | Path, options: Mapping[str, str]) -> ReplayResult:
    """Replay the whole lake once."""
    return replay(
        spark, lake, name="again", exchange="", routing_key="replayed", batch_rows=BATCH_ROWS,
        uri=options["uri"], management_uri=options["managementUri"],
    )  # fmt: skip


def main() -> None:
    """Replay what was not replayed yet."""
    options, windows, marks = json.loads(sys.argv[1]), json.loads(sys.argv[4]), Path(sys.argv[3])
    spark = victim_session("replayed", windows, marks)
    spark.dataSource.register(killed_source(killer(windows, marks)))
    send(spark, sys.argv[2], options)
    spark.stop()


if __name__ == "__main__":
    main()
