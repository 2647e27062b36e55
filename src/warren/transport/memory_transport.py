"""Two asyncio transports that are connected in memory: what is written to one is read from the other.

They behave as sockets do. Data is read in a later turn of the loop, one buffer in each turn; who does not
read holds the writer back at the limit of its write buffer; an end that is closed is noticed when the data
before it has been read.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from warren import limits

_Data: TypeAlias = bytes | bytearray | memoryview


class MemoryTransport(asyncio.Transport):
    """One of two connected ends; `connect` creates both."""

    __slots__ = (
        "_chunks", "_high", "_is_closing", "_is_ended", "_is_eof", "_is_lost", "_is_marked", "_is_reading",
        "_is_writer_paused", "_loop", "_low", "_other", "_protocol", "_size",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._other: MemoryTransport = self
        # What was written and not read by the other end, and its size in bytes.
        self._chunks: deque[memoryview] = deque()
        self._size = 0
        self.set_write_buffer_limits()
        self._is_writer_paused = False
        self._is_reading = True
        # True while `_read` is scheduled.
        self._is_marked = False
        # Nothing more is written; nothing more is written or read; `connection_lost` was or will be called.
        self._is_eof = False
        self._is_closing = False
        self._is_lost = False
        # The end of the data of the other end was read.
        self._is_ended = False

    @staticmethod
    def connect(
        loop: asyncio.AbstractEventLoop, one: asyncio.BufferedProtocol, other: asyncio.BufferedProtocol
    ) -> None:
        """Connect the protocols `one` and `other`."""
        first, second = MemoryTransport(loop, one), MemoryTransport(loop, other)
        first._other, second._other = second, first
        for end in (first, second):
            end._protocol.connection_made(end)

    # --- writing ----------------------------------------------------------------------------------

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ask the protocol to pause above `high` bytes, and to resume at `low` bytes."""
        self._high = limits.OUTBOX_SIZE_MAX if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        """Return the bytes that the other end has not read."""
        return self._size

    def write(self, data: _Data) -> None:
        """Pass `data` to the other end."""
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[_Data]) -> None:
        """Pass `list_of_data` to the other end."""
        if self._is_closing or self._is_eof:
            return
        if self._other._is_lost:
            self.abort()
            return
        for data in list_of_data:
            if data:
                self._chunks.append(memoryview(data))
                self._size += len(data)
        self._other._mark()
        if self._size > self._high and not self._is_writer_paused:
            self._is_writer_paused = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        """True: an end can stop writing and still read."""
        return True

    def write_eof(self) -> None:
        """End the data."""
        self._is_eof = True
        self._other._mark()

    # --- reading ----------------------------------------------------------------------------------

    def is_reading(self) -> bool:
        """True if data of the other end is passed to the protocol."""
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Read again."""
        self._is_reading = True
        self._mark()

    def _mark(self) -> None:
        """Schedule a read if there is something to read."""
        other = self._other
        is_due = bool(other._chunks) or ((other._is_eof or other._is_lost) and not self._is_ended)
        if is_due and self.is_reading() and not self._is_marked:
            self._is_marked = True
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        """Pass one buffer of data to the protocol, or the end of the data."""
        self._is_marked = False
        if not self.is_reading():
            return
        if self._other._chunks:
            buffer = memoryview(self._protocol.get_buffer(-1))
            self._protocol.buffer_updated(self._other._take(buffer))
            self._other._continue()
            self._mark()
        elif not self._is_ended:
            self._is_ended = True
            if not self._protocol.eof_received():
                self.close()

    def _take(self, buffer: memoryview) -> int:
        """Move written data into `buffer`; return its size."""
        filled = 0
        while self._chunks and filled < len(buffer):
            chunk = self._chunks[0]
            size = min(len(chunk), len(buffer) - filled)
            buffer[filled : filled + size] = chunk[:size]
            filled += size
            if size == len(chunk):
                self._chunks.popleft()
            else:
                self._chunks[0] = chunk[size:]
        self._size -= filled
        return filled

    def _continue(self) -> None:
        """Let the protocol write again, or end, after the other end has read."""
        if self._is_closing:
            if not self._chunks:
                self._lose()
        elif self._is_writer_paused and self._size <= self._low:
            self._is_writer_paused = False
            self._protocol.resume_writing()

    # --- end --------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        """True after `close` or `abort`."""
        return self._is_closing

    def close(self) -> None:
        """Read no more, and end when the other end has read what was written."""
        if not self._is_closing:
            self._is_closing = True
            if not self._chunks:
                self._lose()

    def abort(self) -> None:
        """End both ends at once, as the reset of a socket does; what was written and not read is dropped.

        An end that does not read, because it cannot pass on what it has, has to learn of it as well.
        """
        self._is_closing = True
        self._chunks.clear()
        self._size = 0
        self._lose()
        if not self._other._is_lost:
            self._other.abort()

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._loop.call_soon(self._protocol.connection_lost, None)
            if self._other._chunks:
                # Nobody will read that.
                self._other.abort()
            else:
                self._other._mark()
