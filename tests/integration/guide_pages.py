"""Reads a page of the guide as a user does: files to write, commands to run, expected output."""

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"(?:^In `(?P<file>[\w.-]+)`:\n\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Step:
    """One fenced block; `file` is set if the page says to write it into a file."""

    language: str
    text: str
    file: str


def steps(page: Path) -> list[Step]:
    """The blocks of the page in order, except those without a language."""
    return [
        Step(found["language"], found["text"], found["file"] or "")
        for found in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if found["language"]
    ]
