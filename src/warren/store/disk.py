"""Port: the files of one directory, as a store sees them.

Reading waits, writing does not: a store hands over a job, a list of steps that are done in order by somebody
else, and is called back when all are done or one has failed. A directory has one job at a time, so whatever
is asked for meanwhile shares the next one, and its one fdatasync (group commit).

A step is durable only after a later `SyncFile` of its file; that a file was created or removed, only
after `SyncDirectory`. The simulated disk takes away everything else in a power cut.
"""

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

# What says that there is no room now, on the disk or for one more open file: the same will do later.
TRANSIENT_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


@dataclass(frozen=True, slots=True)
class CreateFile:
    """Make the file `name` of `size` octets, all zero: overwriting them later is cheaper than appending."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write `chunks` behind one another into `name`, from octet `at` on; asked for when it is done."""

    name: str
    at: int
    chunks: Iterable[bytes]


@dataclass(frozen=True, slots=True)
class SyncFile:
    """Have the contents of `name` survive a power cut (fdatasync)."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameFile:
    """Give the file `old` the name `new`, replacing what had it."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Remove the file `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class SyncDirectory:
    """Have what was made, renamed and removed survive a power cut."""


DiskStep = CreateFile | WriteFile | SyncFile | RenameFile | DeleteFile | SyncDirectory
# Called with None when all steps are done, or with what went wrong.
OnDone = Callable[[OSError | None], None]


class Disk(Protocol):
    """One directory. Names are the store's own, never a user's."""

    def names(self) -> Mapping[str, int]:
        """Its files, and their sizes in octets."""

    def read(self, name: str, at: int, size: int) -> bytes:
        """Up to `size` octets of `name` from `at` on; fewer at its end. OSError when it cannot be read."""

    def perform(self, steps: Sequence[DiskStep]) -> None:
        """Do `steps` in order now, as when a store is opened. OSError for the one that failed."""

    def note(self, name: str, at: int, octets: bytes) -> None:
        """Write `octets` into `name` from octet `at` on, at once and without a sync.

        Also while a job is under way, unless one makes, renames or deletes `name`. OSError when that fails,
        which harms nothing else.
        """

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        """Do `steps` in order, then call `done`. After a failed one the rest is not done.

        Not before `done` was called for the job before. A job that failed may be submitted again: what was
        done already is done again, and renaming or deleting what is gone already is no error.
        """
