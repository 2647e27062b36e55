"""Stages rows and commits them, as executors and the driver of Spark do."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
from tests.integration.api import Answer, HttpClient, quoted

ARROW_STREAM = "application/vnd.apache.arrow.stream"


def stream(
    columns: Mapping[str, Any], schema: pa.Schema | None = None, *, rows_per_batch: int = 1_000
) -> bytes:
    """`columns` as an Arrow IPC stream."""
    table = pa.table(columns, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows_per_batch)
    return sink.getvalue().to_pybytes()


def bodies(texts: Sequence[bytes], key: str) -> bytes:
    """A stream of rows with these bodies and one routing key."""
    return stream({"body": pa.array(texts, pa.binary()), "routing_key": [key] * len(texts)})


class StagedQuery:
    """One query that writes to one exchange."""

    def __init__(
        self, client: HttpClient, query: str, exchange: str = "amq.default", vhost: str = "/"
    ) -> None:
        self._client = client
        self._query = query
        self._exchange = exchange
        self._vhost = quoted(vhost)

    def stage(self, batch: int, partition: int, data: bytes, attempt: int = 0, **more: str) -> Answer:
        """Stage rows."""
        given = {"query": self._query, "batch": batch, "partition": partition, "attempt": attempt, **more}
        path = f"/warren/staged/{self._vhost}/{quoted(self._exchange)}?{urlencode(given)}"
        return self._client.ask(f"POST {path}", data, {"content-type": ARROW_STREAM})

    def commit(self, batch: int, *partitions: int, attempt: int = 0) -> Answer:
        """Commit the staged `partitions`."""
        named = [{"partition": partition, "attempt": attempt} for partition in partitions]
        body = {"query": self._query, "batch": batch, "partitions": named}
        return self._client.ask(f"POST /warren/staged/{self._vhost}/commit", body)

    def discard(self, batch: int, **more: str) -> Answer:
        """Discard the staged rows."""
        query = urlencode({"query": self._query, "batch": batch, **more})
        return self._client.ask(f"DELETE /warren/staged/{self._vhost}?{query}")
