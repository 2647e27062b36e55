"""The data source of `format("warren")`, as Spark calls it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from pyspark_warren import schema as columns
from pyspark_warren.classic_source import ClassicSource
from pyspark_warren.filters import NO_FILTERS, pushed_filters
from pyspark_warren.lease_source import LeaseSource
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import ReadOptions, read_options, write_options
from pyspark_warren.partitions import BrowsePartition, ReadPartition
from pyspark_warren.sink import BatchWriter, checked_write_options, stream_writer
from pyspark_warren.stream_source import StreamSource
from pyspark_warren.versions import check_batches, check_filters, check_mode

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before Spark 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for the class of Spark 4.2."""

    ReadLimit = ReadAllAvailable = ReadMaxBytes = ReadMaxRows = SupportsTriggerAvailableNow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

EMPTY_OFFSET: dict[str, Any] = {"v": 1, "s": {}}


class MicroBatchSource(Protocol):
    """Plans and commits the micro-batches of a streaming query; runs on the driver."""

    def initial_offset(self) -> dict[str, Any]:
        """Return the offset at which a query without a checkpoint starts."""

    def latest_offset(
        self, start: Mapping[str, Any], offsets_max: int | None, bytes_max: int | None
    ) -> dict[str, Any]:
        """Return the end offset of the next micro-batch. All messages before `start` are committed."""

    def prepare_available_now(self) -> None:
        """Let no later micro-batch read beyond the messages that are available now (AvailableNow)."""

    def committed(self) -> dict[str, Any] | None:
        """Return the end offset of the source for the progress of the query; None if it is unknown."""

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[ReadPartition]:
        """Return the input partitions of the micro-batch from `start` to `end`."""

    def commit(self, end: Mapping[str, Any]) -> None:
        """Acknowledge or settle the messages before `end`, which are committed."""

    def stop(self) -> None:
        """Release the connections of the query, which has ended."""


class WarrenDataSource(DataSource):
    """The data source `warren`: reads queues and streams, and publishes to exchanges and queues."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return "warren"

    def schema(self) -> str:
        """Return the schema: the columns of a message, or those of the option `columns`."""
        return columns.ddl(self._read_options().columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of `spark.read`. Raises ValueError for invalid options."""
        options = self._read_options()
        if options.is_filter_pushed:
            check_filters()
        # Spark refuses a reader with pushFilters unless spark.sql.python.filterPushdown.enabled is true.
        kind = FilteredReader if options.is_filter_pushed else WarrenReader
        return kind(options, _columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of `spark.readStream`; invalid options are raised when Spark first calls it."""
        try:
            options = self._read_options()
            check_batches(options)
            return WarrenStreamReader(options, _columns(schema))
        except ValueError as error:
            return InvalidStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of `df.write`. Raises ValueError for invalid options or columns."""
        if overwrite:
            raise ValueError("published messages cannot be overwritten: use mode('append')")
        columns.check_written(_fields(schema))
        return BatchWriter(checked_write_options(write_options(self.options.copy())))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of `df.writeStream`. Raises ValueError for invalid options or columns."""
        columns.check_written(_fields(schema))
        return stream_writer(checked_write_options(write_options(self.options.copy())), schema)

    def _read_options(self) -> ReadOptions:
        return read_options(self.options.copy())


class WarrenReader(DataSourceReader):
    """A batch read of the messages that are available now."""

    def __init__(self, options: ReadOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._columns = names
        self._wanted = NO_FILTERS

    def partitions(self) -> list[InputPartition]:
        """Return the input partitions of the read."""
        strategy = detect_strategy(self._options, is_streaming=False)
        if strategy.mode == "browse":
            return [BrowsePartition(strategy.queues[0], self._wanted.address_filter)]
        return list(StreamSource(self._options, strategy).batch(self._wanted))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Yield the record batches of one partition."""
        return _read(partition, self._options, self._columns)


class FilteredReader(WarrenReader):
    """A batch read with `pushdown`: the broker applies the filters that it supports."""

    def pushFilters(self, filters: "list[Filter]") -> "Iterable[Filter]":  # noqa: N802
        """Push `filters` down. All of them are returned, so Spark applies them again to the rows."""
        self._wanted = pushed_filters(filters)
        return filters


class WarrenStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The driver connects to the broker when Spark first calls it."""

    def __init__(self, options: ReadOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._columns = names
        self._source: MicroBatchSource | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset at which a query without a checkpoint starts."""
        return self._opened().initial_offset()

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return the end offset of the next micro-batch; before Spark 4.2, no arguments are passed."""
        is_limited = limit is not None and not isinstance(limit, ReadAllAvailable)
        offsets_max = self._options.offsets_max if is_limited else None
        bytes_max = self._options.bytes_max if is_limited else None
        return self._opened().latest_offset(start or EMPTY_OFFSET, offsets_max, bytes_max)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return one read limit; `latestOffset` applies both, since Spark has no limit by rows and bytes."""
        if self._options.offsets_max:
            return ReadMaxRows(self._options.offsets_max)
        if self._options.bytes_max:
            return ReadMaxBytes(self._options.bytes_max)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let the query end with the messages that are available now."""
        self._opened().prepare_available_now()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return the end offset of the source for the progress of the query; None if it is unknown."""
        return self._opened().committed()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        """Return the input partitions of the micro-batch from `start` to `end`."""
        return list(self._opened().partitions(start, end))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Yield the record batches of one partition."""
        return _read(partition, self._options, self._columns)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Commit the messages before `end`; usually the last `latestOffset` has already done so."""
        self._opened().commit(end)

    def stop(self) -> None:
        """Release the connections of the query, which has ended."""
        if self._source is not None:
            self._source.stop()

    def _opened(self) -> MicroBatchSource:
        if self._source is None:
            self._source = _open(self._options, self._columns)
        return self._source


class InvalidStreamReader(DataSourceStreamReader):
    """Raises the reason for invalid options when Spark calls it; Spark hides errors raised before that."""

    def __init__(self, reason: ValueError) -> None:
        self._reason = reason

    def initialOffset(self) -> NoReturn:  # noqa: N802
        """Raise the reason; Spark calls this for a query without a checkpoint."""
        raise self._reason

    def latestOffset(self) -> NoReturn:  # type: ignore[override]  # noqa: N802
        """Raise the reason; Spark calls this for a query that resumes from a checkpoint."""
        raise self._reason

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> NoReturn:
        """Raise the reason; Spark calls this for a query that repeats a micro-batch."""
        raise self._reason

    def read(self, partition: InputPartition) -> NoReturn:
        """Raise the reason; Spark does not call this."""
        raise self._reason


def _open(options: ReadOptions, names: tuple[str, ...]) -> MicroBatchSource:
    strategy = detect_strategy(options, is_streaming=True)
    if strategy.mode == "stream":
        return StreamSource(options, strategy)
    check_mode(strategy.mode)
    if strategy.mode == "lease":
        return LeaseSource(options, strategy)
    return ClassicSource(options, strategy, names)


def _read(
    partition: InputPartition, options: ReadOptions, names: tuple[str, ...]
) -> "Iterator[pa.RecordBatch]":
    # If there are no partitions, Spark passes an empty partition of its own.
    return partition.read(options, names) if isinstance(partition, ReadPartition) else iter(())


def _columns(schema: StructType) -> tuple[str, ...]:
    return columns.check_read(_fields(schema))


def _fields(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]
