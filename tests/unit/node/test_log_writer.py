"""A log destination that does not accept lines blocks nothing; dropped lines are counted in the log."""

import logging
import threading

from warren.limits import LOG_QUEUE_LENGTH_MAX
from warren.node.log_writer import LogWriter


class BlockedHandler(logging.Handler):
    """A log handler that blocks until `goes_on` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()
        self.is_asked = threading.Event()
        self.lines: list[str] = []
        self.has_all = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.is_asked.set()
        self.goes_on.wait()
        self.lines.append(record.getMessage())
        if len(self.lines) == LOG_QUEUE_LENGTH_MAX + 1:
            self.has_all.set()


def record(text: str, *arguments: object, level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord("warren.x", level, "", 0, text, arguments, None)


def test_lines_beyond_the_queue_are_dropped_and_counted() -> None:
    terminal = BlockedHandler()
    writer = LogWriter(terminal)
    writer.waiting.handle(record("first"))
    assert terminal.is_asked.wait(10)
    for number in range(LOG_QUEUE_LENGTH_MAX + 3):
        writer.waiting.handle(record("line %d", number))
    terminal.goes_on.set()
    assert terminal.has_all.wait(60)
    writer.waiting.handle(record("last"))
    writer.stop()
    assert terminal.lines[0] == "first"
    assert terminal.lines[-2:] == ["3 lines of the log were dropped: the output was blocked", "last"]
    assert len(terminal.lines) == LOG_QUEUE_LENGTH_MAX + 3


def test_stopping_writes_the_waiting_lines() -> None:
    terminal = BlockedHandler()
    terminal.goes_on.set()
    writer = LogWriter(terminal)
    for number in range(100):
        writer.waiting.handle(record("line %d", number))
    writer.stop()
    assert terminal.lines == [f"line {number}" for number in range(100)]


def test_a_line_is_formatted_when_it_is_logged() -> None:
    terminal = BlockedHandler()
    writer = LogWriter(terminal)
    found = ["before"]
    writer.waiting.handle(record("%s", found))
    found[0] = "after"
    terminal.goes_on.set()
    writer.stop()
    assert terminal.lines == ["['before']"]


def test_lines_below_the_level_of_the_handler_are_not_queued() -> None:
    terminal = BlockedHandler()
    terminal.setLevel(logging.ERROR)
    writer = LogWriter(terminal)
    for _ in range(LOG_QUEUE_LENGTH_MAX + 3):
        writer.waiting.handle(record("a"))
    writer.waiting.handle(record("b", level=logging.ERROR))
    terminal.goes_on.set()
    writer.stop()
    assert terminal.lines == ["b"]
