"""Log lines as text and as JSON."""

import json
import logging
import re
import sys
from datetime import datetime

from warren.node.log_formatters import JsonFormatter, TextFormatter


def record(message: str, *arguments: object, **fields: object) -> logging.LogRecord:
    found = logging.LogRecord("warren.node", logging.INFO, "", 0, message, arguments, None)
    if fields:
        found.fields = fields
    return found


def line(message: str, *arguments: object) -> str:
    return TextFormatter().format(record(message, *arguments))


def test_a_line_contains_time_level_origin_and_message() -> None:
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
    assert re.fullmatch(stamp + r" \[info\] <warren\.node> ready on 5672", line("ready on %d", 5672))


def test_the_time_is_that_of_the_record() -> None:
    lines = TextFormatter()
    found = record("x")
    for when in ("2026-11-21 03:04:05.678", "2026-11-21 03:04:05.004", "2026-11-21 03:04:06.999"):
        found.created = datetime.fromisoformat(when + "+00:00").timestamp() + 0.0001
        written = datetime.fromisoformat(lines.format(found).partition(" [")[0])
        assert written == datetime.fromisoformat(when + "+00:00")


def test_line_ends_in_a_message_are_escaped() -> None:
    written = line("user %s", "a\n2026 [info] fake\x1b[31m")
    assert "\n" not in written
    assert "\x1b" not in written


def test_a_json_line_has_the_fields_of_rabbitmq_and_of_its_caller() -> None:
    written = JsonFormatter().format(record("user %s", "a\nb", user="a\nb", vhost="/", level="no"))
    assert "\n" not in written
    found = json.loads(written)
    assert datetime.fromisoformat(found.pop("time")).tzinfo is not None
    assert found == {
        "level": "info",
        "domain": "warren.node",
        "msg": "user a\nb",
        "user": "a\nb",
        "vhost": "/",
    }


def test_an_exception_is_a_field() -> None:
    try:
        raise ValueError("x")
    except ValueError:
        found = record("y")
        found.exc_info = sys.exc_info()
    assert "ValueError: x" in json.loads(JsonFormatter().format(found))["exception"]
    assert TextFormatter().format(found).endswith("ValueError: x")
