"""Writes each log destination in a thread of its own, so that a stopped terminal or a full pipe blocks
neither the broker nor the log file.

Records wait in a bounded queue. Records that do not fit are dropped and counted, and the number is logged
when there is room again.
"""

import logging
import queue
import threading

from warren.limits import LOG_QUEUE_LENGTH_MAX, LOG_STOP_S_MAX

_SAID = "%d lines of the log were dropped: the output was blocked"


class BoundedQueueHandler(logging.Handler):
    """A bounded queue of records for the thread in which `handler` writes them."""

    def __init__(self, records: "queue.Queue[logging.LogRecord | None]", handler: logging.Handler) -> None:
        super().__init__()
        self._records = records
        self._handler = handler
        self._dropped_count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Queue `record` for writing, formatted now, if its level is sufficient and there is room."""
        if record.levelno < self._handler.level:
            return
        record.msg = record.getMessage()
        record.args = None
        try:
            if self._dropped_count and self._records.qsize() < LOG_QUEUE_LENGTH_MAX // 2:
                dropped, self._dropped_count = self._dropped_count, 0
                self._records.put_nowait(_about(dropped))
            self._records.put_nowait(record)
        except queue.Full:
            self._dropped_count += 1


class LogWriter:
    """The writing thread, and the handler that queues records for it."""

    def __init__(self, handler: logging.Handler) -> None:
        self._handler = handler
        self._records: queue.Queue[logging.LogRecord | None] = queue.Queue(LOG_QUEUE_LENGTH_MAX)
        self.waiting = BoundedQueueHandler(self._records, handler)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write the queued records, for a limited time: what is not written by then is dropped."""
        try:
            self._records.put(None, timeout=LOG_STOP_S_MAX)
        except queue.Full:
            return
        self._thread.join(LOG_STOP_S_MAX)
        if not self._thread.is_alive():
            self._handler.close()

    def _write(self) -> None:
        while (record := self._records.get()) is not None:
            self._handler.handle(record)


def _about(dropped: int) -> logging.LogRecord:
    return logging.LogRecord("warren.log", logging.WARNING, "", 0, _SAID, (dropped,), None)
