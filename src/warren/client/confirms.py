"""Counts publisher confirms in received bytes, without decoding each frame."""

import struct

from warren.client.ack_writer import AckWriter

# basic.ack and basic.nack have the same length:
# type u8 | channel u16 | size u32 | class u16 | method u16 | delivery tag u64 | bits u8 | end u8
CONFIRM = struct.Struct(">BHIHHQBB")
CONFIRM_BYTES = CONFIRM.size
BASIC = 60
ACK = 80
NACK = 120
END = 0xCE


class UnexpectedBytes(Exception):
    """Received bytes are not a confirm; `data` begins with the unexpected frame."""

    def __init__(self, data: bytes) -> None:
        super().__init__(f"{len(data)} bytes that are not a publisher confirm")
        self.data = data


class ConfirmCounter:
    """Counts settled publishes; confirms can arrive in any order, single or multiple."""

    __slots__ = ("_above", "_acks", "_carry", "_mark", "nacked", "settled")

    def __init__(self, channel: int = 1) -> None:
        self._acks = AckWriter(channel)  # generates the expected bytes of a run of acks
        self.settled = 0
        self.nacked = 0
        self._mark = 0  # all publishes up to this number are settled
        self._above: set[int] = set()  # settled publishes above `_mark`
        self._carry = b""

    def feed(self, data: bytes, published: int) -> int:
        """Count the confirms in `data`, which may end inside a frame; return the newly settled publishes.

        `published` is the number of publishes so far. Raises UnexpectedBytes for any other frame, and for the
        confirm of a later publish.
        """
        if self._carry:
            data = self._carry + data
        whole = len(data) - len(data) % CONFIRM_BYTES
        before = self.settled
        if not self._is_run(data, whole, published):
            self._walk(data, whole, published)
        self._carry = data[whole:]
        return self.settled - before

    def _is_run(self, data: bytes, whole: int, published: int) -> bool:
        """Settle all of `data` if it is a run of single acks that continues in order; whether it was."""
        count = whole // CONFIRM_BYTES
        if not count or self._above or self._mark + count > published:
            return False
        if data[:whole] != self._acks.up_to(self._mark, self._mark + count):
            return False
        self._mark += count
        self.settled += count
        return True

    def _walk(self, data: bytes, whole: int, published: int) -> None:
        at = 0
        for kind, _, size, class_id, method_id, tag, bits, end in CONFIRM.iter_unpack(data[:whole]):
            if kind != 1 or size != 13 or class_id != BASIC or method_id not in (ACK, NACK) or end != END:
                raise UnexpectedBytes(data[at:])
            if tag > published:
                raise UnexpectedBytes(data[at:])
            settled = self._settle(tag, is_multiple=bool(bits & 1))
            if method_id == NACK:
                self.nacked += settled
            at += CONFIRM_BYTES

    def _settle(self, tag: int, *, is_multiple: bool) -> int:
        """Settle `tag`, or all up to `tag`; return how many publishes this newly settled."""
        if tag <= self._mark or tag in self._above:
            return 0
        before = self._mark + len(self._above)
        if is_multiple:
            self._mark = tag
            self._above = {above for above in self._above if above > tag}
        else:
            self._above.add(tag)
        while self._mark + 1 in self._above:
            self._mark += 1
            self._above.remove(self._mark)
        settled = self._mark + len(self._above) - before
        self.settled += settled
        return settled
