"""How the executors write a batch of messages with Spark's own writer, into a folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_warren.pipelines.lakes import PARTITIONS, LakeBatch, UncommittedBatch, lake_files, staging_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Files that a task has open at once; with more queues than that it sorts its rows first.
_WRITERS = 20


def write_folder(rows: "DataFrame", root: Path, batch: LakeBatch) -> UncommittedBatch:
    """Write the rows into a new folder below `root`; the session is the query's own, not the user's."""
    folder = staging_folder(root, batch)
    settings = rows.sparkSession.conf
    settings.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    settings.set("spark.sql.maxConcurrentOutputFileWriters", str(_WRITERS))
    writer = rows.write.mode("error").partitionBy(*PARTITIONS).option("compression", "zstd")
    writer.parquet(str(folder))
    return UncommittedBatch(files=tuple(lake_files(folder)), folder=folder)
