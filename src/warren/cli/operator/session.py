"""The context in which a command runs: the broker, and the output format."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from warren.cli.operator.management_client import ManagementClient, Row
from warren.cli.operator.rabbitmq_output import rabbitmq_lines
from warren.cli.operator.text import aligned, cell_text

Arguments = dict[str, Any]
# Minimum interval between lines of progress, so that short commands print none.
_PROGRESS_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The format in which responses are printed."""

    formatter: str = "table"
    is_quiet: bool = False
    has_headers: bool = True
    # True if the output is that of rabbitmqctl.
    is_rabbitmq: bool = False


class Session:
    """The session of one command with one broker."""

    def __init__(self, api: ManagementClient, style: Style) -> None:
        self.api = api
        self._style = style
        self._printed_s = time.monotonic()
        # True once rabbitmqctl's sentence about a change was printed.
        self._is_announced = False
        self._announcement = ""

    @property
    def is_json(self) -> bool:
        """True if the output is for programs."""
        return self._style.formatter == "json"

    def say(self, text: str) -> None:
        """Print a line about what was done, unless the output is for programs."""
        if not self._is_announced:
            self._echo(text)

    @property
    def is_rabbitmq(self) -> bool:
        """True if the output is that of rabbitmqctl."""
        return self._style.is_rabbitmq

    def begin(self, text: str) -> None:
        """Print the line with which rabbitmqctl says what it does, where it does so."""
        if self._prints_sentences:
            for line in text.splitlines():
                self.say(line)

    @property
    def _prints_sentences(self) -> bool:
        return self._style.is_rabbitmq and self._style.formatter in ("table", "pretty_table")

    def announce(self, sentence: str) -> None:
        """Keep rabbitmqctl's sentence about a change for `told`; `say` prints nothing more then."""
        if sentence:
            self._announcement = sentence
            self._is_announced = True
            self.api.once_answered = self.told

    def told(self) -> None:
        """Print the announced sentence, once: with the first response of the node, if there is one."""
        sentence, self._announcement = self._announcement, ""
        if sentence and self._prints_sentences:
            self._echo(sentence)

    def end(self, sentence: str) -> None:
        """Print what rabbitmqctl says when a change that was announced has succeeded."""
        if sentence:
            self._echo(sentence)

    def _echo(self, text: str) -> None:
        if not self._style.is_quiet and not self.is_json:
            click.echo(cell_text(text))

    def note(self, text: str) -> None:
        """Print a line to standard error."""
        if not self._style.is_quiet:
            click.echo(f"warren: {cell_text(text)}", err=True)

    def progress(self, count: int, total: int) -> None:
        """Print the progress of a long command."""
        now_s = time.monotonic()
        if now_s - self._printed_s >= _PROGRESS_S:
            self._printed_s = now_s
            self.note(f"{count} of {total}")

    def print_lines(self, lines: Sequence[str]) -> None:
        """Print the result of a command of rabbitmqctl, which only --silent suppresses."""
        if self._style.has_headers:
            _write(map(cell_text, lines))

    def print_rows(self, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table; `names` are its columns."""
        if self._style.is_rabbitmq or self._style.formatter in ("csv", "pretty_table"):
            _write(rabbitmq_lines(self._style.formatter, names, rows, has_headers=self._style.has_headers))
            return
        if self.is_json:
            self.print_json([dict(zip(names, row, strict=True)) for row in rows])
            return
        lines = [list(names)] if self._style.has_headers else []
        lines += [[cell_text(value) for value in row] for row in rows]
        if self._style.formatter == "tsv":
            _write("\t".join(line) for line in lines)
        else:
            _write(aligned(lines))

    def print_facts(self, facts: Mapping[str, object]) -> None:
        """Print one object, one line for each field."""
        if self.is_json:
            self.print_json(facts)
        else:
            _write(aligned([[name, cell_text(value)] for name, value in facts.items()]))

    def print_json_line(self, value: object) -> None:
        """Print `value` as one line of JSON, as rabbitmqctl prints limits."""
        _write([json.dumps(value, separators=(",", ":"))])

    def print_json(self, value: object) -> None:
        """Print `value` as JSON; in ASCII, since names may contain control characters of terminals."""
        # The json module has a fast encoder for ASCII only, which does not indent.
        _write([msgspec.json.format(json.dumps(value), indent=2)])


def value_at(row: Row, path: str) -> object:
    """Return the value at `path` in `row`, whose dots separate nested fields; None if it is absent."""
    value: object = row
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _write(lines: Any) -> None:
    sys.stdout.writelines(line + "\n" for line in lines)
