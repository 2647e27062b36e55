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
from warren.cli.operator.failures import (
    BROKEN,
    NOT_AUTHORISED,
    UNHEALTHY,
    UNREACHABLE,
    USAGE,
    Failure,
    ObjectNotFound,
    ToolFailure,
)
from warren.cli.operator.options import HELP_OPTIONS, common_options, rabbitmq_options
from warren.cli.operator.rabbitmq_commands import RABBITMQ_ONLY
from warren.cli.operator.rabbitmq_status import STATUS
from warren.cli.operator.unsupported_commands import UNSUPPORTED
from warren.cli.rabbitmq_plugins import plugins
from warren.session.server_properties import COMPATIBLE_VERSION

_EX_USAGE, _EX_DATAERR, _EX_NOUSER, _EX_UNAVAILABLE, _EX_SOFTWARE, _EX_NOPERM = 64, 65, 67, 69, 70, 77
_STATUSES = {
    USAGE: _EX_USAGE,
    UNREACHABLE: _EX_UNAVAILABLE,
    NOT_AUTHORISED: _EX_NOPERM,
    BROKEN: _EX_SOFTWARE,
    UNHEALTHY: _EX_UNAVAILABLE,
}
_INTERRUPTED = 130


class Tool(click.Group):
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
    name = Path(sys.argv[0]).name
    tool: click.Command = plugins if name == "rabbitmq-plugins" else commands
    try:
        # Returned is the status with which a command has ended itself, if it has.
        status = tool.main(prog_name=name, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        status = 0
    except click.ClickException as error:
        error.show()
        status = status_of(error)
    except click.Abort:
        status = _INTERRUPTED
    sys.exit(status if isinstance(status, int) else 0)


def status_of(error: click.ClickException) -> int:
    """Return the status with which RabbitMQ's tools end after `error`."""
    if isinstance(error, ToolFailure) and error.tool_status is not None:
        return error.tool_status
    if isinstance(error, ObjectNotFound):
        return _EX_NOUSER if "user" in error.message else _EX_DATAERR
    if isinstance(error, Failure):
        return _STATUSES.get(error.status, _EX_SOFTWARE)
    return _EX_USAGE if isinstance(error, click.UsageError) else _EX_SOFTWARE


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
        raise click.UsageError(f"No such command {command!r}.", context)
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
