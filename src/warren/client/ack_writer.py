"""Encodes acknowledgements of a consumer, many at once."""

import struct

ACK = struct.Struct(">BHIHHQBB")
_RUN = 256
_MARK = b"\x5a\xa5\x5a\xa5\x5a\xa5\x5a"  # placeholder for the upper seven bytes of a delivery tag


def ack(channel: int, delivery_tag: int, *, is_multiple: bool) -> bytes:
    """Return the frame of one basic.ack."""
    return ACK.pack(1, channel, 13, 60, 80, delivery_tag, is_multiple, 0xCE)


class AckWriter:
    """Encodes runs of single acks by replacing the upper bytes of 256 prepared acks at once."""

    __slots__ = ("_run",)

    def __init__(self, channel: int) -> None:
        head = struct.pack(">BHIHH", 1, channel, 13, 60, 80)
        self._run = b"".join(head + _MARK + bytes((low, 0, 0xCE)) for low in range(_RUN))

    def up_to(self, settled: int, delivery_tag: int) -> bytes:
        """Return a single ack for each tag above `settled`, up to and including `delivery_tag`."""
        pieces = []
        tag = settled + 1
        while tag <= delivery_tag:
            upper, low = divmod(tag, _RUN)
            count = min(_RUN - low, delivery_tag - tag + 1)
            piece = self._run[low * ACK.size : (low + count) * ACK.size]
            pieces.append(piece.replace(_MARK, upper.to_bytes(7, "big")))
            tag += count
        return b"".join(pieces)
