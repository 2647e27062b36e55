"""Tracking data of a stream: the last sequence of each producer and the stored offset of each consumer.

    tail   │ entry … │ size of the entries u32 │ checksum of all before u32 │
    entry  │ kind u8 │ size u8 │ name │ number u64 │

It is written at the end of a chunk, with the messages it belongs to. Kind 0 is the sequence of a producer, 1
the offset of a consumer. The first chunk of a file has the complete data, so that nothing is lost when older
files are deleted; other chunks have the changes. The checksum is CRC-32C and starts from the salt of the
file, so that a tail can be read without its chunk.
"""

from collections import OrderedDict
from struct import Struct

from google_crc32c import extend

from warren.limits import STREAM_CONSUMERS_MAX, STREAM_PRODUCERS_MAX

_HEAD = Struct(">BB")
_NUMBER = Struct(">Q")
_END = Struct(">II")
END_SIZE = _END.size
_SEQUENCE, _OFFSET = range(2)


class Tracking:
    """Sequences by producer and offsets by consumer.

    The ones set longest ago are evicted when there are too many.
    """

    __slots__ = ("offsets", "sequences")

    def __init__(self) -> None:
        self.sequences: OrderedDict[str, int] = OrderedDict()
        self.offsets: OrderedDict[str, int] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self.sequences or self.offsets)

    def set_sequence(self, producer: str, sequence: int) -> None:
        """Record `sequence` as the last one of `producer`."""
        _set(self.sequences, producer, sequence, STREAM_PRODUCERS_MAX)

    def set_offset(self, reference: str, offset: int) -> None:
        """Record `offset` as the position of the consumer `reference`."""
        _set(self.offsets, reference, offset, STREAM_CONSUMERS_MAX)

    def update(self, changes: "Tracking") -> None:
        """Apply `changes` to this state."""
        for producer, sequence in changes.sequences.items():
            self.set_sequence(producer, sequence)
        for reference, offset in changes.offsets.items():
            self.set_offset(reference, offset)

    def encode(self, seed: int) -> bytes:
        """The tail of a chunk with all entries; empty if there are none."""
        if not self:
            return b""
        parts: list[bytes] = []
        for kind, numbers in ((_SEQUENCE, self.sequences), (_OFFSET, self.offsets)):
            for name, number in numbers.items():
                data = name.encode("utf-8", "surrogateescape")
                parts += (_HEAD.pack(kind, len(data)), data, _NUMBER.pack(number))
        entries = b"".join(parts)
        before = entries + len(entries).to_bytes(4, "big")
        return before + int(extend(seed, before)).to_bytes(4, "big")

    def apply(self, entries: bytes) -> None:
        """Apply `entries` of an intact tail to this state."""
        at = 0
        while at < len(entries):
            kind, size = _HEAD.unpack_from(entries, at)
            at += _HEAD.size
            name = entries[at : at + size].decode("utf-8", "surrogateescape")
            at += size
            (number,) = _NUMBER.unpack_from(entries, at)
            at += _NUMBER.size
            if kind == _SEQUENCE:
                self.set_sequence(name, number)
            else:
                self.set_offset(name, number)


def entries_size(end: bytes) -> int:
    """The size in bytes of the entries of the tail that ends with `end`, its last END_SIZE bytes."""
    size: int = _END.unpack(end)[0]
    return size


def is_whole_tail(tail: bytes, seed: int) -> bool:
    """True if the checksum of `tail` is right."""
    return int(extend(seed, tail[:-4])) == int.from_bytes(tail[-4:], "big")


def _set(numbers: OrderedDict[str, int], name: str, number: int, count_max: int) -> None:
    numbers[name] = number
    numbers.move_to_end(name)
    if len(numbers) > count_max:
        numbers.popitem(last=False)
