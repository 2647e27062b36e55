"""A Spark data source that has its rows in memory: its cost is that of any data source in Python."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_warren.schema import COLUMNS, arrow_schema, ddl

TASKS = 2
BATCH_ROWS = 6_000
VALUES = {
    "queue": "equal", "offset": 1, "exchange": "", "routing_key": "equal", "redelivered": False,
    "content_type": "application/json", "delivery_mode": 2, "headers": [("tenant", "a")],
    "headers_json": '{"tenant":"a"}', "body": bytes(200),
}  # fmt: skip


class ReadyRows(DataSource):
    """`rows` equal messages."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ready"

    def schema(self) -> str:
        """Return the schema with all columns."""
        return ddl(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`."""
        return _Reader(int(self.options["rows"]))


class _Reader(DataSourceReader):
    def __init__(self, rows: int) -> None:
        self._rows = rows // TASKS

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(COLUMNS)
        columns = [
            pa.nulls(BATCH_ROWS, field.type)
            if VALUES.get(field.name) is None
            else pa.repeat(pa.scalar(VALUES[field.name], field.type), BATCH_ROWS)
            for field in schema
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        left = self._rows
        while left:
            yield batch.slice(0, left)
            left -= min(left, BATCH_ROWS)
