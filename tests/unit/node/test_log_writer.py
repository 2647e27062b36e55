"""Who does not take the log holds nobody up, and is told what was dropped."""

import logging
import threading

from warren.limits import LOG_QUEUE_LENGTH_MAX
from warren.node.log_writer import LogWriter


class Stopped(logging.Handler):
    """A terminal that takes nothing until it is let go on."""

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


def test_what_does_not_fit_is_dropped_and_said() -> None:
    terminal = Stopped()
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
    assert terminal.lines[-2:] == ["3 lines of the log were dropped, since nobody took them", "last"]
    assert len(terminal.lines) == LOG_QUEUE_LENGTH_MAX + 3


def test_a_stop_writes_what_waits() -> None:
    terminal = Stopped()
    terminal.goes_on.set()
    writer = LogWriter(terminal)
    for number in range(100):
        writer.waiting.handle(record("line %d", number))
    writer.stop()
    assert terminal.lines == [f"line {number}" for number in range(100)]


def test_the_text_is_that_of_the_moment() -> None:
    terminal = Stopped()
    writer = LogWriter(terminal)
    found = ["before"]
    writer.waiting.handle(record("%s", found))
    found[0] = "after"
    terminal.goes_on.set()
    writer.stop()
    assert terminal.lines == ["['before']"]


def test_what_is_below_the_level_of_the_handler_does_not_wait_for_it() -> None:
    terminal = Stopped()
    terminal.setLevel(logging.ERROR)
    writer = LogWriter(terminal)
    for _ in range(LOG_QUEUE_LENGTH_MAX + 3):
        writer.waiting.handle(record("a"))
    writer.waiting.handle(record("b", level=logging.ERROR))
    terminal.goes_on.set()
    writer.stop()
    assert terminal.lines == ["b"]
