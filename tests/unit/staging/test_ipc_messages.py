"""Arrow streams are split into messages, and every size in them is checked against the bounds."""

import asyncio

import pyarrow as pa
import pytest
from tests.integration.staging import bodies, stream

from warren.limits import STAGED_BATCH_SIZE_MAX
from warren.staging.ipc_messages import IpcMessage, IpcMessageKind, IpcStreamRefused, read_ipc_messages


def cut(data: bytes, piece: int = 1 << 20) -> list[IpcMessage]:
    at = 0

    async def read(size: int) -> bytes:
        nonlocal at
        found = data[at : at + min(size, piece)]
        at += len(found)
        return found

    async def all_of_them() -> list[IpcMessage]:
        return [frame async for frame in read_ipc_messages(read)]

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_messages_are_complete_however_the_stream_was_cut(piece: int) -> None:
    data = stream({"body": [b"%d" % number for number in range(10)]}, rows_per_batch=4)
    found = cut(data, piece)
    assert [frame.kind for frame in found] == [
        IpcMessageKind.SCHEMA,
        IpcMessageKind.RECORDS,
        IpcMessageKind.RECORDS,
        IpcMessageKind.RECORDS,
    ]
    assert b"".join(frame.data for frame in found) + data[-8:] == data
    schema = pa.ipc.read_schema(pa.py_buffer(found[0].data))
    batch = pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(found[3].data)), schema)
    assert batch.column(0).to_pylist() == [b"8", b"9"]


def test_data_after_the_end_of_stream_is_not_read() -> None:
    assert len(cut(bodies([b"1"], "q") + b"more")) == 2


@pytest.mark.parametrize("size", range(0, 400, 13))
def test_a_truncated_stream_is_refused(size: int) -> None:
    data = bodies([b"1"], "q")
    with pytest.raises(IpcStreamRefused, match="is incomplete"):
        cut(data[: min(size, len(data) - 8)])


@pytest.mark.parametrize("place", range(8, 140))
def test_damaged_metadata_is_refused_or_stays_within_bounds(place: int) -> None:
    data = bytearray(bodies([b"1"], "q"))
    for value in (0xFF, 0x7F, 0x00):
        data[place] = value
        try:
            found = cut(bytes(data))
        except IpcStreamRefused:
            continue
        assert sum(len(frame.data) for frame in found) <= len(data)


def test_a_batch_that_declares_too_large_a_size_is_not_read() -> None:
    table = pa.table({"body": pa.array([bytes(STAGED_BATCH_SIZE_MAX)], pa.binary())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(IpcStreamRefused, match="the maximum is"):
        cut(sink.getvalue().slice(0, 1_000).to_pybytes())


def test_compressed_buffers_count_with_their_uncompressed_size() -> None:
    table = pa.table({"body": pa.array([bytes(STAGED_BATCH_SIZE_MAX)], pa.binary())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    assert len(data) < 100_000
    with pytest.raises(IpcStreamRefused, match="uncompressed"):
        cut(data)
