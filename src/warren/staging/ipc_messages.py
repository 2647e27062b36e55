"""Splits an Arrow IPC stream into its messages, each within bounds, before Arrow parses them.

    message │ 0xFFFFFFFF │ size i32 │ metadata, a flatbuffer of `size` bytes │ body │        size 0: the end

All integers are little-endian. Of the metadata, only the kind of the message, the length of the body and the
uncompressed sizes of compressed buffers are read: these use memory, and are bounded, too.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import IntEnum
from struct import Struct, error

import msgspec

from warren.limits import STAGED_BATCH_SIZE_MAX, STAGED_METADATA_SIZE_MAX

# Reads up to a number of bytes, at least one; none at the end.
Read = Callable[[int], Awaitable[bytes]]

_CONTINUATION = b"\xff\xff\xff\xff"
_PREFIX_SIZE = 8
_PIECE = 1_048_576
_U16, _I32, _U32, _I64 = (Struct(form) for form in ("<H", "<i", "<I", "<q"))
_BUFFER = Struct("<qq")
# Fields of the tables Message and RecordBatch, in the order of Arrow's schema for them.
_HEADER_KIND, _HEADER, _BODY_SIZE = 1, 2, 3
_BUFFERS, _COMPRESSION = 2, 3


class IpcStreamRefused(Exception):
    """The bytes are not an Arrow stream, or exceed a bound; the text says which."""


class IpcMessageKind(IntEnum):
    """The kind of a message."""

    SCHEMA = 1
    DICTIONARY = 2
    RECORDS = 3


class IpcMessage(msgspec.Struct, frozen=True):
    """One complete message."""

    kind: IpcMessageKind
    data: bytes


async def read_ipc_messages(read: Read) -> AsyncIterator[IpcMessage]:
    """Yield the messages of the stream that `read` reads. Raises IpcStreamRefused for invalid bytes."""
    while True:
        prefix = await _exactly(read, _PREFIX_SIZE)
        if prefix[:4] != _CONTINUATION:
            raise IpcStreamRefused("this is not an Arrow IPC stream")
        size = _I32.unpack_from(prefix, 4)[0]
        if not size:
            return
        if not 0 < size <= STAGED_METADATA_SIZE_MAX:
            raise IpcStreamRefused(f"metadata of {size} bytes: the maximum is {STAGED_METADATA_SIZE_MAX}")
        metadata = await _exactly(read, size)
        try:
            table = _table(metadata, _U32.unpack_from(metadata, 0)[0])
            kind = IpcMessageKind(metadata[table.place(_HEADER_KIND)])
            body_size = _I64.unpack_from(metadata, table.place(_BODY_SIZE))[0] if table.has(_BODY_SIZE) else 0
        except (error, IndexError, ValueError):
            raise IpcStreamRefused("the metadata of a message are invalid") from None
        if not 0 <= body_size <= STAGED_BATCH_SIZE_MAX:
            raise IpcStreamRefused(f"a batch of {body_size} bytes: the maximum is {STAGED_BATCH_SIZE_MAX}")
        body = await _exactly(read, body_size)
        if kind is IpcMessageKind.RECORDS:
            _check_compressed(metadata, table, body)
        yield IpcMessage(kind, b"".join((prefix, metadata, body)))


class _FlatbufferTable:
    """One table of a flatbuffer."""

    __slots__ = ("_at", "_data", "_fields", "_vtable")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._vtable = at - _I32.unpack_from(data, at)[0]
        if self._vtable < 0:
            raise IndexError
        self._fields = (_U16.unpack_from(data, self._vtable)[0] - 4) // 2

    def has(self, field: int) -> bool:
        """True if the table has a value for `field`."""
        return field < self._fields and self._offset(field) != 0

    def place(self, field: int) -> int:
        """Return the position of the value of `field`. Raises IndexError if there is none."""
        if not self.has(field):
            raise IndexError
        return self._at + self._offset(field)

    def behind(self, field: int) -> int:
        """Return the position that the offset in `field` refers to."""
        at = self.place(field)
        target: int = at + _U32.unpack_from(self._data, at)[0]
        return target

    def _offset(self, field: int) -> int:
        offset: int = _U16.unpack_from(self._data, self._vtable + 4 + 2 * field)[0]
        return offset


def _table(data: bytes, at: int) -> _FlatbufferTable:
    return _FlatbufferTable(data, at)


def _check_compressed(metadata: bytes, message: _FlatbufferTable, body: bytes) -> None:
    """Raise IpcStreamRefused if the buffers of a batch would exceed the bound when uncompressed."""
    try:
        batch = _table(metadata, message.behind(_HEADER))
        if not batch.has(_COMPRESSION):
            return
        at = batch.behind(_BUFFERS)
        count = _U32.unpack_from(metadata, at)[0]
        if at + 4 + count * _BUFFER.size > len(metadata):
            raise IndexError
        total = 0
        for offset, size in _BUFFER.iter_unpack(metadata[at + 4 : at + 4 + count * _BUFFER.size]):
            if size:
                if offset < 0 or size < _I64.size or offset + size > len(body):
                    raise IndexError
                # -1: the buffer is not compressed.
                total += max(_I64.unpack_from(body, offset)[0], size)
    except (error, IndexError):
        raise IpcStreamRefused("the metadata of a message are invalid") from None
    if total > STAGED_BATCH_SIZE_MAX:
        raise IpcStreamRefused(
            f"a batch of {total} bytes, uncompressed: the maximum is {STAGED_BATCH_SIZE_MAX}"
        )


async def _exactly(read: Read, size: int) -> bytes:
    pieces = []
    while size:
        piece = await read(min(size, _PIECE))
        if not piece:
            raise IpcStreamRefused("the stream is incomplete")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
