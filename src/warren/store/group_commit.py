"""Group commit: one job at a time writes and syncs what was collected meanwhile.

    add, confirm ─▶ announced ─ commit ─▶ batch ─ job ─▶ synced ─▶ confirmed, in the order of `confirm`
                                            ▲      │
                                            └──────┘ retry after an error: the same steps, before any other

What arrives during a job shares the next one: the higher the load, the more messages share each fdatasync.
What a batch contains, and what follows from it, is decided by its `BatchSource`.

Invariants: a confirm follows the sync of the batch with its message, and of all earlier batches. After an
error nothing else is written and nothing is confirmed until the failed batch was written. Nothing is written
after `close` has called back.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from warren.limits import STORE_PENDING_SIZE_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.store.disk import TRANSIENT_ERRNOS, CreateFile, Disk, DiskStep, RenameFile, SyncFile, WriteFile
from warren.store.store_port import StorePort

_PENDING_SIZE_MAX = STORE_PENDING_SIZE_MAX


class BatchSource(Protocol):
    """A store, as its group commit sees it."""

    def has_pending(self) -> bool:
        """True if there is something to write."""

    def take_batch(self) -> list[DiskStep]:
        """The steps that write what is pending; none if nothing has to be written.

        What asks for a confirm meanwhile is confirmed with this batch.
        While `has_pending` is still true, a part is left for the next batch, and confirms wait for that one.
        """

    def batch_synced(self) -> None:
        """The steps of the batch are done; its confirms follow."""

    def batch_confirmed(self) -> bool:
        """The batch has ended, with or without steps. True to commit the next one in the same turn."""


class GroupCommit:
    """The batches of one store, their confirms, and the memory of what waits to be written."""

    __slots__ = (
        "_asked_first", "_asked_last", "_asking", "_batch_waiting", "_disk", "_is_announced",
        "_is_busy", "_is_closed", "_is_refused", "_on_closed", "_pending_size", "_port", "_source",
        "_steps", "_waiting", "failure", "is_announced_for_later",
    )  # fmt: skip

    def __init__(self, disk: Disk, port: StorePort, source: BatchSource) -> None:
        self._disk = disk
        self._port = port
        self._source = source
        # True while the port knows that there is something to commit, at once or later.
        self._is_announced = False
        self.is_announced_for_later = False
        # Approximate memory of what is pending, in bytes.
        self._pending_size = 0
        # The job in progress, or the one that has failed.
        self._is_busy = False
        self._steps: list[DiskStep] = []
        # The error of the last job: nothing is confirmed until the same job succeeds.
        self.failure: OSError | None = None
        # Listeners that wait for the next batch, and those that wait for the batch in progress, with the
        # first and last sequence number. The numbers of the latest listener can still grow.
        self._waiting: list[tuple[ConfirmListener, int, int]] = []
        self._batch_waiting: list[tuple[ConfirmListener, int, int]] = []
        self._asking: ConfirmListener | None = None
        self._asked_first = 0
        self._asked_last = 0
        # True if who waits is refused when the batch is taken.
        self._is_refused = False
        self._on_closed: Callable[[], None] | None = None
        # True when nothing more is written.
        self._is_closed = False

    @property
    def is_closing(self) -> bool:
        """True from `close` on."""
        return self._is_closed or self._on_closed is not None

    def has_waiting(self) -> bool:
        """True if a confirm waits for the next batch."""
        return self._asking is not None or len(self._waiting) > 0

    def add(self, size: int) -> None:
        """Announce data that takes `size` bytes of memory; beyond the limit the port is told, once."""
        if not self._is_announced:
            self.announce()
        before = self._pending_size
        self._pending_size = before + size
        if before <= _PENDING_SIZE_MAX < before + size:
            self._port.fell_behind()

    def announce(self) -> None:
        """Have a batch committed at the end of the turn."""
        if not self._is_announced:
            self._is_announced = True
            self._port.commit_due()

    def announce_later(self) -> None:
        """Have a batch committed after a delay, since no client waits for it."""
        if not self._is_announced and not self.is_announced_for_later:
            self.is_announced_for_later = True
            self._port.commit_due_later()

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Call `confirmation` with `sequence` when everything added before is synced."""
        if confirmation is self._asking and sequence == self._asked_last:
            return
        confirmation.expect(sequence)
        if confirmation is self._asking and sequence == self._asked_last + 1:
            self._asked_last = sequence
            return
        self._end_asking()
        self._asking = confirmation
        self._asked_first = self._asked_last = sequence
        if not self._is_announced:
            self.announce()

    def commit(self) -> None:
        """Write what is pending; if a batch is in progress, it is written with the next one."""
        self._is_announced = False
        self.is_announced_for_later = False
        if self._is_busy or self._is_closed or self.failure is not None:
            return
        # What is added while the batch is taken belongs to it, or is announced by `batch_confirmed`.
        self._is_announced = True
        steps = self._source.take_batch()
        self._is_announced = False
        if self._pending_size > _PENDING_SIZE_MAX:
            self._port.caught_up()
        self._pending_size = 0
        if self._is_refused:
            self._refuse_waiting()
        if not self._source.has_pending():
            self._end_asking()
            self._batch_waiting, self._waiting = self._waiting, []
        if steps:
            self._submit(steps)
        else:
            self._confirm()
            self._source.batch_confirmed()

    def retry(self) -> None:
        """Submit the failed batch again, for example when the disk has room again.

        Files that it has created whole already keep what is in them: the files behind them may have records.
        Files that it has renamed have what was written before.
        """
        if self._steps and not self._is_busy:
            self._submit(_left_of(self._steps, self._disk.names()))

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write what is pending, then call `on_closed`; it is called after a failure as well."""
        self._on_closed = on_closed
        if not self._is_busy:
            self.commit()
        self._end_if_done()

    def refuse_batch(self) -> None:
        """Refuse all who wait for a confirm, since a part of the batch that is being taken is lost.

        It is not known whose part that is; what is written all the same may be published again.
        """
        self._is_refused = True

    @property
    def is_idle(self) -> bool:
        """True if everything added is synced."""
        return not (self._is_busy or self._steps or self.has_waiting() or self._source.has_pending())

    # --- private -------------------------------------------------------------------------------

    def _submit(self, steps: list[DiskStep]) -> None:
        self._is_busy = True
        self._steps = steps
        self._disk.submit(steps, self._done)

    def _done(self, error: OSError | None) -> None:
        """Handle the end of a job: confirm its messages, or report the failure."""
        self._is_busy = False
        if error is not None:
            self.failure = error
            self._port.failed(error, is_full=error.errno in TRANSIENT_ERRNOS)
            self._end_if_done()
            return
        self._steps = []
        self._source.batch_synced()
        if self.failure is not None:
            self.failure = None
            self._port.recovered()
        self._confirm()
        if self._source.batch_confirmed() or self._on_closed is not None:
            self.commit()
        self._end_if_done()

    def _confirm(self) -> None:
        waiting, self._batch_waiting = self._batch_waiting, []
        for confirmation, first, last in waiting:
            try:
                confirmation.done(first, last)
            except Exception as error:
                self._listener_failed(confirmation, error)

    def _refuse_waiting(self) -> None:
        self._is_refused = False
        self._end_asking()
        waiting, self._waiting = self._waiting, []
        for confirmation, first, last in waiting:
            try:
                for sequence in range(first, last + 1):
                    confirmation.refused(sequence)
            except Exception as error:
                self._listener_failed(confirmation, error)

    def _listener_failed(self, confirmation: ConfirmListener, error: Exception) -> None:
        """End `confirmation`, which has raised `error`: others are not kept waiting for that."""
        confirmation.failed(error)
        self._port.listener_failed(confirmation, error)

    def _end_asking(self) -> None:
        """Close the current range of sequence numbers; the next call of `confirm` starts a new one."""
        if self._asking is not None:
            self._waiting.append((self._asking, self._asked_first, self._asked_last))
            self._asking = None

    def _end_if_done(self) -> None:
        if self._on_closed is not None and (self.is_idle or self.failure is not None):
            on_closed, self._on_closed = self._on_closed, None
            self._is_closed = True
            on_closed()


def _left_of(steps: list[DiskStep], sizes: Mapping[str, int]) -> list[DiskStep]:
    """The `steps` but those that create a file that is there, or fill one that they have renamed since.

    `sizes` are those of all files, by name.
    """
    renamed = {
        step.old
        for step in steps
        if isinstance(step, RenameFile) and step.old not in sizes and step.new in sizes
    }
    return [
        step
        for step in steps
        if not (isinstance(step, CreateFile) and sizes.get(step.name) == step.size)
        and not (isinstance(step, WriteFile | SyncFile) and step.name in renamed)
    ]
