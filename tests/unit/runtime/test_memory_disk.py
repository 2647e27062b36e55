"""The disk in memory behaves as a disk with files does."""

import asyncio

from warren.runtime.memory_disk import MemoryDisk
from warren.store.disk import CreateFile, DeleteFile, RenameFile, SyncDirectory, SyncFile, WriteFile


def test_files_contain_what_was_written_at_each_offset() -> None:
    async def use() -> None:
        disk = MemoryDisk(asyncio.get_running_loop())
        disk.perform([CreateFile("a", 4), WriteFile("a", 2, [b"xy", b"z"]), SyncFile("a"), SyncDirectory()])
        assert disk.read("a", 0, 100) == b"\0\0xyz"
        disk.perform([WriteFile("a", 8, [b"end"])])
        assert disk.read("a", 4, 5) == b"z\0\0\0e"
        assert disk.names() == {"a": 11}
        reported = asyncio.get_running_loop().create_future()
        disk.submit(
            [RenameFile("a", "b"), CreateFile("c", 0), DeleteFile("c"), DeleteFile("c")], reported.set_result
        )
        assert not reported.done()
        assert await reported is None
        assert disk.names() == {"b": 11}

    asyncio.run(use())
