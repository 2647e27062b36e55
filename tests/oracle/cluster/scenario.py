"""Scenarios: text files with what clients and operators do to a cluster, and what it answers.

A file is one story: its sections follow one another in the same cluster, with the same connections. A section
begins with `== ` and the sentence that it proves.

    C2> 1 queue.declare queue="q"        a client sends; `connect node="b"` chooses the node
    S2> 1 queue.declare-ok …             what comes next on that channel, as in conformance transcripts
    N> kill b                            what happens to nodes; see `node_actions.py`
    H> a GET /api/queues/%2F/q           a request to the HTTP API of a node, with a JSON body if it has one
    H> a FIELDS /api/queues/%2F/q        the names of the fields in the answer
    H> a METRICS erlang_vm_dist          the names, with labels, of metrics that begin with that
    $> a forget_cluster_node b@localhost a command of an operator
    A> 200                               the status of the answer, and its JSON or lines behind `|`
    | {"state": "down"}

In an answer `*` within a string or a line stands for anything, `"...": "*"` for further fields, and a last
line or entry `...` for further ones. The lines of a command that lists something are sorted. GET, FIELDS and
METRICS are repeated until the answer is that of the file, and so is a passive declaration until its counts
are. `A>` and `S>` without an answer are filled in by `--record`; `S> ? 12` waits until nothing has come for
that many seconds.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADING = "== "
FURTHER = "..."
_STEP = re.compile(r"(?P<who>[CSNHA$])(?P<connection>\d*)>\s*(?P<text>.*)")


@dataclass
class Action:
    """One step: a line with the lines behind `|` that belong to it."""

    who: str
    connection: int
    text: str
    rest: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, line: str) -> Action | None:
        """The step that a line begins; None if it begins none."""
        found = _STEP.fullmatch(line)
        return found and cls(found["who"], int(found["connection"] or 1), found["text"])

    def written(self) -> list[str]:
        """The lines of it in a file."""
        number = self.connection if self.connection > 1 else ""
        return [f"{self.who}{number}> {self.text}".rstrip(), *(f"| {line}".rstrip() for line in self.rest)]


@dataclass
class Section:
    """A sentence and the steps that prove it; `comments` are the other lines before the first step."""

    title: str
    comments: list[str] = field(default_factory=list)
    steps: list[Action] = field(default_factory=list)

    def written(self) -> list[str]:
        """The lines of it in a file."""
        return [
            HEADING + self.title,
            *self.comments,
            *(line for step in self.steps for line in step.written()),
        ]


@dataclass
class Scenario:
    """The sections of a file, below its introduction."""

    path: Path
    introduction: str
    sections: list[Section]

    @classmethod
    def read(cls, path: Path) -> Scenario:
        """Parse a file. Raises ValueError for a line that is no step."""
        introduction, *parts = re.split(rf"^{HEADING}", path.read_text(), flags=re.MULTILINE)
        return cls(path, introduction, [section_of(path, part.splitlines()) for part in parts])

    def write(self) -> None:
        """Replace the file by what is here."""
        parts = ["\n".join(section.written()) + "\n" for section in self.sections]
        self.path.write_text(self.introduction + "\n".join(parts))


def section_of(path: Path, lines: list[str]) -> Section:
    section = Section(lines[0])
    for line in lines[1:]:
        step = Action.parse(line)
        if step:
            section.steps.append(step)
        elif line.startswith("|") and section.steps:
            section.steps[-1].rest.append(line[2:])
        elif line.startswith("#") and not section.steps:
            section.comments.append(line)
        elif line:
            raise ValueError(f"{path.name}: {line!r} is no step")
    return section


def agrees(expected: Any, found: Any) -> bool:
    """Whether an answer is the one of the file, in which `*` stands for anything."""
    if expected == "*":
        return True
    if isinstance(expected, str) and isinstance(found, str):
        pattern = ".*".join(re.escape(part) for part in expected.split("*"))
        return re.fullmatch(pattern, found, re.DOTALL) is not None
    if isinstance(expected, dict) and isinstance(found, dict):
        named = {key: value for key, value in expected.items() if key != FURTHER}
        is_complete = FURTHER in expected or named.keys() == found.keys()
        return is_complete and all(key in found and agrees(value, found[key]) for key, value in named.items())
    if isinstance(expected, list) and isinstance(found, list):
        if expected[-1:] == [FURTHER]:
            expected, found = expected[:-1], found[: len(expected) - 1]
        return len(expected) == len(found) and all(map(agrees, expected, found))
    return type(expected) is type(found) and bool(expected == found)


def lines_of(found: Any) -> list[str]:
    """The lines behind `|` of an answer: those of a command, or JSON."""
    if found is None:
        return []
    if isinstance(found, list) and all(isinstance(line, str) for line in found):
        return found
    if isinstance(found, list):
        inner = ",\n".join(" " + json.dumps(entry, sort_keys=True) for entry in found)
        return f"[\n{inner}\n]".splitlines()
    return json.dumps(found, sort_keys=True).splitlines()


def read_answer(lines: list[str], found: Any) -> Any:
    """What a file says is the answer: JSON, unless the answer consists of lines."""
    if isinstance(found, list) and all(isinstance(line, str) for line in found) and lines != ["[]"]:
        return lines
    return json.loads("\n".join(lines)) if lines else None
