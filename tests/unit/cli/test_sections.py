"""The help of command groups: each command in a section, with one line."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from warren.cli.main import main
from warren.cli.sections import SectionedGroup, summary

# With more commands than this, a group needs sections.
WITHOUT_SECTIONS_MAX = 6


def groups(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Group]]:
    """All command groups by their full names."""
    yield " ".join(path), group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from groups(command, (*path, name))


GROUPS = dict(groups())


@pytest.mark.parametrize("called", GROUPS)
def test_every_command_is_in_one_section_and_every_section_has_commands(called: str) -> None:
    group = GROUPS[called]
    context = click.Context(group)
    names = [name for name in group.list_commands(context) if not _is_hidden(group, context, name)]
    sections = getattr(group, "sections", {})
    listed = [name for names in sections.values() for name in names]
    if sections or len(names) > WITHOUT_SECTIONS_MAX:
        assert sorted(listed) == sorted(names)


@pytest.mark.parametrize("called", GROUPS)
def test_every_command_has_one_complete_line_in_the_help(called: str) -> None:
    group = GROUPS[called]
    shown = CliRunner().invoke(main, [*called.split(), "--help"], terminal_width=80).output
    rows = shown.partition("--help")[2].splitlines()[1:]
    assert isinstance(group, SectionedGroup)
    assert not [row for row in rows if row.endswith(("…", "...")) or len(row) > 80]
    lines = [row for row in rows if row.startswith("  ")]
    context = click.Context(group)
    names = [name for name in group.list_commands(context) if not _is_hidden(group, context, name)]
    assert sorted(row.split()[0] for row in lines) == sorted(names)
    assert all(len(row.split()) > 1 for row in lines)


def test_names_of_rabbitmqctl_are_accepted_and_not_listed() -> None:
    shown = CliRunner().invoke(main, ["--help"]).output
    assert "\nMessages:\n" in shown
    assert "list_queues  " not in shown
    assert CliRunner().invoke(main, ["list_queues", "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("List queues.", "List queues"),
        ("Add a user. The password is asked for.", "Add a user"),
        ("Pause it; all the rest goes on as before.", "Pause it"),
        ("What it takes, costs, and gives back to all of us.", "What it takes, costs"),
        ("Measure: rates and latencies.\n\nAnd more.", "Measure"),
        ("Asomethingthathasnoendofanykind.", "Asomethingthathasnoendo…"),
    ],
)
def test_a_line_of_help_ends_at_a_clause(text: str, line: str) -> None:
    assert summary(text, 24) == line


def _is_hidden(group: click.Group, context: click.Context, name: str) -> bool:
    command = group.get_command(context, name)
    return command is None or command.hidden
