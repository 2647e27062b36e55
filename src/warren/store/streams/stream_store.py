"""The streams of one virtual host: what was appended to all of them is written in batches (`group_commit`).

A batch syncs each file that it wrote to.
"""

from collections.abc import Callable

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.store.disk import DiskStep
from warren.store.group_commit import GroupCommit
from warren.store.store_port import StorePort
from warren.store.streams.chunk import MessageRun
from warren.store.streams.stream_log import StreamLog, StreamLogDependencies


class StreamStore:
    """The open streams of one virtual host; created by `recovery.open_streams`."""

    __slots__ = ("_commits", "_dirty", "_files", "_in_flight", "logs")

    def __init__(self, files: StreamLogDependencies, port: StorePort, logs: dict[int, StreamLog]) -> None:
        self._files = files
        self._commits = GroupCommit(files.disk, port, self)
        # By the number of the stream.
        self.logs = logs
        # Streams with something to write, and streams that are part of the job in progress.
        self._dirty: list[StreamLog] = []
        self._in_flight: list[StreamLog] = []

    def log(self, number: int) -> StreamLog:
        """The stream with `number`; created if it does not exist."""
        log = self.logs.get(number)
        if log is None:
            log = StreamLog(number, self._files, [])
            self.logs[number] = log
        return log

    def begin(self, log: StreamLog, offset: int) -> None:
        """Write the epoch of `log` to disk before there is a message in it; the first one gets `offset`."""
        if not log.segments:
            log.skip_to(offset)
            log.begin()
            self.mark_dirty(log)

    def append(self, log: StreamLog, message: Message) -> int:
        """Append `message` to `log`; returns its offset."""
        offset = log.append(message)
        self._appended(log, len(message.content))
        return offset

    def _appended(self, log: StreamLog, size: int) -> None:
        self._commits.add(size)
        self.mark_dirty(log)

    def append_as(self, log: StreamLog, message: Message, producer: str, sequence: int) -> bool:
        """Append `message` to `log`; False if `producer` has sent it or a later one before."""
        if log.append_as(message, producer, sequence) is None:
            return False
        self._appended(log, len(message.content))
        return True

    def append_run_as(self, log: StreamLog, run: MessageRun, producer: str, sequence: int) -> int:
        """Append those messages of `run` to `log` that `producer` has not sent before; returns their number.

        The first message of the run has the given `sequence`, the others follow.
        """
        kept = log.append_run_as(run, producer, sequence)
        if kept:
            self._appended(log, run.byte_count)
        return kept

    def store_offset(self, log: StreamLog, reference: str, offset: int) -> None:
        """Store `offset` for the consumer `reference` of `log`."""
        log.store_offset(reference, offset)
        if log.has_work:
            self.mark_dirty(log)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Call `confirmation` with `sequence` when everything appended before is synced."""
        self._commits.confirm(confirmation, sequence)

    def mark_dirty(self, log: StreamLog) -> None:
        """Record that `log` has something to write or to delete."""
        if not log.is_dirty:
            log.is_dirty = True
            self._dirty.append(log)
        self._commits.announce()

    def delete(self, log: StreamLog) -> None:
        """Delete `log` and its files."""
        self.logs.pop(log.number, None)
        log.delete_segments()
        self.mark_dirty(log)

    def abandon(self, log: StreamLog) -> None:
        """Write nothing more of `log`, which is broken: its files stay as they are until the next start."""
        self.logs.pop(log.number, None)
        self._dirty = [each for each in self._dirty if each is not log]
        # Never listed again.
        log.is_dirty = True

    def maintain(self, now: int) -> None:
        """Trim all streams by their retention; called periodically."""
        for log in list(self.logs.values()):
            try:
                self.trim(log, now)
            except Exception as error:
                log.failed(error)

    def trim(self, log: StreamLog, now: int) -> None:
        """Trim `log` by its retention."""
        log.trim(now)
        if log.has_work:
            self.mark_dirty(log)

    def commit(self) -> None:
        """Write what is pending; if a batch is in progress, it is written with the next one."""
        self._commits.commit()

    def retry(self) -> None:
        """Submit the failed batch again, for example when the disk has room again."""
        self._commits.retry()

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write what is pending, then call `on_closed`; it is called after a failure as well."""
        self._commits.close(on_closed)

    @property
    def failure(self) -> OSError | None:
        """The error of the last batch; None if it was written."""
        return self._commits.failure

    @property
    def is_idle(self) -> bool:
        """True if everything appended is synced."""
        return self._commits.is_idle

    # --- as the source of batches ----------------------------------------------------------------

    def has_pending(self) -> bool:
        """True if there is something to write."""
        return len(self._dirty) > 0

    def take_batch(self) -> list[DiskStep]:
        """The steps that write what was appended; what does not fit into its segment is left."""
        dirty, self._dirty = self._dirty, []
        steps: list[DiskStep] = []
        for log in dirty:
            try:
                steps += log.take_batch()
            except Exception as error:
                # Nobody may be told that its messages are written.
                self._commits.refuse_batch()
                log.failed(error)
                continue
            self._in_flight.append(log)
            log.is_dirty = log.has_work
            if log.is_dirty:
                self._dirty.append(log)
        return steps

    def batch_synced(self) -> None:
        """Nothing: publishers are told before the messages become readable."""

    def batch_confirmed(self) -> bool:
        """The messages of the batch become readable."""
        in_flight, self._in_flight = self._in_flight, []
        for log in in_flight:
            try:
                log.written()
            except Exception as error:
                log.failed(error)
        return self.has_pending() or self._commits.has_waiting()
