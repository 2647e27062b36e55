"""A disk in memory that loses power: data that were not synced may be kept, torn, reordered or lost.

A sync that fails is like that of Linux: some of what was written reaches the device, the rest is given up. It
can still be read, until the power is cut, but no later sync writes it, unless its page of the cache changes.
A write that fails has written any beginning.
"""

import errno
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

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

SECTOR = 512
# What the kernel writes again when a part of it changes.
_PAGE_SIZE = 4_096


class File:
    """The synced content of a file, and the writes that are not synced."""

    def __init__(self, size: int) -> None:
        self.synced = bytearray(size)
        self.current = bytearray(size)
        # Whole sectors or parts of them, in the order of writing: (at, bytes).
        self.unsynced: list[tuple[int, bytes]] = []
        # Pages with data that a failed sync has given up.
        self._given_up: set[int] = set()

    def write(self, at: int, data: bytes) -> None:
        """Write `data` from byte `at` on, without a sync."""
        end = at + len(data)
        _write(self.current, at, data)
        for page in range(at // _PAGE_SIZE, -(-end // _PAGE_SIZE) if self._given_up else 0):
            if page in self._given_up:
                self._given_up.discard(page)
                begin = page * _PAGE_SIZE
                self._dirty(begin, bytes(self.current[begin : begin + _PAGE_SIZE]))
        self._dirty(at, data)

    def _dirty(self, at: int, data: bytes) -> None:
        """Add `data` to what the next sync writes."""
        end = at + len(data)
        begins = [at, *range(at - at % SECTOR + SECTOR, end, SECTOR)]
        for begin, behind in pairwise([*begins, end]):
            self.unsynced.append((begin, data[begin - at : behind - at]))

    def sync(self) -> None:
        """Make all writes so far survive a power cut."""
        for at, data in self.unsynced:
            _write(self.synced, at, data)
        self.unsynced = []

    def fail_sync(self, chance: random.Random) -> None:
        """Write any part of what was not synced, and give up the rest, which can be read."""
        for at, data in self.unsynced:
            if chance.random() < 0.5:
                _write(self.synced, at, data)
            else:
                self._given_up.add(at // _PAGE_SIZE)
        self.unsynced = []

    def reread(self) -> None:
        """Return from now on what the device holds, as after the page cache was dropped."""
        self.current = bytearray(self.synced)
        self.unsynced = []
        self._given_up = set()

    def lose_power(self, chance: random.Random) -> None:
        """Apply any part of the unsynced writes, in any order."""
        kept = [piece for piece in self.unsynced if chance.random() < 0.5]
        chance.shuffle(kept)
        for at, data in kept:
            if chance.random() < 0.1:
                data = data[: chance.randrange(len(data) + 1)]
            _write(self.synced, at, data)
        self.reread()


class SimulatedDisk:
    """Performs the steps of a job one by one, under control of the simulation."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.files: dict[str, File] = {}
        # The directory as it would be after a power cut, and its changes since.
        self._synced_names: dict[str, File] = {}
        self._changes: list[Callable[[dict[str, File]], None]] = []
        self._job: list[DiskStep] = []
        self._done: OnDone | None = None
        # The next step of this kind fails with this error number.
        self.fault: tuple[type, int] | None = None
        # If it is not empty, only a step for this file fails.
        self.fault_name = ""
        # True while there is no room: creating a file, or writing beyond the end of one, fails.
        self.is_full = False
        # Reading one of these bytes of a file fails with EIO.
        self.unreadable: dict[str, range] = {}
        self.read_count = 0
        self.syncs = 0

    # --- the port --------------------------------------------------------------------------------

    def names(self) -> Mapping[str, int]:
        return {name: len(file.current) for name, file in self.files.items()}

    def read(self, name: str, at: int, size: int) -> bytes:
        self.read_count += 1
        bad = self.unreadable.get(name, range(0))
        if max(at, bad.start) < min(at + size, bad.stop):
            raise OSError(errno.EIO, "EIO")
        # One copy: a start reads whole segments.
        return bytes(memoryview(self.files[name].current)[at : at + size])

    def perform(self, steps: Sequence[DiskStep]) -> None:
        for step in steps:
            self._do(step)

    def note(self, name: str, at: int, data: bytes) -> None:
        self._do(WriteFile(name, at, [data]))

    def create_beside(self, name: str, size: int, done: OnDone) -> None:
        if self.is_full and name not in self.files:
            done(OSError(errno.ENOSPC, "ENOSPC"))
            return
        file = File(size)
        self._change(lambda names: names.__setitem__(name, file))
        done(None)

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        assert self._done is None, "one job at a time"
        self._job = list(steps)
        self._done = done

    # --- control by the simulation -------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return self._done is not None

    def advance(self, steps: int | None = None) -> None:
        """Perform so many steps of the job, or all; the last one ends it."""
        while self._done is not None and (steps is None or steps > 0):
            steps = None if steps is None else steps - 1
            error: OSError | None = None
            if self._job:
                try:
                    self._do(self._job.pop(0))
                except OSError as failed:
                    error = failed
            if error is not None or not self._job:
                done, self._done = self._done, None
                done(error)

    def die(self) -> None:
        """Kill the process: what it has written is kept, and will be on the disk at some time."""
        self._job, self._done = [], None

    def reread(self) -> None:
        """Drop the page cache: reads return what the device holds."""
        for file in self.files.values():
            file.reread()

    def lose_power(self) -> None:
        """Cut the power, and leave what is on the disk afterwards."""
        self._job, self._done = [], None
        names = dict(self._synced_names)
        for change in self._changes[: self.chance.randrange(len(self._changes) + 1)]:
            change(names)
        self.files = names
        for file in names.values():
            file.lose_power(self.chance)
        self._changes = []
        self._synced_names = dict(names)

    def _do(self, step: DiskStep) -> None:
        if self.fault is not None and self._is_faulty(step, self.fault[0]):
            number, self.fault = self.fault[1], None
            self._do_in_part(step)
            raise OSError(number, errno.errorcode[number])
        if self.is_full and self._needs_room(step):
            raise OSError(errno.ENOSPC, "ENOSPC")
        match step:
            case CreateFile(name, size):
                file = File(size)
                self._change(lambda names: names.__setitem__(name, file))
            case WriteFile(name, at, chunks):
                self.files[name].write(at, b"".join(chunks))
            case SyncFile(name):
                self.files[name].sync()
                self.syncs += 1
            case RenameFile(old, new):
                self._change(lambda names: _rename(names, old, new))
            case DeleteFile(name):
                self._change(lambda names: names.pop(name, None))
            case SyncDirectory():
                self._synced_names = dict(self.files)
                self._changes = []

    def _is_faulty(self, step: DiskStep, kind: type) -> bool:
        return isinstance(step, kind) and self.fault_name in ("", getattr(step, "name", ""))

    def _do_in_part(self, step: DiskStep) -> None:
        """Do what a step may do although it fails."""
        match step:
            case WriteFile(name, at, chunks):
                data = b"".join(chunks)
                self.files[name].write(at, data[: self.chance.randrange(len(data) + 1)])
            case SyncFile(name):
                self.files[name].fail_sync(self.chance)

    def _needs_room(self, step: DiskStep) -> bool:
        match step:
            case CreateFile(name, _):
                return name not in self.files
            case WriteFile(name, at, chunks):
                return at + sum(map(len, list(chunks))) > len(self.files[name].current)
        return False

    def _change(self, change: Callable[[dict[str, File]], object]) -> None:
        change(self.files)
        self._changes.append(change)  # type: ignore[arg-type]


def _write(content: bytearray, at: int, data: bytes) -> None:
    """Write `data` into `content` from byte `at` on, which grows by zeros if that is behind its end."""
    if at > len(content):
        content.extend(bytes(at - len(content)))
    content[at : at + len(data)] = data


def _rename(names: dict[str, File], old: str, new: str) -> None:
    if old in names:
        names[new] = names.pop(old)
