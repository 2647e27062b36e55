"""Reads a page of the guide as a reader would do it: files to write, commands to run, output to expect."""

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"(?:^In `(?P<file>[\w.-]+)`:\n\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Step:
    """One fenced block: `file` if the page says to write it into one."""

    language: str
    text: str
    file: str


def steps(page: Path) -> list[Step]:
    """The page's blocks in order; those without a language are to be read, not done."""
    return [
        Step(found["language"], found["text"], found["file"] or "")
        for found in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if found["language"]
    ]
