"""The files of one directory, written by a thread: the loop never waits for a disk."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path

from warren.store.disk import Create, Delete, Done, Rename, Step, Sync, SyncDirectory, Write

_ZEROS = bytes(1 << 20)
# Files that stay open: the one that is written to, and those read from lately.
_OPEN_FILES_MAX = 8


class DirectoryDisk:
    """A directory that is there; `executor` does the jobs, one at a time."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop, executor: Executor) -> None:
        self.path = path
        self._loop = loop
        self._executor = executor
        self._files: dict[str, int] = {}
        self._directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of the files; no job may be under way."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()
        os.close(self._directory)

    def names(self) -> Mapping[str, int]:
        """Its files, and their sizes in octets."""
        return {entry.name: entry.stat().st_size for entry in os.scandir(self.path) if entry.is_file()}

    def read(self, name: str, at: int, size: int) -> bytes:
        """Up to `size` octets of `name` from `at` on."""
        with open(self.path / name, "rb", buffering=0) as file:
            pieces = []
            while size:
                piece = os.pread(file.fileno(), size, at)
                if not piece:
                    break
                pieces.append(piece)
                at += len(piece)
                size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def perform(self, steps: Sequence[Step]) -> None:
        """Do `steps` in order, now."""
        for step in steps:
            self._do(step)

    def submit(self, steps: Sequence[Step], done: Done) -> None:
        """Do `steps` in order in the thread, then call `done` in the loop."""
        job = self._executor.submit(self.perform, steps)
        job.add_done_callback(lambda ended: self._loop.call_soon_threadsafe(done, _error_of(ended)))

    def _do(self, step: Step) -> None:
        match step:
            case Write(name, at, chunks):
                self._write(self._open(name), at, b"".join(chunks))
            case Sync(name):
                os.fdatasync(self._open(name))
            case Create(name, size):
                self._create(name, size)
            case Rename(old, new):
                self._forget(old)
                self._forget(new)
                if (self.path / old).exists():
                    os.rename(self.path / old, self.path / new)
            case Delete(name):
                self._forget(name)
                (self.path / name).unlink(missing_ok=True)
            case SyncDirectory():
                os.fsync(self._directory)

    def _create(self, name: str, size: int) -> None:
        self._forget(name)
        file = os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._keep(name, file)
        for at in range(0, size, len(_ZEROS)):
            self._write(file, at, _ZEROS[: size - at])

    def _write(self, file: int, at: int, octets: bytes) -> None:
        left = memoryview(octets)
        while left:
            written = os.pwrite(file, left, at)
            at += written
            left = left[written:]

    def _open(self, name: str) -> int:
        file = self._files.get(name)
        if file is None:
            file = os.open(self.path / name, os.O_RDWR | os.O_CLOEXEC)
            self._keep(name, file)
        return file

    def _keep(self, name: str, file: int) -> None:
        if len(self._files) >= _OPEN_FILES_MAX:
            self._forget(next(iter(self._files)))
        self._files[name] = file

    def _forget(self, name: str) -> None:
        file = self._files.pop(name, None)
        if file is not None:
            os.close(file)


def _error_of(job: "Future[None]") -> OSError | None:
    error = job.exception()
    if error is None or isinstance(error, OSError):
        return error
    raise error
