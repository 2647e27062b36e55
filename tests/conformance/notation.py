r"""How transcripts write values: what can be sent, and patterns for what cannot be known beforehand.

"text"  "\xff"  "n"*255      strings; \x is one byte, * repeats
5  true  void                in a field of a method: as the method says; in a table: I, t, V
5l  5b  5T  1.5d  D(2,314)   in a table: the type byte after the number
x"00ff"  z"00"               type byte x (or any other), then these bytes
[1, "a"]  {"key": 1}         arrays and tables, in the order of the wire
*                            anything
~"amq.gen-*"                 a string that a shell pattern matches
$name  $name~"amq.gen-*"     the first time: anything (that matches), kept; afterwards: the same again
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.conformance.tables import Typed, encode_text

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?P<code>[bBsuIilLfdT]?)(?![\w"])
    | (?P<decimal>D\(\d+,\d+\))
    | (?P<octets>[a-zA-Z]?)"(?P<text>(?:[^"\\]|\\.)*)"(?:\*(?P<times>\d+))?
    | (?P<word>[A-Za-z_][\w.-]*)
    | (?P<mark>[][{}:,=*~]|\$\w+)
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}


@dataclass(frozen=True)
class Pattern:
    """A value that is not known beforehand: a shell pattern, and a name under which it is stored."""

    name: str = ""
    glob: str = ""


class LineReader:
    """A parser of one line of notation."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0

    def is_finished(self) -> bool:
        """Whether only blanks remain."""
        return not self._line[self._at :].strip()

    def word(self) -> str:
        """The next bare word, such as the name of a method or a field."""
        return str(self._next("word"))

    def rest(self) -> str:
        """The unread rest."""
        return self._line[self._at :]

    def fields(self) -> dict[str, Any]:
        """`name=value` pairs up to the end of the line."""
        values = {}
        while not self.is_finished():
            name = self.word()
            self._expect("=")
            values[name] = self.value()
        return values

    def value(self, *, in_table: bool = False) -> Any:
        """One value or pattern."""
        found = _TOKEN.match(self._line, self._at)
        if found is None:
            raise ValueError(f"no value at {self._line[self._at :]!r}")
        self._at = found.end()
        if found["number"] is not None:
            return _number(found["number"], found["code"], in_table)
        if found["decimal"]:
            scale, digits = found["decimal"][2:-1].split(",")
            return Typed("D", (int(scale), int(digits)))
        if found["text"] is not None:
            if found["octets"]:
                return Typed(found["octets"], bytes.fromhex(found["text"]))
            return parse_text(found["text"]) * int(found["times"] or 1)
        if found["word"]:
            return {"true": True, "false": False, "void": None}[found["word"]]
        return self._compound(found["mark"])

    def _compound(self, mark: str) -> Any:
        if mark == "[":
            members = []
            while not self._skip("]"):
                members.append(self.value(in_table=True))
                self._skip(",")
            return members
        if mark == "{":
            table = {}
            while not self._skip("}"):
                key = self.value()
                self._expect(":")
                table[key] = self.value(in_table=True)
                self._skip(",")
            return table
        if mark == "*":
            return Pattern()
        if mark == "~":
            return Pattern(glob=self.value())
        if mark.startswith("$"):
            return Pattern(name=mark[1:], glob=self.value() if self._skip("~") else "")
        raise ValueError(f"{mark} is no value")

    def _next(self, group: str) -> Any:
        found = _TOKEN.match(self._line, self._at)
        if found is None or not found[group]:
            raise ValueError(f"a {group} is expected at {self._line[self._at :]!r}")
        self._at = found.end()
        return found[group]

    def _skip(self, mark: str) -> bool:
        found = _TOKEN.match(self._line, self._at)
        if found is None or found["mark"] != mark:
            return False
        self._at = found.end()
        return True

    def _expect(self, mark: str) -> None:
        if not self._skip(mark):
            raise ValueError(f"{mark} is expected at {self._line[self._at :]!r}")


def matches(expected: Any, actual: Any, kept: dict[str, Any]) -> bool:
    """Whether `actual` matches the notation; values of named patterns are stored in `kept`."""
    if isinstance(expected, Pattern):
        if expected.name in kept:
            return bool(kept[expected.name] == actual)
        if expected.glob and not (isinstance(actual, str) and fnmatchcase(actual, expected.glob)):
            return False
        if expected.name:
            kept[expected.name] = actual
        return True
    if isinstance(expected, dict) and isinstance(actual, dict):
        # The order of the fields of a table does not matter.
        return set(expected) == set(actual) and all(
            matches(value, actual[key], kept) for key, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(
            matches(one, other, kept) for one, other in zip(expected, actual, strict=True)
        )
    return type(expected) is type(actual) and bool(expected == actual)


def fill(value: Any, kept: dict[str, Any]) -> Any:
    """`value` with the values of its named patterns; a pattern without a value cannot be sent."""
    if isinstance(value, Pattern):
        return kept[value.name]
    if isinstance(value, dict):
        return {key: fill(member, kept) for key, member in value.items()}
    if isinstance(value, list):
        return [fill(member, kept) for member in value]
    return value


def write(value: Any, *, in_table: bool = False) -> str:
    """The notation of a value."""
    if isinstance(value, Pattern):
        glob = "~" + write(value.glob) if value.glob else ""
        return f"${value.name}{glob}" if value.name else glob or "*"
    if value is None or isinstance(value, bool):
        return {None: "void", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return write_text(value)
    if isinstance(value, list):
        return "[" + ", ".join(write(member, in_table=True) for member in value) + "]"
    if isinstance(value, dict):
        members = (f"{write(key)}: {write(member, in_table=True)}" for key, member in value.items())
        return "{" + ", ".join(members) + "}"
    return _write_typed(value)


def parse_text(text: str) -> str:
    """The string between two quotation marks."""
    data = bytearray()
    at = 0
    for found in _ESCAPE.finditer(text):
        data += encode_text(text[at : found.start()])
        escape = found[1]
        data += bytes.fromhex(escape[1:]) if escape[0] == "x" else encode_text(_ESCAPES[escape])
        at = found.end()
    data += encode_text(text[at:])
    return data.decode("utf-8", "surrogateescape")


def write_text(text: str) -> str:
    """A string in quotation marks; a long run of one character as a product."""
    if len(text) > 40 and text == text[0] * len(text):
        return f"{write_text(text[0])}*{len(text)}"
    written = []
    for character in text:
        if character in '"\\':
            written.append("\\" + character)
        elif character == "\n":
            written.append("\\n")
        elif character.isprintable():
            written.append(character)
        else:
            written.extend(f"\\x{octet:02x}" for octet in encode_text(character))
    return '"' + "".join(written) + '"'


def _number(digits: str, code: str, in_table: bool) -> Any:
    number: Any = float(digits) if "." in digits or "e" in digits or code in ("f", "d") else int(digits)
    if not in_table and not code:
        return number
    return Typed(code or ("d" if isinstance(number, float) else "I"), number)


def _write_typed(typed: Typed) -> str:
    if typed.code == "D":
        return f"D({typed.value[0]},{typed.value[1]})"
    if isinstance(typed.value, bytes):
        return f'{typed.code}"{typed.value.hex()}"'
    return f"{typed.value}{'' if typed.code == 'I' else typed.code}"
