"""What stores and the journal need from above the waterline: commits, futures, mounted disks."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from warren.client.answer import Answer
from warren.flow.credit import PublishCredit
from warren.simulation.disk import SimulatedDisk
from warren.store.disk import DiskStep, OnDone
from warren.store.message_store import MessageStore
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.store.streams.stream_store import StreamStore

# How long settled messages may wait to be written, and how long a full disk is waited for, as on a real node.
_SETTLED_MS = 20
_RETRY_MS = 1_000

After = Callable[[int, Callable[[], None]], None]


class SimulatedStorePort(StorePort):
    """Commits in a turn of its own, retries when the disk was full, and withdraws publish credit."""

    def __init__(
        self,
        later: Callable[[Callable[[int], None]], None],
        after: After,
        on_failed: Callable[[Exception], None],
        *,
        is_transient: bool = False,
    ) -> None:
        self._later = later
        self._after = after
        self._on_failed = on_failed
        self._is_transient = is_transient
        self.store: MessageStore | StreamStore | None = None
        # Of the virtual host, once it is running.
        self.credit: PublishCredit | None = None
        # True while a batch that found no room waits.
        self.is_full = False
        # True when the store is closed or has failed: later events are ignored.
        self.is_over = False
        # True from a call of `commit_due` or `commit_due_later` until the commit.
        self.is_due = False
        self._is_behind = False

    def commit_due(self) -> None:
        """Commit in a later turn."""
        self.is_due = True
        self._later(lambda _: self._commit())

    def commit_due_later(self) -> None:
        """Commit soon."""
        if not self.is_due:
            self.is_due = True
            self._after(_SETTLED_MS, self._commit)

    def failed(self, error: OSError, is_full: bool) -> None:
        """Retry when there may be room, or end the store."""
        if is_full:
            self.is_full = True
            self._after(_RETRY_MS, self._retry)
        else:
            self._fail(error)

    def recovered(self) -> None:
        """There was room."""
        self.is_full = False

    def fell_behind(self) -> None:
        """Hold publishers back."""
        if self.credit is not None and not self._is_behind:
            self._is_behind = True
            self.credit.spend(for_all=self._is_transient)

    def caught_up(self) -> None:
        """Let publishers continue."""
        if self.credit is not None and self._is_behind:
            self._is_behind = False
            self.credit.renew(for_all=self._is_transient)

    def unreadable(self, error: OSError | StoreFileError) -> None:
        """End the store."""
        self._fail(error)

    def _commit(self) -> None:
        self.is_due = False
        if self.store is not None and not self.is_over:
            self.store.commit()

    def _retry(self) -> None:
        if self.store is not None and not self.is_over:
            self.store.retry()

    def _fail(self, error: Exception) -> None:
        if not self.is_over:
            self.is_over = True
            self._on_failed(error)


class JournalFuture(Answer[None]):
    """What a proposal awaits until it is written."""

    __slots__ = ()

    def set_result(self, result: None, /) -> None:
        """Complete the future."""
        self.complete(result)

    def done(self) -> bool:
        """True if it is complete."""
        return self.is_done


Value = TypeVar("Value")


def completed(value: Value) -> Answer[Value]:
    """A future whose result is `value`, where a node would use another thread."""
    answer: Answer[Value] = Answer()
    answer.complete(value)
    return answer


class MountedDisk:
    """A disk as one run of a broker sees it: after `unmount` nothing of that run is written any more."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk: SimulatedDisk = disk
        self._is_mounted = True

    def unmount(self) -> None:
        """Ignore everything that is written from now on."""
        self._is_mounted = False

    def names(self) -> Mapping[str, int]:
        """The names of the files, with their sizes."""
        return self._disk.names()

    def read(self, name: str, at: int, size: int) -> bytes:
        """Up to `size` bytes of `name` from `at` on."""
        return self._disk.read(name, at, size)

    def perform(self, steps: Sequence[DiskStep]) -> None:
        """Perform `steps` at once."""
        if self._is_mounted:
            self._disk.perform(steps)

    def note(self, name: str, at: int, data: bytes) -> None:
        """Write at once, without a sync."""
        if self._is_mounted:
            self._disk.note(name, at, data)

    def create_beside(self, name: str, size: int, done: OnDone) -> None:
        """Create a file at once."""
        if self._is_mounted:
            self._disk.create_beside(name, size, done)

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        """Perform `steps` when the simulation lets the disk advance."""
        if self._is_mounted:
            self._disk.submit(steps, done)
