"""Every command and option of RabbitMQ's tools: Warren's tools have it, or say in a sentence why not.

The table beside this file has a line for each command of a tool: the versions that have it with these
options, the tool, the command, and its own options. Options of all commands are below.
"""

from pathlib import Path

import click
import pytest

from warren.cli.operator.unsupported_commands import UNSUPPORTED
from warren.cli.rabbitmq_plugins import plugins
from warren.cli.rabbitmq_tools import commands

TABLE = Path(__file__).with_name("rabbitmq_commands.txt")
# Options that every command of every tool accepts.
OF_ALL = (
    "--node", "-n", "--quiet", "-q", "--silent", "-s", "--timeout", "-t", "--longnames", "-l", "--formatter",
    "--printer", "--file", "--script-name", "--rabbitmq-home", "--mnesia-dir", "--data-dir", "--plugins-dir",
    "--enabled-plugins-file", "--aliases-file", "--erlang-cookie", "--dry-run", "--print-stacktrace",
    "--vhost", "-p", "--table-headers", "--no-table-headers",
)  # fmt: skip
Line = tuple[str, str, tuple[str, ...]]


def lines() -> list[Line]:
    read = [line.split("|") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return sorted({(tool, command, tuple(options.split())) for _, tool, command, options in read})


@pytest.mark.parametrize(("tool", "command", "options"), lines(), ids=lambda value: str(value))
def test_a_tool_has_every_command_and_option_of_rabbitmq(
    tool: str, command: str, options: tuple[str, ...]
) -> None:
    group = plugins if tool == "rabbitmq-plugins" else commands
    found = group.get_command(click.Context(group), command)
    assert found is not None
    if command in UNSUPPORTED:
        assert len(UNSUPPORTED[command].split()) > 2
        return
    context = click.Context(found)
    found.make_parser(context)
    has = {name for item in found.get_params(context) for name in (*item.opts, *item.secondary_opts)}
    assert {*options, *OF_ALL, "--help"} - has == set()


def test_commands_of_both_versions_are_in_the_table() -> None:
    versions = {line.split("|")[0] for line in TABLE.read_text().splitlines() if not line.startswith("#")}
    assert {version for each in versions for version in each.split(",")} == {"3.10.8", "4.3.6"}
    assert len({command for _, command, _ in lines()}) > 200
