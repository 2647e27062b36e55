"""Performs the jobs of disks in a thread that does not need the interpreter lock.

A Python thread takes the interpreter lock from the event loop around each system call of a job, between a
write and its sync and before the callback, which took longer than the calls themselves. This thread exists in
the compiled version only; otherwise `WorkerThread` does these jobs.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

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


class FileJob:
    """Steps in one directory, as the thread performs them, and what they do to its descriptors."""

    __slots__ = ("names", "opened", "replaced", "steps")

    def __init__(self) -> None:
        self.steps: list[tuple[object, ...]] = []
        # The file that each step is about; "" for the directory.
        self.names: list[str] = []
        # The files that were given another name or removed: descriptors of before are not theirs.
        self.replaced: list[str] = []
        # The files for which a descriptor is opened; "" if the file is replaced afterwards.
        self.opened: list[str] = []

    def add(self, name: str, step: tuple[object, ...]) -> None:
        """Add `step`, which is about the file `name`."""
        self.names.append(name)
        self.steps.append(step)


def job_of(
    steps: Sequence[DiskStep], directory: int, files: dict[str, int], is_synced: bool
) -> FileJob | None:
    """Translate `steps` in the open `directory`, of which `files` has descriptors; None if it cannot be done.

    Creating a file cannot: it writes many zero bytes, and meanwhile no other directory could be synced.
    """
    job = FileJob()
    known = dict(files)
    for step in steps:
        # Nearly all jobs are one write and its sync: `match` would look up the classes again for each step.
        if isinstance(step, WriteFile):
            if not isinstance(step.chunks, list):
                return None
            file = _file_of(job, known, directory, step.name)
            job.add(step.name, (_WRITE, file, step.at, step.chunks))
        elif isinstance(step, SyncFile):
            if is_synced:
                job.add(step.name, (_SYNC, _file_of(job, known, directory, step.name)))
        elif isinstance(step, SyncDirectory):
            if is_synced:
                job.add("", (_SYNC_NAMES, directory))
        elif isinstance(step, RenameFile):
            job.add(step.old, (_RENAME, directory, step.old, step.new))
            _replace(job, known, step.old)
            _replace(job, known, step.new)
        elif isinstance(step, DeleteFile):
            job.add(step.name, (_DELETE, directory, step.name))
            _replace(job, known, step.name)
        else:
            return None
    return job


def _file_of(job: FileJob, known: dict[str, int], directory: int, name: str) -> int:
    """The descriptor of `name`, or what stands for it in `write_thread.c` if the job opens it."""
    file = known.get(name)
    if file is None:
        job.add(name, (_OPEN, directory, name))
        file = known[name] = ~len(job.opened)
        job.opened.append(name)
    return file


def _replace(job: FileJob, known: dict[str, int], name: str) -> None:
    file = known.pop(name, 0)
    if file < 0:
        job.opened[~file] = ""
    job.replaced.append(name)


class FileWriter:
    """Does jobs one after the other until `close`; belongs to `loop`."""

    __slots__ = ("_jobs", "_loop", "_thread")

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
        done = self._jobs.popleft()[1]
        if self._jobs:
            following = self._jobs[0][0]
            self._thread.submit(following.steps)
        done(result)
