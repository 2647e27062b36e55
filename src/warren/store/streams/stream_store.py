"""The streams of one virtual host: one job at a time writes and syncs what was appended to all of them.

A job syncs each file that it wrote to; what is appended meanwhile shares the next one (group commit).
"""

from collections.abc import Callable

from warren.limits import STORE_PENDING_SIZE_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.store.disk import TRANSIENT_ERRNOS, DiskStep
from warren.store.message_store import StorePort
from warren.store.streams.chunk import MessageRun
from warren.store.streams.stream_log import StreamLog, StreamLogDependencies


class StreamStore:
    """The open streams of one virtual host; `recovery.open_streams` makes it."""

    __slots__ = (
        "_batch_waiting", "_dirty", "_files", "_in_flight", "_is_announced", "_is_busy", "_is_closed",
        "_on_closed", "_pending_size", "_port", "_retried", "_waiting", "failure", "logs",
    )  # fmt: skip

    def __init__(self, files: StreamLogDependencies, port: StorePort, logs: dict[int, StreamLog]) -> None:
        self._files = files
        self._port = port
        # By the number of the stream.
        self.logs = logs
        # Those with something to write, and those of which something is being written.
        self._dirty: list[StreamLog] = []
        self._in_flight: list[StreamLog] = []
        self._pending_size = 0
        self._is_announced = False
        self._is_busy = False
        self._is_closed = False
        self._on_closed: Callable[[], None] | None = None
        self.failure: OSError | None = None
        self._retried: list[DiskStep] = []
        # Who waits for the next batch, and who for the one that is being written, and with which numbers.
        self._waiting: list[tuple[ConfirmListener, int, int]] = []
        self._batch_waiting: list[tuple[ConfirmListener, int, int]] = []

    @property
    def is_idle(self) -> bool:
        """True if everything that was appended is written."""
        return not (self._is_busy or self._dirty or self._waiting or self._retried)

    def log(self, number: int) -> StreamLog:
        """The stream with `number`, which is new if nobody has asked for it before."""
        log = self.logs.get(number)
        if log is None:
            log = StreamLog(number, self._files, [])
            self.logs[number] = log
        return log

    def begin(self, log: StreamLog) -> None:
        """`log` is to be there, with its epoch, before there is a message in it."""
        if not log.segments:
            log.begin()
            self.mark_dirty(log)

    def append(self, log: StreamLog, message: Message) -> int:
        """Keep `message` in `log`; answers its offset."""
        offset = log.append(message)
        self._appended(log, len(message.content))
        return offset

    def _appended(self, log: StreamLog, size: int) -> None:
        before = self._pending_size
        self._pending_size = before + size
        if before <= STORE_PENDING_SIZE_MAX < self._pending_size:
            self._port.fell_behind()
        self.mark_dirty(log)

    def append_as(self, log: StreamLog, message: Message, producer: str, sequence: int) -> bool:
        """Keep `message` in `log`, unless it came from `producer` before; whether it did not."""
        if log.append_as(message, producer, sequence) is None:
            return False
        self._appended(log, len(message.content))
        return True

    def append_run_as(self, log: StreamLog, run: MessageRun, producer: str, sequence: int) -> int:
        """The same for many, of which the first has the number `sequence`; answers how many are kept."""
        kept = log.append_run_as(run, producer, sequence)
        if kept:
            self._appended(log, run.octets)
        return kept

    def store_offset(self, log: StreamLog, reference: str, offset: int) -> None:
        """Know how far the consumer `reference` of `log` has come."""
        log.store_offset(reference, offset)
        if log.has_work:
            self.mark_dirty(log)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Say to `confirmation` that `sequence` is done when all that was appended before is safe."""
        if self._waiting:
            asking, first, last = self._waiting[-1]
            if asking is confirmation and sequence == last:
                return
            if asking is confirmation and sequence == last + 1:
                confirmation.expect(sequence)
                self._waiting[-1] = (asking, first, sequence)
                return
        confirmation.expect(sequence)
        self._waiting.append((confirmation, sequence, sequence))

    def mark_dirty(self, log: StreamLog) -> None:
        """`log` has something to write, or to delete."""
        if not log.is_dirty:
            log.is_dirty = True
            self._dirty.append(log)
        if not self._is_announced:
            self._is_announced = True
            self._port.commit_due()

    def delete(self, log: StreamLog) -> None:
        """`log` is gone."""
        self.logs.pop(log.number, None)
        log.delete_segments()
        self.mark_dirty(log)

    def maintain(self, now: int) -> None:
        """Give up what retention does not want: ask for it now and then."""
        for log in list(self.logs.values()):
            self.trim(log, now)

    def trim(self, log: StreamLog, now: int) -> None:
        """Give up what the retention of `log` does not want."""
        log.trim(now)
        if log.has_work:
            self.mark_dirty(log)

    def commit(self) -> None:
        """Write what is pending, unless a batch is being written: then it goes with the next."""
        self._is_announced = False
        if self._is_busy or self._is_closed or self.failure is not None:
            return
        self._in_flight, self._dirty = self._dirty, []
        steps: list[DiskStep] = []
        for log in self._in_flight:
            steps += log.take_batch()
            log.is_dirty = log.has_work
            if log.is_dirty:
                self._dirty.append(log)
        if self._pending_size > STORE_PENDING_SIZE_MAX:
            self._port.caught_up()
        self._pending_size = 0
        if not self._dirty:
            # Else some of what they wait for is not in this batch.
            self._batch_waiting, self._waiting = self._waiting, []
        if steps:
            self._submit(steps)
        else:
            self._confirm()

    def retry(self) -> None:
        """Try the batch that failed once more, as when the disk has room again."""
        if self._retried and not self._is_busy:
            self._submit(self._retried)

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write what is pending, then call `on_closed`; also after a failure."""
        self._on_closed = on_closed
        if not self._is_busy:
            self.commit()
        self._end_if_done()

    # --- private -------------------------------------------------------------------------------

    def _submit(self, steps: list[DiskStep]) -> None:
        self._is_busy = True
        self._retried = steps
        self._files.disk.submit(steps, self._done)

    def _done(self, error: OSError | None) -> None:
        """The job has ended."""
        self._is_busy = False
        if error is not None:
            self.failure = error
            self._port.failed(error, is_full=error.errno in TRANSIENT_ERRNOS)
            self._end_if_done()
            return
        self._retried = []
        if self.failure is not None:
            self.failure = None
            self._port.recovered()
        self._confirm()
        in_flight, self._in_flight = self._in_flight, []
        for log in in_flight:
            log.written()
        if self._dirty or self._waiting:
            self.commit()
        self._end_if_done()

    def _confirm(self) -> None:
        told, self._batch_waiting = self._batch_waiting, []
        for confirmation, first, last in told:
            confirmation.done(first, last)

    def _end_if_done(self) -> None:
        is_idle = not (self._is_busy or self._dirty or self._waiting)
        if self._on_closed is not None and (is_idle or self.failure is not None):
            on_closed, self._on_closed = self._on_closed, None
            self._is_closed = True
            on_closed()
