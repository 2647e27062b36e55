"""The kinds and fields of the log are those of the committed table: what was written must stay readable."""

from pathlib import Path
from typing import get_type_hints

from warren.journal.codec import StateEnd, VoteState
from warren.journal.log_schema import ABSENT, KINDS, RAFT_KINDS, ROWS
from warren.metadata import commands, member_commands
from warren.metadata.commands import MetadataCommand, PermissionCommand, VhostCommand
from warren.metadata.leases import LeaseState

TABLE = Path(__file__).with_name("log_schema.txt")
WHAT_TO_DO = f"""the format of the metadata log is not the one in {TABLE.name}.

Logs in that format exist. A number of a kind and a place of a field keep their meaning and are never used
again; a new command gets the next number; a new field gets the next place, and a value in `ABSENT` for logs
without it; a removed field leaves None in its place; a changed type or meaning is a new field, and a changed
rule a new kind. A change of that sort that is intended is recorded by replacing {TABLE.name} by:

"""


def shown(made: type, names: tuple[str | None, ...]) -> list[str]:
    hints = get_type_hints(made)
    lines = []
    for place, name in enumerate(names):
        if name is None:
            lines.append(f"    {place} -")
            continue
        hint = hints[name]
        of = str(hint) if getattr(hint, "__args__", None) else hint.__name__
        absent = f" (absent: {ABSENT[made, name]!r})" if (made, name) in ABSENT else ""
        lines.append(
            f"    {place} {name}: {of.replace('typing.', '').replace('collections.abc.', '')}{absent}"
        )
    return lines


def test_the_format_of_the_log_is_the_committed_one() -> None:
    lines = []
    for kind in (*KINDS, *RAFT_KINDS):
        lines += [f"{kind.number} {kind.command.__name__}", *shown(kind.command, kind.fields)]
    for record, names in ROWS.items():
        lines += [f"row {record.__name__}", *shown(record, names)]
    for head in (StateEnd, VoteState):
        lines += [head.__name__, *shown(head, head.__struct_fields__)]
    lines += [f"LeaseState: {', '.join(state.value for state in LeaseState)}"]
    table = "\n".join(lines) + "\n"
    assert TABLE.read_text() == table, WHAT_TO_DO + table


def test_every_command_and_every_field_is_in_the_log() -> None:
    found = {
        command
        for command in (vars(commands) | vars(member_commands)).values()
        if isinstance(command, type) and issubclass(command, MetadataCommand)
    } - {MetadataCommand, VhostCommand, PermissionCommand}
    assert {kind.command for kind in KINDS} == found
    # The last kind of a command is the one that is written.
    for command, fields in {kind.command: kind.fields for kind in KINDS}.items():
        assert {name for name in fields if name} == set(command.__struct_fields__), command
    for record, names in ROWS.items():
        known = getattr(record, "_fields", None) or record.__struct_fields__
        assert {name for name in names if name} == set(known), record


def test_numbers_are_used_once() -> None:
    numbers = [kind.number for kind in (*KINDS, *RAFT_KINDS)]
    assert len(set(numbers)) == len(numbers)
