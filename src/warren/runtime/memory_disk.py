"""A directory in memory, for streams of a broker without a data directory."""

import asyncio
from collections.abc import Mapping, Sequence

from warren.store.disk import CreateFile, DeleteFile, Disk, DiskStep, OnDone, RenameFile, WriteFile


class MemoryDisk(Disk):
    """A directory that is lost with the process. Belongs to one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._files: dict[str, bytearray] = {}

    def names(self) -> Mapping[str, int]:
        """The names of the files, with their sizes in bytes."""
        return {name: len(data) for name, data in self._files.items()}

    def read(self, name: str, at: int, size: int) -> bytes:
        """Up to `size` bytes of `name` from `at` on."""
        return bytes(self._files[name][at : at + size])

    def perform(self, steps: Sequence[DiskStep]) -> None:
        """Perform `steps` in order, before returning."""
        for step in steps:
            self._do(step)

    def note(self, name: str, at: int, data: bytes) -> None:
        """Write `data` into `name` from byte `at` on."""
        self._do(WriteFile(name, at, [data]))

    def create_beside(self, name: str, size: int, done: OnDone) -> None:
        """Create the file `name` of `size` zero bytes, then call `done` in a later turn."""
        self.submit([CreateFile(name, size)], done)

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        """Perform `steps` in order, then call `done` in a later turn."""
        self.perform(steps)
        self._loop.call_soon(done, None)

    def _do(self, step: DiskStep) -> None:
        match step:
            case CreateFile(name, size):
                self._files[name] = bytearray(size)
            case WriteFile(name, at, chunks):
                data = b"".join(chunks)
                file = self._files[name]
                file.extend(bytes(max(at - len(file), 0)))
                file[at : at + len(data)] = data
            case RenameFile(old, new):
                self._files[new] = self._files.pop(old)
            case DeleteFile(name):
                self._files.pop(name, None)
            case _:
                pass
