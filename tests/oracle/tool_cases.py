"""What RabbitMQ's tools answer, recorded: commands in files of several sections.

A section begins with `== ` and what it is about. Its lines are

    + rabbitmqctl add_vhost v      a command before the one in question, whose answer is not compared
    < text                         a line of standard input
    $ rabbitmqctl delete_vhost     the command in question
    rabbitmq> 64                   its exit status; of one version: `3.10.8> 64`, `4.3.6> 65`
    | text                         a line of its standard output
    ! text                         a line of its standard error
    warren> 70: the reason         what Warren answers instead, and why
    - rabbitmqctl delete_vhost v   a command afterwards

Values that cannot be equal are replaced (`normalised`), and what follows the first line of a usage or of the
diagnostics of a node that does not answer is left out: it is prose, which Warren has in words of its own.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

VERSIONS = ("3.10.8", "4.3.6")
BOTH, WARREN = "rabbitmq", "warren"
HEADING = "== "
_ANSWER = re.compile(r"(rabbitmq|warren|\d+\.\d+\.\d+)> (\d+)(?:: (.+))?")
_COLOUR = re.compile(r"\x1b\[\d*m")
_REPLACED = (
    (re.compile(r"(--script-name [\w-]+ )"), ""),
    (re.compile(r"(/usr/sbin/|/usr/lib/rabbitmq/bin/|/usr/lib/rabbitmq/lib/\S+/escript/)"), ""),
    (re.compile(r"\d\d:\d\d:\d\d\.\d+ "), "TIME "),
    # Which listeners a node has is not in question.
    (re.compile(r"(?<=following ports: ).*"), "..."),
    (re.compile(r"(?<=following protocols: ).*"), "..."),
)
# An exception of the tool itself.
_CRASH = re.compile(r"\*\* [:({].*", re.DOTALL)
# The lines after which nothing is compared.
_CUTS = (
    "Usage", "Error: unable to perform an operation on node", "Failed to connect and authenticate to ",
)  # fmt: skip
# Fields of JSON that are lists of listeners.
_LISTENERS = ("listeners", "ports", "protocols")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool did: its exit status, and the lines of its output and its errors."""

    status: int
    lines: tuple[str, ...]


@dataclass(slots=True)
class Case:
    """A section: `answers` are those of the versions of RabbitMQ or of both, and Warren's own."""

    title: str
    command: str = ""
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    reason: str = ""

    @property
    def theirs(self) -> dict[str, Answer]:
        """The answers of RabbitMQ by version."""
        both = self.answers.get(BOTH)
        if both is not None:
            return dict.fromkeys(VERSIONS, both)
        return {version: self.answers[version] for version in VERSIONS if version in self.answers}

    def record(self, who: str, answer: Answer) -> None:
        """Keep what `who` has answered."""
        found = self.theirs | {who: answer}
        own = {WARREN: self.answers[WARREN]} if WARREN in self.answers else {}
        same = set(VERSIONS) <= found.keys() and len({found[version] for version in VERSIONS}) == 1
        self.answers = ({BOTH: answer} if same else found) | own

    def text(self) -> str:
        """The section as it is in the file."""
        lines = [HEADING + self.title]
        lines += [f"+ {command}" for command in self.before]
        lines += [f"< {line}" for line in self.typed]
        lines.append(f"$ {self.command}")
        for who in (BOTH, *VERSIONS, WARREN):
            if who in self.answers:
                answer = self.answers[who]
                reason = f": {self.reason}" if who == WARREN else ""
                lines += [f"{who}> {answer.status}{reason}", *answer.lines]
        lines += [f"- {command}" for command in self.after]
        return "\n".join(lines) + "\n"


def read(path: Path) -> tuple[str, list[Case]]:
    """The comment at the beginning of a file, and its sections."""
    head, *parts = re.split(rf"^{HEADING}", path.read_text(), flags=re.MULTILINE)
    return head, [_parsed(part) for part in parts]


def write(path: Path, head: str, cases: list[Case]) -> None:
    """Write a file of sections."""
    path.write_text(head + "\n".join(case.text() for case in cases))


def words_of(command: str) -> list[str]:
    """The tool and its arguments."""
    return shlex.split(command)


def normalised(status: int, output: str, errors: str, node: str) -> Answer:
    """An answer as it is compared, with `NODE` for the name of the node."""
    lines = [f"| {line}".rstrip() for line in _compared(output, node)]
    lines += [f"! {line}".rstrip() for line in _compared(errors, node)]
    return Answer(status, tuple(lines))


def _compared(text: str, node: str) -> list[str]:
    text = _COLOUR.sub("", text).replace(node, "NODE")
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    text = _CRASH.sub("** crash", text)
    lines = []
    for line in text.strip("\n").splitlines():
        lines.append(_document(line) if line.startswith("{") else line)
        if line.startswith(_CUTS):
            break
    return lines


def _document(line: str) -> str:
    """A line of JSON with its fields in order; of listeners only that they are there."""
    try:
        document = json.loads(line)
    except ValueError:
        return line
    return json.dumps(document | {name: "..." for name in _LISTENERS if name in document}, sort_keys=True)


def _parsed(part: str) -> Case:
    title, *lines = part.strip("\n").splitlines()
    case = Case(title)
    texts: dict[str, list[str]] = {}
    statuses: dict[str, int] = {}
    who = ""
    for line in lines:
        kind, text = line[:1], line[2:]
        found = _ANSWER.fullmatch(line)
        if found:
            who = found[1]
            texts[who], statuses[who] = [], int(found[2])
            case.reason = found[3] or case.reason
        elif kind in "|!":
            texts[who].append(line)
        elif kind == "$":
            case.command = text
        else:
            {"+": case.before, "-": case.after, "<": case.typed}[kind].append(text)
    case.answers = {name: Answer(statuses[name], tuple(texts[name])) for name in texts}
    return case
