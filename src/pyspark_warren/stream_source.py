"""A query over streams: where it stands, and what its next batch is."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark_warren import offsets
from pyspark_warren.choosing import Choice
from pyspark_warren.filters import Narrowed
from pyspark_warren.offsets import Place
from pyspark_warren.options import EARLIEST, LATEST, ReadOptions
from pyspark_warren.partitions import Part, StreamPart, opened_streams, split
from pyspark_warren.streams import ANY, Addressed, Bounds, DataLoss, Range, gone


class StreamSource:
    """Plans batches of offsets; runs on the driver."""

    def __init__(self, options: ReadOptions, choice: Choice) -> None:
        self._options = options
        self._choice = choice
        self._streams = opened_streams(options, choice.transport)
        self._vhost = options.broker.target.vhost
        self._target: dict[str, Place] | None = None
        # Where streams ended when it was last looked: over AMQP looking takes a second while messages come.
        self._seen: dict[str, Place] = {}
        if options.octets_max and choice.transport == "amqp":
            raise ValueError(
                "over AMQP nobody knows how large messages of a stream are before they are read: "
                "use maxOffsetsPerTrigger in place of maxBytesPerTrigger"
            )

    def initial(self) -> dict[str, Any]:
        """Where a new query begins."""
        return self.edge(self._options.starting)

    def latest(
        self, start: Mapping[str, Any], offsets_max: int | None, octets_max: int | None
    ) -> dict[str, Any]:
        """How far the next batch goes."""
        before = offsets.read(start)
        ends, sizes = self._ends(before)
        if self._target is not None:
            ends = {
                key: min(place, self._target[key], key=_next)
                for key, place in ends.items()
                if key in self._target
            }
        if octets_max is not None:
            octets = max(sizes.values(), default=0)
            offsets_max = min(offsets_max or 2**63, max(1, octets_max // max(octets, 1)))
        if offsets_max is not None:
            ends = limited(before, ends, offsets_max)
        return offsets.written(
            {key: max(place, before.get(key, place), key=_next) for key, place in ends.items()}
        )

    def end_here(self) -> None:
        """From now on no batch goes further than what is there now."""
        self._target = self._edge(LATEST)

    def committed(self) -> dict[str, Any]:
        """Where the streams ended when a batch was planned last."""
        return offsets.written(self._seen) if self._seen else self.edge(LATEST)

    def batch(self, wanted: Narrowed) -> list[Part]:
        """The tasks of a read of what is there, as far as it is `wanted`."""
        starting, ending = self._edge(self._options.starting), self._edge(self._options.ending)
        start, end = {}, {}
        for queue in filter(wanted.has, self._choice.queues):
            key = offsets.key(self._vhost, queue)
            start[key] = wanted.first(queue, starting[key], self._streams)
            end[key] = wanted.last(queue, ending[key], self._streams)
        return self.parts(offsets.written(start), offsets.written(end), wanted.addressed)

    def parts(self, start: Mapping[str, Any], end: Mapping[str, Any], only: Addressed = ANY) -> list[Part]:
        """The tasks of one batch; the same for the same offsets, whenever it is asked."""
        before, after = offsets.read(start), offsets.read(end)
        wanted = []
        for queue in self._choice.queues:
            key = offsets.key(self._vhost, queue)
            if key in after:
                first = before.get(key, Place(after[key].epoch, 0))
                if first.next < after[key].next:
                    wanted.append(self._checked(queue, first, after[key]))
        self._check_known(after)
        total = sum(one.end - one.start for one in wanted)
        return [
            StreamPart(replace(one, start=low, end=high, only=only), self._choice.transport)
            for one in wanted
            for low, high in split(
                one.start, one.end, max(1, -(-self._options.partitions_min * (one.end - one.start) // total))
            )
        ]  # fmt: skip

    def edge(self, where: str | int | Mapping[str, Any]) -> dict[str, Any]:
        """The offsets that an option means."""
        return offsets.written(self._edge(where))

    def commit(self, end: Mapping[str, Any]) -> None:
        """A stream keeps what was read."""

    def stop(self) -> None:
        """Nothing is held."""

    def _edge(self, where: str | int | Mapping[str, Any]) -> dict[str, Place]:
        """The place of each stream that an option means."""
        given = offsets.read(where) if isinstance(where, Mapping) else {}
        places = {}
        for queue in self._choice.queues:
            key = offsets.key(self._vhost, queue)
            bounds = self._streams.bounds(queue)
            match where:
                case int():
                    place = self._streams.offset_at(queue, where)
                case str():
                    place = bounds.first if where == EARLIEST else bounds.committed
                case _:
                    if key not in given:
                        raise ValueError(f"startingOffsets and endingOffsets must name {key!r}")
                    place = given[key].next
            places[key] = Place(bounds.epoch, place)
        return places

    def _ends(self, before: Mapping[str, Place]) -> tuple[dict[str, Place], dict[str, int]]:
        """Where each stream ends, and how large its messages are about; raises if it is another one."""
        ends, sizes = {}, {}
        for queue in self._choice.queues:
            key = offsets.key(self._vhost, queue)
            bounds = self._streams.bounds(queue, before[key].next if key in before else 0)
            if key in before:
                self._check_same(queue, before[key], bounds)
            ends[key] = Place(bounds.epoch, bounds.committed)
            sizes[key] = bounds.octets
        self._seen = dict(ends)
        return ends, sizes

    def _check_same(self, queue: str, before: Place, bounds: Bounds) -> None:
        is_other = before.epoch and bounds.epoch and before.epoch != bounds.epoch
        if is_other or (not before.epoch and bounds.committed < before.next):
            raise DataLoss(
                f"the stream {queue!r} is not the one that the query has read up to {before.next}: "
                "it was deleted and declared again. Start with a new checkpoint"
            )

    def _checked(self, queue: str, start: Place, end: Place) -> Range:
        """[start, end) of a stream, or what is left of it."""
        bounds = self._streams.bounds(queue, end.next)
        self._check_same(queue, end, bounds)
        first = start.next
        if bounds.first > first:
            if self._options.is_loss_fatal:
                raise gone(queue, first, bounds.first)
            first = min(bounds.first, end.next)
        return Range(
            queue=queue, epoch=end.epoch, start=first, end=end.next, is_loss_fatal=self._options.is_loss_fatal
        )

    def _check_known(self, after: Mapping[str, Place]) -> None:
        known = {offsets.key(self._vhost, queue) for queue in self._choice.queues}
        missing = sorted(after.keys() - known)
        if missing and self._options.is_loss_fatal:
            raise DataLoss(
                f"the checkpoint has offsets of {', '.join(missing)}, which the query does not read"
            )


def limited(before: Mapping[str, Place], ends: Mapping[str, Place], count: int) -> dict[str, Place]:
    """`ends`, moved back so that there are about `count` messages, from each stream its share."""
    waiting = {
        key: max(0, end.next - before[key].next if key in before else end.next) for key, end in ends.items()
    }
    total = sum(waiting.values())
    if total <= count:
        return dict(ends)
    shares = {key: min(left, max(1, left * count // total)) if left else 0 for key, left in waiting.items()}
    return {key: Place(end.epoch, end.next - waiting[key] + shares[key]) for key, end in ends.items()}


def _next(place: Place) -> int:
    return place.next
