"""Plans the micro-batches and batch reads of streams, by offsets."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark_warren import offsets
from pyspark_warren.filters import PushedFilters
from pyspark_warren.mode_detection import ReadStrategy
from pyspark_warren.offsets import StreamOffset
from pyspark_warren.options import EARLIEST, LATEST, ReadOptions
from pyspark_warren.partitions import ReadPartition, StreamPartition, open_streams, split_range
from pyspark_warren.streams import (
    ANY_ADDRESS,
    AddressFilter,
    DataLoss,
    OffsetRange,
    StreamBounds,
    retention_loss,
)

# Beyond the end of any stream: `bounds` with this expected end searches for longer.
_FAR = 2**63 - 1


class StreamSource:
    """Plans ranges of offsets as input partitions; runs on the driver."""

    def __init__(self, options: ReadOptions, strategy: ReadStrategy) -> None:
        self._options = options
        self._strategy = strategy
        self._streams = open_streams(options, strategy.transport)
        self._vhost = options.broker.target.vhost
        self._target: dict[str, StreamOffset] | None = None
        # The end of the last micro-batch; before Spark 4.2, `latestOffset` does not pass it.
        self._reached: dict[str, StreamOffset] = {}
        # The ends of the streams when they were last queried; over AMQP, a query takes up to a second.
        self._seen: dict[str, StreamOffset] = {}
        # Bounds of the streams while a batch read is planned, so that each stream is queried once.
        self._planned: dict[str, StreamBounds] | None = None
        if options.bytes_max and strategy.transport == "amqp":
            raise ValueError(
                "maxBytesPerTrigger needs transport=arrow, since AMQP does not tell the size of messages "
                "before they are read: use maxOffsetsPerTrigger"
            )

    def initial_offset(self) -> dict[str, Any]:
        """Return the offset at which a query without a checkpoint starts."""
        return self.resolve(self._options.starting)

    def latest_offset(
        self, start: Mapping[str, Any], offsets_max: int | None, bytes_max: int | None
    ) -> dict[str, Any]:
        """Return the end offset of the next micro-batch."""
        before = offsets.decode(start) or self._reached
        self._check_known(before)
        bounds = self._looked(before)
        ends = self._seen
        # Deleted messages are not counted, and a stream that is new to the query starts at its first message.
        begins = {
            key: StreamOffset(one.epoch, max(one.first, before[key].next if key in before else 0))
            for key, one in bounds.items()
        }
        if self._target is not None:
            ends = {
                key: min(place, self._target[key], key=_next)
                for key, place in ends.items()
                if key in self._target
            }
        if bytes_max is not None:
            message_bytes = max((one.message_bytes for one in bounds.values()), default=0)
            offsets_max = min(offsets_max or 2**63, max(1, bytes_max // max(message_bytes, 1)))
        if offsets_max is not None:
            ends = limit_ends(begins, ends, offsets_max)
        return offsets.encode(
            {key: max(place, before.get(key, place), key=_next) for key, place in ends.items()}
        )

    def prepare_available_now(self) -> None:
        """Let no later micro-batch read beyond the current ends of the streams (AvailableNow)."""
        self._target = self._resolve(LATEST)

    def committed(self) -> dict[str, Any]:
        """Return the ends of the streams as of the last planned micro-batch."""
        return offsets.encode(self._seen) if self._seen else self.resolve(LATEST)

    def batch(self, wanted: PushedFilters) -> list[ReadPartition]:
        """Return the input partitions of a batch read, limited by the pushed filters `wanted`."""
        self._planned = {}
        try:
            return self._batch(wanted)
        finally:
            self._planned = None

    def _batch(self, wanted: PushedFilters) -> list[ReadPartition]:
        starting = self._resolve(self._options.starting)
        ending = self._resolve(self._options.ending, "endingOffsets")
        start, end = {}, {}
        for queue in filter(wanted.has, self._strategy.queues):
            key = offsets.key(self._vhost, queue)
            start[key] = wanted.first(queue, starting[key], self._streams)
            end[key] = wanted.last(queue, ending[key], self._streams)
        return self._parts(start, end, wanted.address_filter)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[ReadPartition]:
        """Return the input partitions from `start` to `end`; the same offsets give the same messages."""
        before, after = offsets.decode(start), offsets.decode(end)
        self._check_known({**before, **after})
        for queue in self._strategy.queues:
            key = offsets.key(self._vhost, queue)
            if key in before and key in after:
                _check_same_stream(queue, before[key], after[key])
        self._reached = self._reached | after
        return self._parts(before, after, ANY_ADDRESS)

    def _parts(
        self, before: Mapping[str, StreamOffset], after: Mapping[str, StreamOffset], only: AddressFilter
    ) -> list[ReadPartition]:
        wanted = []
        for queue in self._strategy.queues:
            key = offsets.key(self._vhost, queue)
            if key in after:
                first = before.get(key)
                if first is None or first.next < after[key].next:
                    wanted.append(self._checked(queue, first, after[key]))
        # A range is empty if the stream is new to the query, or if retention deleted all of its messages.
        wanted = [one for one in wanted if one.start < one.end]
        total = sum(one.end - one.start for one in wanted)
        return [
            StreamPartition(replace(one, start=low, end=high, only=only), self._strategy.transport)
            for one in wanted
            for low, high in split_range(
                one.start, one.end, max(1, -(-self._options.partitions_min * (one.end - one.start) // total))
            )
        ]  # fmt: skip

    def resolve(self, where: str | int | Mapping[str, Any]) -> dict[str, Any]:
        """Return the encoded offsets of all streams for an option value: a word, a time or offsets."""
        return offsets.encode(self._resolve(where))

    def commit(self, end: Mapping[str, Any]) -> None:
        """Do nothing: reading does not change a stream."""

    def stop(self) -> None:
        """Do nothing: the source keeps no connection open."""

    def _resolve(
        self, where: str | int | Mapping[str, Any], option: str = "startingOffsets"
    ) -> dict[str, StreamOffset]:
        """Return the offset of each stream for the value `where` of `option`."""
        given = offsets.decode(where) if isinstance(where, Mapping) else {}
        if isinstance(where, Mapping):
            self._check_given(given, option)
        places = {}
        for queue in self._strategy.queues:
            key = offsets.key(self._vhost, queue)
            match where:
                case int():
                    bounds = self._bounds(queue)
                    place = self._streams.offset_at(queue, where)
                case str():
                    bounds = self._bounds(queue)
                    place = bounds.first if where == EARLIEST else bounds.committed
                case _:
                    place = given[key].next
                    bounds = self._bounds(queue, place)
                    if place > bounds.committed:
                        raise ValueError(
                            f"{option!r} has the offset {place} for {key!r}, which ends at {bounds.committed}"
                        )
                    _check_same_stream(queue, given[key], StreamOffset(bounds.epoch, bounds.committed))
            places[key] = StreamOffset(bounds.epoch, place)
        return places

    def _looked(self, before: Mapping[str, StreamOffset]) -> dict[str, StreamBounds]:
        """Return the bounds of each stream. Raises DataLoss if one was deleted and declared again."""
        looked = {}
        for queue in self._strategy.queues:
            key = offsets.key(self._vhost, queue)
            expected = before[key].next if key in before else 0 if before else _FAR
            bounds = self._streams.bounds(queue, expected)
            if key in before:
                _check_same_stream(queue, before[key], StreamOffset(bounds.epoch, bounds.committed))
            looked[key] = bounds
        self._seen = {key: StreamOffset(bounds.epoch, bounds.committed) for key, bounds in looked.items()}
        return looked

    def _bounds(self, queue: str, expected: int = 0) -> StreamBounds:
        """Return the bounds of `queue`; cached bounds are used if they reach to `expected`."""
        known = self._planned.get(queue) if self._planned is not None else None
        if known is None or known.committed < expected:
            known = self._streams.bounds(queue, expected)
            if self._planned is not None:
                self._planned[queue] = known
        return known

    def _checked(self, queue: str, start: StreamOffset | None, end: StreamOffset) -> OffsetRange:
        """Return [start, end) without deleted messages; `start` is None if the stream is new to the query."""
        bounds = self._bounds(queue, end.next)
        _check_same_stream(queue, end, StreamOffset(bounds.epoch, bounds.committed))
        first = 0 if start is None else start.next
        if bounds.first > first:
            if self._options.is_loss_fatal and start is not None:
                raise retention_loss(queue, first, bounds.first)
            first = min(bounds.first, end.next)
        return OffsetRange(
            queue=queue, epoch=end.epoch, start=first, end=end.next, is_loss_fatal=self._options.is_loss_fatal
        )

    def _check_known(self, places: Mapping[str, StreamOffset]) -> None:
        if (unknown := self._unknown(places)) and self._options.is_loss_fatal:
            raise DataLoss(
                f"the checkpoint has offsets of {unknown}, which the query does not read: it belongs to "
                "another query, or streams were deleted. Use a new checkpoint, or set failOnDataLoss=false "
                "to continue without them"
            )

    def _check_given(self, given: Mapping[str, StreamOffset], option: str) -> None:
        for queue in self._strategy.queues:
            if (key := offsets.key(self._vhost, queue)) not in given:
                raise ValueError(
                    f"{option!r} has no offset for {key!r}; it has {', '.join(sorted(given)) or 'none'}"
                )
        if unknown := self._unknown(given):
            raise ValueError(f"{option!r} has an offset for {unknown}, which is not read")

    def _unknown(self, places: Mapping[str, StreamOffset]) -> str:
        known = {offsets.key(self._vhost, queue) for queue in self._strategy.queues}
        return ", ".join(sorted(places.keys() - known))


def _check_same_stream(queue: str, before: StreamOffset, after: StreamOffset) -> None:
    """Raise DataLoss if `after` is in a stream that was declared after the stream of `before` was deleted."""
    is_other = before.epoch and after.epoch and before.epoch != after.epoch
    if is_other or (not before.epoch and after.next < before.next):
        raise DataLoss(
            f"the stream {queue!r} was deleted and declared again after the query had read it up to offset "
            f"{before.next}. Use a new checkpoint"
        )


def limit_ends(
    before: Mapping[str, StreamOffset], ends: Mapping[str, StreamOffset], count: int
) -> dict[str, StreamOffset]:
    """Return `ends` moved back to about `count` messages in total, shared in proportion by the streams."""
    waiting = {
        key: max(0, end.next - before[key].next if key in before else end.next) for key, end in ends.items()
    }
    total = sum(waiting.values())
    if total <= count:
        return dict(ends)
    shares = {key: min(left, max(1, left * count // total)) if left else 0 for key, left in waiting.items()}
    return {key: StreamOffset(end.epoch, end.next - waiting[key] + shares[key]) for key, end in ends.items()}


def _next(place: StreamOffset) -> int:
    return place.next
