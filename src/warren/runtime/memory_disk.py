"""Files that are in memory only: where streams are while a broker has no data directory."""

import asyncio
from collections.abc import Mapping, Sequence

from warren.store.disk import CreateFile, DeleteFile, Disk, DiskStep, OnDone, RenameFile, WriteFile


class MemoryDisk(Disk):
    """A directory that is gone with the process. Belongs to one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._files: dict[str, bytearray] = {}

    def names(self) -> Mapping[str, int]:
        """Its files, and their sizes in octets."""
        return {name: len(octets) for name, octets in self._files.items()}

    def read(self, name: str, at: int, size: int) -> bytes:
        """Up to `size` octets of `name` from `at` on."""
        return bytes(self._files[name][at : at + size])

    def perform(self, steps: Sequence[DiskStep]) -> None:
        """Do `steps` in order now."""
        for step in steps:
            self._do(step)

    def note(self, name: str, at: int, octets: bytes) -> None:
        """Write `octets` into `name` from octet `at` on."""
        self._do(WriteFile(name, at, [octets]))

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        """Do `steps` in order, then call `done`, in a turn of its own."""
        self.perform(steps)
        self._loop.call_soon(done, None)

    def _do(self, step: DiskStep) -> None:
        match step:
            case CreateFile(name, size):
                self._files[name] = bytearray(size)
            case WriteFile(name, at, chunks):
                octets = b"".join(chunks)
                file = self._files[name]
                file.extend(bytes(max(at - len(file), 0)))
                file[at : at + len(octets)] = octets
            case RenameFile(old, new):
                self._files[new] = self._files.pop(old)
            case DeleteFile(name):
                self._files.pop(name, None)
            case _:
                pass
