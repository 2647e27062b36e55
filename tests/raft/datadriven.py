"""Reader of data-driven tests: directives, their input, and what each of them must print.

    # A comment.
    command argument key=value key=(a,b)
    input
    ----
    expected output

The output ends at the first blank line, or, if it begins with a second line `----`, at two such lines.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MARK = "----"
# A value in parentheses may contain spaces.
TOKEN = re.compile(r"[^\s=()]+(?:=\([^)]*\)|=[^\s]*)?")


@dataclass
class Directive:
    """One command of a file, and what it must print."""

    line: int
    command: str
    arguments: list[tuple[str, list[str]]]
    input: str
    expected: str

    @property
    def options(self) -> dict[str, str]:
        """The arguments with exactly one value."""
        return {key: values[0] for key, values in self.arguments if len(values) == 1}

    @property
    def names(self) -> list[str]:
        """The arguments without a value."""
        return [key for key, values in self.arguments if not values]

    def values(self, key: str) -> list[str] | None:
        """Return the values of an argument, None without it."""
        return dict(self.arguments).get(key)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return whether an argument is true; without a value it is."""
        found = self.values(key)
        return default if found is None else found in ([], ["true"])


@dataclass
class Outcome:
    """What a directive printed, beside what was expected."""

    directive: Directive
    printed: str

    @property
    def is_expected(self) -> bool:
        return self.printed == self.directive.expected

    def report(self, path: Path) -> str:
        directive = self.directive
        return (
            f"{path.name}:{directive.line}: {directive.command}\n"
            f"expected:\n{directive.expected}printed:\n{self.printed}"
        )


@dataclass
class Script:
    """The directives of a file."""

    path: Path
    directives: list[Directive] = field(default_factory=list)

    def run(self, execute: Callable[[Directive], str]) -> None:
        """Execute each directive; fail at the first that prints something else than expected."""
        for directive in self.directives:
            printed = execute(directive)
            outcome = Outcome(directive, printed if not printed or printed.endswith("\n") else printed + "\n")
            assert outcome.is_expected, outcome.report(self.path)


def read(path: Path) -> Script:
    """Return the directives of a file."""
    return Script(path, list(_directives(path.read_text(encoding="utf-8").split("\n"))))


def _directives(lines: list[str]) -> Iterator[Directive]:
    number = 0
    while number < len(lines):
        if not lines[number].strip() or lines[number].startswith("#"):
            number += 1
            continue
        begin = number
        while number < len(lines) and lines[number] != MARK:
            number += 1
        assert number < len(lines), f"line {begin + 1}: no {MARK} follows"
        head, *given = lines[begin:number]
        number += 1
        is_long = number < len(lines) and lines[number] == MARK
        end = [MARK, MARK] if is_long else [""]
        number += is_long
        first = number
        while number < len(lines) and lines[number : number + len(end)] != end:
            number += 1
        yield parse(head, begin + 1, "\n".join(given), "".join(line + "\n" for line in lines[first:number]))
        number += len(end)


def parse(text: str, line: int, given: str = "", expected: str = "") -> Directive:
    """Return the command of one line."""
    command, *arguments = TOKEN.findall(text)
    return Directive(line, command, [_argument(token) for token in arguments], given, expected)


def _argument(token: str) -> tuple[str, list[str]]:
    key, has_value, value = token.partition("=")
    if not has_value:
        return key, []
    if value.startswith("("):
        return key, [part.strip() for part in value[1:-1].split(",")] if value != "()" else []
    return key, [value]
