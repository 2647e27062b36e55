"""The files of one directory, written by a thread, so that the event loop never waits for a disk.

Files are opened relative to the directory's descriptor, so that the directory can be renamed meanwhile.
"""

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from warren.runtime.file_writer import FileJob, FileWriter, WriteEnd, job_of
from warren.runtime.worker_thread import WorkerThread
from warren.store.disk import (
    CreateFile,
    DeleteFile,
    DiskStep,
    OnDone,
    RenameFile,
    SyncDirectory,
    SyncFile,
    WriteFile,
)

try:
    from warren.runtime.mapped_file import MappedFile
except ImportError:  # not compiled
    IS_MAPPING_AVAILABLE = False
else:
    IS_MAPPING_AVAILABLE = True

logger = logging.getLogger("warren.disk")

# What a new file is filled with at once. A piece becomes one folio of the page cache, all of whose pages the
# kernel looks at whenever a part of it is written or synced: see docs/decisions/0500.
_ZEROS = bytes(1 << 18)
# What is synced at once of a file that is made beside jobs: the device has time for their syncs in between.
_SYNCED_SIZE = 1 << 20
_NEW = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
# The number of files kept open for writing, and for reading.
_OPEN_FILES_MAX = 8
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
JobEnded = Callable[[OnDone, OSError | None], None]


class DirectoryDisk:
    """An existing directory; `worker` runs the jobs, one at a time, or `writer` those that it supports.

    The end of a job is passed to `job_ended` in the loop, with the callback and the error: it handles the
    exceptions of the callback. With `is_synced` False nothing is synced, for files that no start reads.
    """

    __slots__ = (
        "_directory", "_done", "_files", "_is_closed", "_is_mappable", "_is_synced", "_is_writing", "_job",
        "_job_ended", "_loop", "_mapped", "_noted", "_on_written", "_read_from", "_steps", "_worker",
        "_writer",
    )  # fmt: skip

    def __init__(
        self,
        path: Path,
        loop: asyncio.AbstractEventLoop,
        worker: WorkerThread,
        *,
        writer: FileWriter | None = None,
        job_ended: JobEnded | None = None,
        is_synced: bool = True,
    ) -> None:
        self._loop = loop
        self._worker = worker
        self._writer = writer
        # True while the writer has a job of this directory; and the callback for when it is done.
        self._is_writing = False
        self._on_written: Callable[[], None] | None = None
        self._job_ended = job_ended or _call
        # The job of the writer, the steps that it was made of, and the callback for its end.
        self._job: FileJob | None = None
        self._steps: Sequence[DiskStep] = ()
        self._done: OnDone | None = None
        self._is_synced = is_synced
        self._files: dict[str, int] = {}
        # Descriptors for reading. Only the reader adds and evicts entries; the thread of the jobs removes
        # those of deleted files, which are not read any more. Whichever removes an entry closes it.
        self._read_from: dict[str, int] = {}
        # Descriptors for `note`, separate from the others because a job may be in progress.
        self._noted: dict[str, int] = {}
        # The same files as shared memory, where the file system has it.
        self._mapped: dict[str, MappedFile] = {}
        self._is_mappable = IS_MAPPING_AVAILABLE
        self._is_closed = False
        self._directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    async def close_after_jobs(self) -> None:
        """Close the files when the submitted jobs have ended."""
        closed = self._loop.create_future()
        # Closed immediately: `note` runs in the loop and must not use a descriptor number that was reused.
        self._is_closed = True
        for name in [*self._noted]:
            self._forget_noted(name)
        # A method: a function in here would refer to itself when it is compiled, and keep all of this alive.
        close = partial(self._close_and_tell, closed)
        if self._is_writing:
            self._on_written = partial(self._worker.do, close)
        else:
            self._worker.do(close)
        await closed

    def _close_and_tell(self, closed: asyncio.Future[None]) -> None:
        """Close the files, in the thread of the jobs, and complete `closed` in the loop."""
        try:
            self.close()
        finally:
            self._loop.call_soon_threadsafe(closed.set_result, None)

    def close(self) -> None:
        """Close the files; no job may be in progress."""
        for name in [*self._files, *self._read_from, *self._noted]:
            self._forget(name)
        os.close(self._directory)

    def names(self) -> Mapping[str, int]:
        """The names of the files, with their sizes in bytes."""
        return {entry.name: entry.stat().st_size for entry in os.scandir(self._directory) if entry.is_file()}

    def read(self, name: str, at: int, size: int) -> bytes:
        """Up to `size` bytes of `name` from `at` on. OSError if it cannot be read."""
        file = self._read_from.get(name)
        if file is None:
            file = self._open_to_read(name)
        data = os.pread(file, size, at)
        while len(data) < size:
            more = os.pread(file, size - len(data), at + len(data))
            if not more:
                break
            data += more
        return data

    def perform(self, steps: Sequence[DiskStep]) -> None:
        """Perform `steps` in order, before returning."""
        for step in steps:
            try:
                self._do(step)
            except OSError as error:
                # The failed call had only a descriptor, so the error does not name the file.
                if error.filename is None and not isinstance(step, SyncDirectory):
                    error.filename = step.old if isinstance(step, RenameFile) else step.name
                raise

    def note(self, name: str, at: int, data: bytes) -> None:
        """Write `data` into `name` at once: few bytes, which the kernel accepts without waiting.

        It is stored through shared memory, or written where the file grows or its memory cannot be shared.
        """
        mapped = self._mapped.get(name)
        if mapped is None or at + len(data) > mapped.size:
            mapped = self._map(name, at + len(data))
        if mapped is not None:
            mapped.write(at, data)
        else:
            self._write_note(name, at, data)

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        """Perform `steps` in order in a thread, then call `done` in the loop."""
        writer = self._writer
        if writer is not None:
            # No job is in progress, so no thread uses these files.
            job = job_of(steps, self._directory, self._files, self._is_synced)
            if job is not None:
                self._is_writing = True
                self._job = job
                self._steps = steps
                self._done = done
                writer.do(job, self._written)
                return
        self._worker.do(partial(self._perform_and_tell, steps, done))

    def create_beside(self, name: str, size: int, done: OnDone) -> None:
        """Create and sync `name` in the thread of the worker, then call `done` in the loop."""
        self._worker.do(partial(self._create_and_tell, name, size, done))

    def drop_page_cache(self) -> None:
        """Read files from the device from now on, not from the page cache.

        After a failed sync the kernel considers the lost pages written: the cached content of a file is not
        what a power cut would leave.
        """
        for name in self.names():
            file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)

    def _perform_and_tell(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        """Perform one job, in the thread."""
        error: OSError | None = None
        try:
            self.perform(steps)
        except OSError as failure:
            error = failure
        except Exception as unexpected:
            # A job must always report an end, even after an unexpected exception.
            name = type(unexpected).__name__
            logger.exception("unexpected %s in a job of the disk", name)
            error = OSError(errno.EIO, f"unexpected {name}: {unexpected}")
        self._loop.call_soon_threadsafe(self._job_ended, done, error)

    def _create_and_tell(self, name: str, size: int, done: OnDone) -> None:
        """Create one file, in the thread; no descriptor of a job is touched, as the writer may use it."""
        error: OSError | None = None
        try:
            file = os.open(name, _NEW, 0o600, dir_fd=self._directory)
            try:
                for at in range(0, size, _SYNCED_SIZE):
                    self._fill(file, at, min(at + _SYNCED_SIZE, size))
                    if self._is_synced:
                        os.fdatasync(file)
            finally:
                os.close(file)
        except OSError as failure:
            error = failure
            with suppress(OSError):
                os.unlink(name, dir_fd=self._directory)
        self._loop.call_soon_threadsafe(self._job_ended, done, error)

    def _written(self, end: WriteEnd) -> None:
        """Handle the end of a job of the writer."""
        number, failed, opened = end
        job, steps, done = self._job, self._steps, self._done
        assert job is not None
        assert done is not None
        self._job = None
        self._steps = ()
        self._done = None
        self._is_writing = False
        for name in job.replaced:
            self._forget(name)
        for name, file in zip(job.opened, opened, strict=False):
            if name:
                self._keep(name, file)
            else:
                os.close(file)
        if number in _NO_DESCRIPTOR:
            # The other thread closes some of those that are open. Steps can be repeated.
            self._worker.do(partial(self._perform_and_tell, steps, done))
        else:
            error = OSError(number, os.strerror(number), job.names[failed] or None) if number else None
            self._job_ended(done, error)
        if self._on_written is not None and not self._is_writing:
            self._on_written()

    def _do(self, step: DiskStep) -> None:
        match step:
            case WriteFile(name, at, chunks):
                self._write(self._open(name), at, b"".join(chunks))
            case SyncFile() | SyncDirectory() if not self._is_synced:
                pass
            case SyncFile(name):
                os.fdatasync(self._open(name))
            case CreateFile(name, size):
                self._create(name, size)
            case RenameFile(old, new):
                self._forget(old)
                self._forget(new)
                with suppress(FileNotFoundError):
                    os.rename(old, new, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            case DeleteFile(name):
                self._forget(name)
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=self._directory)
            case SyncDirectory():
                os.fsync(self._directory)

    def _create(self, name: str, size: int) -> None:
        self._forget(name)
        file = self._opened(name, _NEW, self._files)
        self._keep(name, file)
        self._fill(file, 0, size)

    def _fill(self, file: int, first: int, end: int) -> None:
        """Write zero bytes from `first` up to `end`."""
        for at in range(first, end, len(_ZEROS)):
            self._write(file, at, _ZEROS[: end - at])

    def _write(self, file: int, at: int, data: bytes) -> None:
        left = memoryview(data)
        while left:
            written = os.pwrite(file, left, at)
            if not written:
                raise OSError(errno.EIO, "nothing was written")
            at += written
            left = left[written:]

    def _map(self, name: str, end: int) -> "MappedFile | None":
        """Map `name` as it is; None if it is smaller than `end`, or cannot be mapped."""
        if not self._is_mappable:
            return None
        file = self._noted.get(name)
        if file is None:
            file = self._open_to_note(name)
        size = os.fstat(file).st_size
        if end > size:
            return None
        try:
            mapped = self._mapped[name] = MappedFile(file, size)
        except OSError:
            self._is_mappable = False
            return None
        return mapped

    def _write_note(self, name: str, at: int, data: bytes) -> None:
        file = self._noted.get(name)
        if file is None:
            file = self._open_to_note(name)
        written = os.pwrite(file, data, at)
        if written < len(data):
            self._write(file, at + written, data[written:])

    def _open(self, name: str) -> int:
        file = self._files.get(name)
        if file is None:
            file = self._opened(name, os.O_RDWR | os.O_CLOEXEC, self._files)
            self._keep(name, file)
        return file

    def _open_to_read(self, name: str) -> int:
        file = self._opened(name, os.O_RDONLY | os.O_CLOEXEC, self._read_from)
        while len(self._read_from) >= _OPEN_FILES_MAX:
            _close(self._read_from, next(iter(self._read_from)))
        self._read_from[name] = file
        return file

    def _open_to_note(self, name: str) -> int:
        if self._is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), name)
        file = self._noted[name] = self._opened(name, os.O_RDWR | os.O_CLOEXEC, self._read_from)
        return file

    def _opened(self, name: str, flags: int, others: dict[str, int]) -> int:
        """A descriptor of `name`; if none is available, after closing those of `others`."""
        try:
            return os.open(name, flags, 0o600, dir_fd=self._directory)
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR or not others:
                raise
        for other in list(others):
            _close(others, other)
        return os.open(name, flags, 0o600, dir_fd=self._directory)

    def _keep(self, name: str, file: int) -> None:
        if len(self._files) >= _OPEN_FILES_MAX:
            _close(self._files, next(iter(self._files)))
        self._files[name] = file

    def _forget(self, name: str) -> None:
        _close(self._files, name)
        _close(self._read_from, name)
        self._forget_noted(name)

    def _forget_noted(self, name: str) -> None:
        _close(self._noted, name)
        mapped = self._mapped.pop(name, None)
        if mapped is not None:
            mapped.close()


def _call(done: OnDone, error: OSError | None) -> None:
    done(error)


def _close(files: dict[str, int], name: str) -> None:
    """Close `name`, if it is still in `files`."""
    file = files.pop(name, None)
    if file is not None:
        os.close(file)
