"""Writes a batch of messages to a staging folder with Spark's Parquet writer."""

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_warren.pipelines.lakes import PARTITIONS, LakeBatch, UncommittedBatch, lake_files, staging_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Open files of a task; with more partitions, Spark sorts the rows first.
_WRITERS = 20


def write_folder(rows: "DataFrame", root: Path, batch: LakeBatch) -> UncommittedBatch:
    """Write the rows to a new staging folder below `root`, with settings for the session of the query."""
    folder = staging_folder(root, batch)
    settings = rows.sparkSession.conf
    settings.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    settings.set("spark.sql.maxConcurrentOutputFileWriters", str(_WRITERS))
    writer = rows.write.mode("error").partitionBy(*PARTITIONS).option("compression", "zstd")
    writer.parquet(str(folder))
    return UncommittedBatch(files=tuple(lake_files(folder)), folder=folder)
