"""Counts the messages in the files of a store or of streams without changing anything.

Damaged records are skipped silently here; opening the store reports them.
"""

from collections.abc import Mapping
from typing import NamedTuple

from warren.store.disk import Disk
from warren.store.record import BATCH, KIND_AT, SEAL, encode, is_intact
from warren.store.recovered_queue import RecoveredQueue
from warren.store.salvage import read_around_damage
from warren.store.scan import LiveMessages, SegmentScan, recovered_cursor
from warren.store.segment import HEAD_SIZE, SUFFIX, Segment, StoreFileError, number_of, seed_of
from warren.store.streams.scan import scan_chunks
from warren.store.streams.segment import HEAD_SIZE as STREAM_HEAD_SIZE
from warren.store.streams.segment import SUFFIX as STREAM_SUFFIX
from warren.store.streams.segment import is_stream_file, open_segment, stream_of


class MessageTotals(NamedTuple):
    """A number of messages and their size in bytes."""

    messages: int = 0
    byte_count: int = 0

    def plus(self, other: "MessageTotals") -> "MessageTotals":
        """The sum of both totals."""
        return MessageTotals(self.messages + other.messages, self.byte_count + other.byte_count)


def queue_totals(levels: Mapping[int, RecoveredQueue]) -> MessageTotals:
    """The total of one queue over all its priority levels."""
    return MessageTotals(
        sum(found.count for found in levels.values()), sum(found.byte_count for found in levels.values())
    )


def sum_totals(held: Mapping[int, MessageTotals]) -> MessageTotals:
    """The sum of all totals."""
    return MessageTotals(
        sum(one.messages for one in held.values()), sum(one.byte_count for one in held.values())
    )


def survey_store(disk: Disk) -> dict[int, MessageTotals]:
    """The totals of live messages in the store in `disk`, by queue number. OSError from the disk."""
    sizes = {name: size for name, size in disk.names().items() if number_of(name) is not None}
    scan = SegmentScan()
    segments: dict[int, Segment] = {}
    for name in sorted(sizes):
        segment = Segment(int(name.removesuffix(SUFFIX)))
        data, _ = read_around_damage(disk, name, sizes[name])
        try:
            segment.seed = seed_of(data[:HEAD_SIZE], segment.number)
        except StoreFileError:
            continue
        segments[segment.number] = segment
        _look_through(scan, segment, data)
    held: dict[int, MessageTotals] = {}
    for (queue, level), cursor in scan.cursors.items():
        settled = recovered_cursor(cursor, queue, level)
        remaining = LiveMessages(cursor, settled, segments)
        if queue in scan.groups.states:
            scan.groups.states[queue].settle_void(settled, cursor.end)
        while remaining.take_some():
            pass
        held[queue] = held.get(queue, MessageTotals()).plus(queue_totals({level: remaining.found()}))
    return {queue: one for queue, one in held.items() if one.messages}


def survey_streams(disk: Disk) -> dict[int, MessageTotals]:
    """The totals of the streams in `disk`, by stream number. OSError from the disk."""
    held: dict[int, MessageTotals] = {}
    for name, size in disk.names().items():
        if not is_stream_file(name):
            # Skips the catalog and files that do not belong to streams.
            continue
        number, _ = stream_of(name)
        messages = 0
        if name.endswith(STREAM_SUFFIX):
            try:
                segment = open_segment(name, disk.read(name, 0, STREAM_HEAD_SIZE))
            except StoreFileError:
                pass
            else:
                heads = [chunk.head for chunk in scan_chunks(disk.read, segment, STREAM_HEAD_SIZE, size)]
                messages = sum(head.end - head.first for head in heads)
        held[number] = held.get(number, MessageTotals()).plus(MessageTotals(messages, size))
    return held


def _look_through(scan: SegmentScan, segment: Segment, data: bytes) -> None:
    """Collect all intact records of `segment`."""
    batch = encode(BATCH, b"", segment.seed)
    at = HEAD_SIZE
    while True:
        start = at
        at = scan.take_some(segment, data, at)
        if at > start:
            continue
        size = is_intact(data, at, segment.seed)
        if size and data[at + KIND_AT] == SEAL:
            return
        synced = data.find(batch, at + 1)
        if synced < 0:
            return
        if size:
            scan.take(segment, data, at, size)
            at += size
        else:
            at = synced
