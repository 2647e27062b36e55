"""Performs the jobs of disks in a thread that does not need the interpreter lock.

A Python thread takes the interpreter lock from the event loop around each system call of a job, between a
write and its sync and before the callback, which took longer than the calls themselves. This thread exists in
the compiled version only; otherwise `WorkerThread` does these jobs.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from warren.store.disk import DeleteFile, DiskStep, RenameFile, SyncDirectory, SyncFile, WriteFile

try:
    from warren.runtime.write_thread import WriteThread
except ImportError:  # not compiled
    IS_AVAILABLE = False
else:
    IS_AVAILABLE = True

# The errno or 0, the place of the failed step, and the descriptors that were opened.
WriteEnd = tuple[int, int, tuple[int, ...]]
OnWritten = Callable[[WriteEnd], None]

# The kinds of steps of `write_thread.c`.
_OPEN, _WRITE, _SYNC, _SYNC_NAMES, _RENAME, _DELETE = range(6)


class FileJob(Struct):
    """Steps in one directory, as the thread performs them, and what they do to its descriptors."""

    steps: list[tuple[object, ...]] = []
    # The file that each step is about; "" for the directory.
    names: list[str] = []
    # The files that were given another name or removed: descriptors of before are not theirs.
    replaced: list[str] = []
    # The files for which a descriptor is opened; "" if the file is replaced afterwards.
    opened: list[str] = []


def job_of(
    steps: Sequence[DiskStep], directory: int, files: Mapping[str, int], *, is_synced: bool
) -> FileJob | None:
    """Translate `steps` in the open `directory`, of which `files` has descriptors; None if it cannot be done.

    Creating a file cannot: it writes many zero bytes, and meanwhile no other directory could be synced.
    """
    job = FileJob()
    known = dict(files)
    for step in steps:
        match step:
            case WriteFile(name, at, list(chunks)):
                file = _file_of(job, known, directory, name)
                _add(job, name, _WRITE, file, at, chunks)
            case SyncFile() | SyncDirectory() if not is_synced:
                pass
            case SyncFile(name):
                _add(job, name, _SYNC, _file_of(job, known, directory, name))
            case SyncDirectory():
                _add(job, "", _SYNC_NAMES, directory)
            case RenameFile(old, new):
                _add(job, old, _RENAME, directory, old, new)
                _replace(job, known, old, new)
            case DeleteFile(name):
                _add(job, name, _DELETE, directory, name)
                _replace(job, known, name)
            case _:
                return None
    return job


def _add(job: FileJob, name: str, *step: object) -> None:
    job.names.append(name)
    job.steps.append(step)


def _file_of(job: FileJob, known: dict[str, int], directory: int, name: str) -> int:
    """The descriptor of `name`, or what stands for it in `write_thread.c` if the job opens it."""
    file = known.get(name)
    if file is None:
        _add(job, name, _OPEN, directory, name)
        file = known[name] = ~len(job.opened)
        job.opened.append(name)
    return file


def _replace(job: FileJob, known: dict[str, int], *names: str) -> None:
    for name in names:
        file = known.pop(name, 0)
        if file < 0:
            job.opened[~file] = ""
    job.replaced += names


class FileWriter:
    """Does jobs one after the other until `close`; belongs to `loop`."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = WriteThread(name)
        # The first of them is in progress.
        self._jobs: deque[tuple[FileJob, OnWritten]] = deque()
        loop.add_reader(self._thread.fileno(), self._tell)

    def do(self, job: FileJob, done: OnWritten) -> None:
        """Do `job` after all earlier ones, then call `done`.

        The descriptors that were opened are its own from then on: as many as `job.opened` has, fewer after an
        error.
        """
        self._jobs.append((job, done))
        if len(self._jobs) == 1:
            self._thread.submit(job.steps)

    def close(self) -> None:
        """End the thread after the job in progress; its `done` is not called."""
        self._loop.remove_reader(self._thread.fileno())
        self._thread.close()

    def _tell(self) -> None:
        result = self._thread.result()
        if result is None:
            return
        _, done = self._jobs.popleft()
        if self._jobs:
            self._thread.submit(self._jobs[0][0].steps)
        done(result)
