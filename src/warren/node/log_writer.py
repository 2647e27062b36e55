"""Writes each place of the log in a thread of its own: a terminal that was stopped, or a full pipe, holds up
neither the broker nor the log file.

What is to be written waits in a queue that is bounded. What does not fit is dropped and counted, and said
when there is room again.
"""

import logging
import queue
import threading

from warren.limits import LOG_QUEUE_LENGTH_MAX, LOG_STOP_S_MAX

_SAID = "%d lines of the log were dropped, since nobody took them"


class BoundedQueueHandler(logging.Handler):
    """Where records wait for the thread that has `handler` write them."""

    def __init__(self, records: "queue.Queue[logging.LogRecord | None]", handler: logging.Handler) -> None:
        super().__init__()
        self._records = records
        self._handler = handler
        self._dropped_count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Have `record` written, with its text as of now, if its level is enough and not too much waits."""
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
    """The thread, and the handler that writes for it."""

    def __init__(self, handler: logging.Handler) -> None:
        self._handler = handler
        self._records: queue.Queue[logging.LogRecord | None] = queue.Queue(LOG_QUEUE_LENGTH_MAX)
        self.waiting = BoundedQueueHandler(self._records, handler)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for a while: who does not take it by then does not get it."""
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
