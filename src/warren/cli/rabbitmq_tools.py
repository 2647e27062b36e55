"""The program under RabbitMQ's names: `rabbitmqctl`, `rabbitmq-diagnostics` and the others.

All of them have the commands that `warren` has under names of RabbitMQ; `rabbitmq-plugins` has its own. Exit
statuses are those of RabbitMQ's tools, which are from sysexits.h.
"""

import sys
from pathlib import Path

import click

from warren.cli.main import main as warren
from warren.cli.operator.command_groups import COMMANDS
from warren.cli.operator.command_types import built
from warren.cli.operator.options import HELP_OPTIONS, common_options, rabbitmq_options
from warren.cli.operator.rabbitmq_commands import RABBITMQ_ONLY
from warren.cli.operator.rabbitmq_failures import ToolGroup, UnknownCommand, told
from warren.cli.operator.rabbitmq_status import STATUS
from warren.cli.operator.text import escaped
from warren.cli.operator.unsupported_commands import UNSUPPORTED
from warren.cli.rabbitmq_plugins import plugins
from warren.session.server_properties import COMPATIBLE_VERSION

_USAGE_STATUS = 64
_INTERRUPTED = 130


class Tool(ToolGroup):
    """The commands of RabbitMQ's tools, of which a few have the name of a command of `warren`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands of RabbitMQ."""
        known = [command.known_as for command in (*COMMANDS, *RABBITMQ_ONLY) if command.known_as]
        return sorted({*super().list_commands(ctx), *known, *UNSUPPORTED})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command `cmd_name`; None if there is none."""
        return super().get_command(ctx, cmd_name) or warren.get_command(ctx, cmd_name)


def main() -> None:
    """Run the command of the arguments, as the tool by whose name the program was called."""
    sys.exit(run(Path(sys.argv[0]).name, sys.argv[1:]))


def run(name: str, words: list[str]) -> int:
    """Run the command `words` as the tool `name`; returns its exit status."""
    tool: click.Command = plugins if name == "rabbitmq-plugins" else commands
    try:
        # Returned is the status with which a command has ended itself, if it has.
        status = tool.main(list(words), prog_name=name, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return _USAGE_STATUS
    except click.ClickException as error:
        failure = told(error, words)
        for line in failure.lines:
            tab, text = line[: line.startswith("\t")], line[line.startswith("\t") :]
            click.echo(tab + escaped(text), err=True)
        return failure.status
    except click.Abort:
        return _INTERRUPTED
    return status if isinstance(status, int) else 0


def _version(**ignored: object) -> None:
    click.echo(COMPATIBLE_VERSION)


def _help(command: str | None, *, lists: bool, **ignored: object) -> None:
    context = click.get_current_context().find_root()
    if lists:
        for name in commands.list_commands(context):
            click.echo(name)
        return
    shown = commands if command is None else commands.get_command(context, command)
    if shown is None:
        raise UnknownCommand(str(command), None, context)
    found = context if command is None else click.Context(shown, info_name=command, parent=context)
    click.echo(shown.get_help(found))


commands = Tool(
    "rabbitmqctl",
    help="The commands of RabbitMQ's tools, for a running broker.",
    params=list(warren.params),
    context_settings={"help_option_names": HELP_OPTIONS},
    commands=[
        built(STATUS, is_known_as=True),
        click.Command(
            "version",
            params=[*common_options(), *rabbitmq_options()],
            callback=_version,
            help="Print the version of RabbitMQ whose commands these are.",
        ),
        click.Command(
            "help",
            params=[
                click.Argument(["command"], required=False),
                click.Option(["--list-commands", "lists"], is_flag=True, help="Print the names of commands."),
                *common_options(),
                *rabbitmq_options(),
            ],
            callback=_help,
            help="Show the help of a command.",
        ),
    ],
)
