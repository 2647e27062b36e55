"""Port: the files of one directory, as a store uses them.

Reading blocks, writing does not: a store submits a job, a list of steps that another thread performs in
order, and is called back when all are done or one has failed. A directory has one job at a time, so requests
that arrive meanwhile share the next job and its fdatasync (group commit).

A write is durable only after a later `SyncFile` of its file; creating, renaming and deleting files only
after `SyncDirectory`. The simulated disk loses everything else in a power cut.
"""

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

# Errors because of a lack of space or file descriptors: the same operation may succeed later.
TRANSIENT_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


class CreateFile(Struct, frozen=True):
    """Create the file `name` of `size` zero bytes: overwriting them later is cheaper than appending."""

    name: str
    size: int


class WriteFile(Struct, frozen=True):
    """Write `chunks`, one after the other, into `name` from byte `at` on.

    They are iterated during the step.
    """

    name: str
    at: int
    chunks: Iterable[bytes]


class SyncFile(Struct, frozen=True):
    """Make the contents of `name` survive a power cut (fdatasync)."""

    name: str


class RenameFile(Struct, frozen=True):
    """Rename the file `old` to `new`, replacing an existing file."""

    old: str
    new: str


class DeleteFile(Struct, frozen=True):
    """Remove the file `name`."""

    name: str


class SyncDirectory(Struct, frozen=True):
    """Make created, renamed and deleted files survive a power cut."""


DiskStep = CreateFile | WriteFile | SyncFile | RenameFile | DeleteFile | SyncDirectory
# Called with None when all steps are done, or with the error.
OnDone = Callable[[OSError | None], None]


class Disk(Protocol):
    """The files of one directory. Names are chosen by the store, never by a user."""

    def names(self) -> Mapping[str, int]:
        """The names of the files, with their sizes in bytes."""

    def read(self, name: str, at: int, size: int) -> bytes:
        """Up to `size` bytes of `name` from `at` on, fewer at the end of the file; OSError if unreadable."""

    def perform(self, steps: Sequence[DiskStep]) -> None:
        """Perform `steps` in order, before returning; used when a store is opened. OSError if one fails."""

    def note(self, name: str, at: int, data: bytes) -> None:
        """Write `data` into `name` from byte `at` on, immediately and without a sync.

        Allowed while a job is in progress, unless that job creates, renames or deletes `name`. Raises OSError
        if it fails; other files are not affected.
        """

    def create_beside(self, name: str, size: int, done: OnDone) -> None:
        """Create the file `name` of `size` zero bytes and sync them, beside any job; then call `done`.

        No job uses `name` before that. After an error the file is not there. The name is durable only after a
        `SyncDirectory`.
        """

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        """Perform `steps` in order, then call `done`. After a failed step the rest is skipped.

        Must not be called before `done` was called for the previous job. A failed job can be submitted again:
        steps are repeatable, and renaming or deleting a file that is gone already is not an error.
        """
