"""A query over streams: where it stands, and what its next batch is."""

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

# Further than any stream goes: who expects that, looks patiently.
_FAR = 2**63 - 1


class StreamSource:
    """Plans batches of offsets; runs on the driver."""

    def __init__(self, options: ReadOptions, strategy: ReadStrategy) -> None:
        self._options = options
        self._strategy = strategy
        self._streams = open_streams(options, strategy.transport)
        self._vhost = options.broker.target.vhost
        self._target: dict[str, StreamOffset] | None = None
        # Where the last batch ended: before Spark 4.2 nobody says it when the next one is planned.
        self._reached: dict[str, StreamOffset] = {}
        # Where streams ended when it was last looked: over AMQP looking takes a second while messages come.
        self._seen: dict[str, StreamOffset] = {}
        # What streams hold, while one batch read is planned: each is asked once for it.
        self._planned: dict[str, StreamBounds] | None = None
        if options.octets_max and strategy.transport == "amqp":
            raise ValueError(
                "over AMQP nobody knows how large messages of a stream are before they are read: "
                "use maxOffsetsPerTrigger in place of maxBytesPerTrigger"
            )

    def initial_offset(self) -> dict[str, Any]:
        """Where a new query begins."""
        return self.resolve(self._options.starting)

    def latest_offset(
        self, start: Mapping[str, Any], offsets_max: int | None, octets_max: int | None
    ) -> dict[str, Any]:
        """How far the next batch goes."""
        before = offsets.decode(start) or self._reached
        self._check_known(before)
        bounds = self._looked(before)
        ends = self._seen
        # What retention took is not in the batch, and a stream that is new to the query begins where it does.
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
        if octets_max is not None:
            octets = max((one.octets for one in bounds.values()), default=0)
            offsets_max = min(offsets_max or 2**63, max(1, octets_max // max(octets, 1)))
        if offsets_max is not None:
            ends = limit_ends(begins, ends, offsets_max)
        return offsets.encode(
            {key: max(place, before.get(key, place), key=_next) for key, place in ends.items()}
        )

    def prepare_available_now(self) -> None:
        """From now on no batch goes further than what is there now."""
        self._target = self._resolve(LATEST)

    def committed(self) -> dict[str, Any]:
        """Where the streams ended when a batch was planned last."""
        return offsets.encode(self._seen) if self._seen else self.resolve(LATEST)

    def batch(self, wanted: PushedFilters) -> list[ReadPartition]:
        """The tasks of a read of what is there, as far as it is `wanted`."""
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
        """The tasks of one batch; the same for the same offsets, whenever it is asked."""
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
        # Empty is a stream that is new to the query, and one of which retention took all of the batch.
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
        """The offsets that an option means."""
        return offsets.encode(self._resolve(where))

    def commit(self, end: Mapping[str, Any]) -> None:
        """A stream keeps what was read."""

    def stop(self) -> None:
        """Nothing is held."""

    def _resolve(
        self, where: str | int | Mapping[str, Any], option: str = "startingOffsets"
    ) -> dict[str, StreamOffset]:
        """The place of each stream that an option means."""
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
                            f"{option!r} names the offset {place} of {key!r}, "
                            f"which ends at {bounds.committed}"
                        )
                    _check_same_stream(queue, given[key], StreamOffset(bounds.epoch, bounds.committed))
            places[key] = StreamOffset(bounds.epoch, place)
        return places

    def _looked(self, before: Mapping[str, StreamOffset]) -> dict[str, StreamBounds]:
        """What each stream holds now; raises if it is another one."""
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
        """What `queue` holds, `expected` at least: now, or as it was when the planning of a batch began."""
        known = self._planned.get(queue) if self._planned is not None else None
        if known is None or known.committed < expected:
            known = self._streams.bounds(queue, expected)
            if self._planned is not None:
                self._planned[queue] = known
        return known

    def _checked(self, queue: str, start: StreamOffset | None, end: StreamOffset) -> OffsetRange:
        """[start, end) of a stream, or what is left of it; no start is that of a stream new to the query."""
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
                f"the checkpoint has offsets of {unknown}, which the query does not read: it is of another "
                "query, or streams were deleted. Start with a new checkpoint; failOnDataLoss=false goes on "
                "without what is not read"
            )

    def _check_given(self, given: Mapping[str, StreamOffset], option: str) -> None:
        for queue in self._strategy.queues:
            if (key := offsets.key(self._vhost, queue)) not in given:
                raise ValueError(
                    f"{option!r} must name {key!r}, and names {', '.join(sorted(given)) or 'none'}"
                )
        if unknown := self._unknown(given):
            raise ValueError(f"{option!r} names {unknown}, which is not read")

    def _unknown(self, places: Mapping[str, StreamOffset]) -> str:
        known = {offsets.key(self._vhost, queue) for queue in self._strategy.queues}
        return ", ".join(sorted(places.keys() - known))


def _check_same_stream(queue: str, before: StreamOffset, after: StreamOffset) -> None:
    """Raise DataLoss if `after` is a place in another stream of the same name."""
    is_other = before.epoch and after.epoch and before.epoch != after.epoch
    if is_other or (not before.epoch and after.next < before.next):
        raise DataLoss(
            f"the stream {queue!r} is not the one that the query has read up to {before.next}: "
            "it was deleted and declared again. Start with a new checkpoint"
        )


def limit_ends(
    before: Mapping[str, StreamOffset], ends: Mapping[str, StreamOffset], count: int
) -> dict[str, StreamOffset]:
    """`ends`, moved back so that there are about `count` messages, from each stream its share."""
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
