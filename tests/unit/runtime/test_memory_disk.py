"""Files in memory behave as files do."""

import asyncio

from warren.runtime.memory_disk import MemoryDisk
from warren.store.disk import Create, Delete, Rename, Sync, SyncDirectory, Write


def test_files_hold_what_was_written_where_it_was_written() -> None:
    async def use() -> None:
        disk = MemoryDisk(asyncio.get_running_loop())
        disk.perform([Create("a", 4), Write("a", 2, [b"xy", b"z"]), Sync("a"), SyncDirectory()])
        assert disk.read("a", 0, 100) == b"\0\0xyz"
        disk.perform([Write("a", 8, [b"end"])])
        assert disk.read("a", 4, 5) == b"z\0\0\0e"
        assert disk.names() == {"a": 11}
        told = asyncio.get_running_loop().create_future()
        disk.submit([Rename("a", "b"), Create("c", 0), Delete("c"), Delete("c")], told.set_result)
        assert not told.done()
        assert await told is None
        assert disk.names() == {"b": 11}

    asyncio.run(use())
