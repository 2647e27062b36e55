"""`format("warren")`: what Spark calls."""

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
        """Not there yet."""

    ReadLimit = ReadAllAvailable = ReadMaxBytes = ReadMaxRows = SupportsTriggerAvailableNow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

EMPTY_OFFSET: dict[str, Any] = {"v": 1, "s": {}}


class MicroBatchSource(Protocol):
    """A query over one kind of queue; runs on the driver."""

    def initial_offset(self) -> dict[str, Any]:
        """Where a new query begins."""

    def latest_offset(
        self, start: Mapping[str, Any], offsets_max: int | None, octets_max: int | None
    ) -> dict[str, Any]:
        """How far the next batch goes; whoever asks has committed everything up to `start`."""

    def prepare_available_now(self) -> None:
        """From now on no batch goes further than what is there now."""

    def committed(self) -> dict[str, Any] | None:
        """How far there is something now, for those who look at the query; None if nobody knows."""

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[ReadPartition]:
        """The tasks of one batch."""

    def commit(self, end: Mapping[str, Any]) -> None:
        """Everything up to `end` is committed."""

    def stop(self) -> None:
        """The query has ended."""


class WarrenDataSource(DataSource):
    """Queues and streams as a source, exchanges and queues as a sink."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(...)`."""
        return "warren"

    def schema(self) -> str:
        """The columns of a message, or those that the option `columns` names."""
        return columns.ddl(self._read_options().columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        options = self._read_options()
        if options.is_filter_pushed:
            check_filters()
        # Spark refuses a reader that takes filters, unless its own configuration says that it may.
        kind = FilteredReader if options.is_filter_pushed else WarrenReader
        return kind(options, _columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For `spark.readStream`."""
        try:
            options = self._read_options()
            check_batches(options)
            return WarrenStreamReader(options, _columns(schema))
        except ValueError as error:
            return InvalidStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """For `df.write`."""
        if overwrite:
            raise ValueError("what was published cannot be overwritten: use mode('append')")
        columns.check_written(_fields(schema))
        return BatchWriter(checked_write_options(write_options(self.options.copy())))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """For `df.writeStream`."""
        columns.check_written(_fields(schema))
        return stream_writer(checked_write_options(write_options(self.options.copy())), schema)

    def _read_options(self) -> ReadOptions:
        return read_options(self.options.copy())


class WarrenReader(DataSourceReader):
    """Reads what is there now."""

    def __init__(self, options: ReadOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._columns = names
        self._wanted = NO_FILTERS

    def partitions(self) -> list[InputPartition]:
        """The tasks."""
        strategy = detect_strategy(self._options, is_streaming=False)
        if strategy.mode == "browse":
            return [BrowsePartition(strategy.queues[0], self._wanted.address_filter)]
        return list(StreamSource(self._options, strategy).batch(self._wanted))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """One task's messages."""
        return _read(partition, self._options, self._columns)


class FilteredReader(WarrenReader):
    """The same for the option `pushdown`: does not read what filters leave out."""

    def pushFilters(self, filters: "list[Filter]") -> "Iterable[Filter]":  # noqa: N802
        """Have them narrow what is read; Spark looks at all rows again, so none counts as done."""
        self._wanted = pushed_filters(filters)
        return filters


class WarrenStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads batch after batch; what talks to the broker is made on the driver, when it is first asked."""

    def __init__(self, options: ReadOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._columns = names
        self._source: MicroBatchSource | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new query begins."""
        return self._opened().initial_offset()

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """How far the next batch goes. Before Spark 4.2 it is not told from where."""
        is_limited = limit is not None and not isinstance(limit, ReadAllAvailable)
        offsets_max = self._options.offsets_max if is_limited else None
        octets_max = self._options.octets_max if is_limited else None
        return self._opened().latest_offset(start or EMPTY_OFFSET, offsets_max, octets_max)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """That there is a limit; which, `latestOffset` knows, since Spark has none of two kinds."""
        if self._options.offsets_max:
            return ReadMaxRows(self._options.offsets_max)
        if self._options.octets_max:
            return ReadMaxBytes(self._options.octets_max)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What comes from now on is for the next run."""
        self._opened().prepare_available_now()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """For the progress of the query."""
        return self._opened().committed()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        """The tasks of a batch."""
        return list(self._opened().partitions(start, end))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """One task's messages."""
        return _read(partition, self._options, self._columns)

    def commit(self, end: Mapping[str, Any]) -> None:
        """A batch is committed. Spark says so late: `latestOffset` has mostly known it before."""
        self._opened().commit(end)

    def stop(self) -> None:
        """The query has ended."""
        if self._source is not None:
            self._source.stop()

    def _opened(self) -> MicroBatchSource:
        if self._source is None:
            self._source = _open(self._options, self._columns)
        return self._source


class InvalidStreamReader(DataSourceStreamReader):
    """Says why there is no other, when it is asked: what is raised before, a mistake of Spark hides."""

    def __init__(self, reason: ValueError) -> None:
        self._reason = reason

    def initialOffset(self) -> NoReturn:  # noqa: N802
        """Of a new query."""
        raise self._reason

    def latestOffset(self) -> NoReturn:  # type: ignore[override]  # noqa: N802
        """Of a query that goes on."""
        raise self._reason

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> NoReturn:
        """Of a query that has to do a batch again."""
        raise self._reason

    def read(self, partition: InputPartition) -> NoReturn:
        """Of nothing."""
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
    # Spark makes a partition of its own where there is none.
    return partition.read(options, names) if isinstance(partition, ReadPartition) else iter(())


def _columns(schema: StructType) -> tuple[str, ...]:
    return columns.check_read(_fields(schema))


def _fields(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]
