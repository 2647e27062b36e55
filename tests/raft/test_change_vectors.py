"""Configurations change as the published tables say."""

from pathlib import Path

import pytest
from tests.raft.datadriven import Directive, read
from tests.raft.texts import configuration_text
from tests.raft.vectors import vectors

from warren.replication.raft.change import (
    ChangeRefused,
    Configuration,
    MemberChange,
    MemberChangeKind,
    change_simply,
    enter_joint,
    leave_joint,
)

KINDS = {
    "v": MemberChangeKind.VOTER, "l": MemberChangeKind.LEARNER, "r": MemberChangeKind.REMOVED,
    "u": MemberChangeKind.UPDATED,
}  # fmt: skip


class ConfigurationTable:
    """Makes changes in turn, and notes in which step each replica joined."""

    def __init__(self) -> None:
        self.configuration = Configuration()
        self.joined: dict[int, int] = {}
        self.steps = 0

    def execute(self, directive: Directive) -> str:
        members = tuple(MemberChange(KINDS[token[0]], int(token[1:])) for token in directive.input.split())
        try:
            match directive.command:
                case "simple":
                    configuration = change_simply(self.configuration, members)
                case "enter-joint":
                    auto_leave = directive.flag("autoleave")
                    configuration = enter_joint(self.configuration, members, auto_leave=auto_leave)
                case _:
                    configuration = leave_joint(self.configuration)
        except ChangeRefused as error:
            return str(error)
        else:
            self._take(configuration)
            return self._text()
        finally:
            self.steps += 1

    def _take(self, configuration: Configuration) -> None:
        self.configuration = configuration
        joined = {each: self.joined.get(each, max(self.steps, 1)) for each in configuration.members}
        self.joined = joined

    def _text(self) -> str:
        lines = [configuration_text(self.configuration)]
        for replica, step in self.joined.items():
            learner = " learner" if replica in self.configuration.learners else ""
            lines.append(f"{replica}: StateProbe match=0 next={step}{learner}")
        return "\n".join(lines)


@pytest.mark.parametrize("path", vectors("confchange/testdata"))
def test_each_table_of_changes_is_printed_as_published(path: Path) -> None:
    read(path).run(ConfigurationTable().execute)
