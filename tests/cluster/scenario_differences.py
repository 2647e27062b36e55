"""Where Warren intends to answer other than the recorded scenarios of RabbitMQ, each with its reason.

A file of `differences/` belongs to the scenario of its name, and has sections of the same titles:

    == The title of a section.
    because one sentence
    - a line of the section that Warren plays another way
    + what is there instead
      a line that both have, which says where

Between `because` lines stand the differences of one reason; an empty line separates places. `- ...` stands
for all that follows in the section. Each line with `-`, and each that both have, must be in the section, one
behind the other: a difference that applies to nothing is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.cluster.scenario import FURTHER, HEADING, Scenario, Section, section_of

BECAUSE = "because "


@dataclass
class SectionChange:
    """One place of a section: its lines in the scenario, and those that Warren plays."""

    title: str
    reason: str
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Add a line of the file."""
        sign, text = line[:2], line[2:]
        if sign not in ("- ", "+ ", "  "):
            raise ValueError(f"{line!r} is no line of a difference")
        if sign != "+ ":
            self.old.append(text)
        if sign != "- ":
            self.new.append(text)

    def apply(self, lines: list[str]) -> list[str]:
        """The lines of the section with this change. ValueError unless there is just one place for it."""
        is_rest = self.old[-1:] == [FURTHER]
        old = self.old[:-1] if is_rest else self.old
        found = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
        if not old:
            found = [0]
        if len(found) != 1:
            raise ValueError(f"{self.title} has {len(found)} places for {self.old}")
        at = found[0]
        return lines[:at] + self.new + ([] if is_rest else lines[at + len(old) :])


def read_differences(path: Path) -> list[SectionChange]:
    """The differences in a file; none if there is no file."""
    changes: list[SectionChange] = []
    if not path.exists():
        return changes
    for part in re.split(rf"^{HEADING}", path.read_text(), flags=re.MULTILINE)[1:]:
        title, *lines = part.splitlines()
        reason, is_new = "", True
        for line in lines:
            if line.startswith(BECAUSE):
                reason, is_new = line.removeprefix(BECAUSE), True
            elif not line:
                is_new = True
            else:
                if is_new:
                    changes.append(SectionChange(title, reason))
                    is_new = False
                changes[-1].add(line)
    return changes


def changed(scenario: Scenario, changes: list[SectionChange]) -> Scenario:
    """The scenario as Warren plays it. ValueError for a change that applies to nothing."""
    titles = {section.title for section in scenario.sections}
    unknown = {change.title for change in changes} - titles
    if unknown:
        raise ValueError(f"{scenario.path.name} has no sections {sorted(unknown)}")
    sections: list[Section] = []
    for section in scenario.sections:
        lines = [line for step in section.steps for line in step.written()]
        for change in changes:
            if change.title == section.title:
                lines = change.apply(lines)
        sections.append(section_of(scenario.path, [section.title, *lines]))
    return Scenario(scenario.path, scenario.introduction, sections)
