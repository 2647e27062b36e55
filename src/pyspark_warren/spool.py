"""Spools an iterator so that it can be read again: in memory, or in a temporary file if it is large."""

import tempfile
from collections.abc import Iterator
from typing import Self

import pyarrow as pa

# Bytes of a task that are kept in memory; more are written to a file.
IN_MEMORY_MAX = 33_554_432
_PIECE = 1_048_576


class SpooledBytes:
    """Bytes that can be iterated over several times, each time from the beginning."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY_MAX)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            yield piece
        for piece in self._pieces:
            self._file.write(piece)
            yield piece


class SpooledBatches:
    """Record batches of one schema that can be iterated over several times, each time from the first."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY_MAX)  # noqa: SIM115
        self._sizes: list[int] = []
        self._schema: pa.Schema = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._file.seek(0)
        for size in list(self._sizes):
            yield pa.ipc.read_record_batch(pa.py_buffer(self._file.read(size)), self._schema)
        for batch in self._batches:
            buffer = batch.serialize()
            self._file.write(buffer)
            self._schema = batch.schema
            self._sizes.append(buffer.size)
            yield batch
