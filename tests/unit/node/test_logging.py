"""Log lines."""

import logging
import re
from datetime import datetime
from pathlib import Path

import pytest

from warren.node.config import Config
from warren.node.config_file import ConfigError, Entry
from warren.node.logging import Lines, start


def line(message: str, *arguments: object) -> str:
    return Lines().format(logging.LogRecord("warren.node", logging.INFO, "", 0, message, arguments, None))


def test_a_line_has_time_level_origin_and_message() -> None:
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
    assert re.fullmatch(stamp + r" \[info\] <warren\.node> ready on 5672", line("ready on %d", 5672))


def test_the_stamp_is_that_of_the_record() -> None:
    lines = Lines()
    record = logging.LogRecord("warren.node", logging.INFO, "", 0, "x", (), None)
    for when in ("2026-11-21 03:04:05.678", "2026-11-21 03:04:05.004", "2026-11-21 03:04:06.999"):
        record.created = datetime.fromisoformat(when + "+00:00").timestamp() + 0.0001
        written = datetime.fromisoformat(lines.format(record).partition(" [")[0])
        assert written == datetime.fromisoformat(when + "+00:00")


def test_a_client_cannot_write_lines_of_its_own() -> None:
    written = line("user %s", "a\n2026 [info] fake\x1b[31m")
    assert "\n" not in written
    assert "\x1b" not in written


def test_the_file_gets_what_its_level_lets_through(tmp_path: Path) -> None:
    entries = {
        "log.console": "false",
        "log.file": "warren.log",
        "log.dir": str(tmp_path),
        "log.file.level": "error",
    }
    start(Config([Entry(key, value, "x") for key, value in entries.items()]))
    try:
        logging.getLogger("warren.x").warning("no")
        logging.getLogger("warren.x").error("yes")
        assert (tmp_path / "warren.log").read_text().endswith("[error] <warren.x> yes\n")
        assert "no" not in (tmp_path / "warren.log").read_text()
    finally:
        logging.getLogger("warren").handlers.clear()
        logging.getLogger("warren").propagate = True


def test_a_log_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    entries = [Entry("log.file", str(tmp_path / "file" / "x.log"), "x"), Entry("log.console", "false", "x")]
    try:
        with pytest.raises(ConfigError, match=r"cannot write the log file '.*x\.log'"):
            start(Config(entries))
    finally:
        logging.getLogger("warren").propagate = True
