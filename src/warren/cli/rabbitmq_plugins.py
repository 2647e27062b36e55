"""`rabbitmq-plugins`: Warren has what some plugins add without any, and no others.

Scripts and Dockerfiles that enable plugins succeed if Warren does what the plugins are for, whether a broker
runs or not, and fail with the names of the others. Nothing is changed by any command.
"""

import re
from collections.abc import Callable
from typing import Any

import click

from warren import __version__
from warren.cli.operator.failures import Failure
from warren.cli.operator.options import HELP_OPTIONS, rabbitmq_options
from warren.cli.operator.rabbitmq_failures import ToolGroup, UnknownCommand
from warren.node.rabbitmq_environment import BUILT_IN
from warren.session.server_properties import COMPATIBLE_VERSION


def _options(*names: str) -> list[click.Parameter]:
    """Options that change nothing, since nothing is loaded or unloaded."""
    flags: list[click.Parameter] = [
        click.Option([name], is_flag=True, hidden=True, expose_value=False) for name in names
    ]
    return [*flags, *rabbitmq_options(is_used=False)]


_QUIET = click.Option(
    ["-q", "--quiet", "-s", "--silent", "--no-table-headers", "is_quiet"],
    is_flag=True,
    help="Print results only.",
)
_NAMES = click.Argument(["names"], nargs=-1, required=True, metavar="PLUGIN...")
_WHERE = ("--online", "--offline", "--all")


def _enable(names: tuple[str, ...], is_quiet: bool) -> None:
    absent = sorted(set(names) - BUILT_IN)
    if absent:
        raise Failure(f"Warren lacks {', '.join(absent)}; 'rabbitmq-plugins list' shows what it has")
    if not is_quiet:
        for name in names:
            click.echo(f"{name}: built in, and always enabled")


def _disable(names: tuple[str, ...], is_quiet: bool) -> None:
    kept = [name for name in names if name in BUILT_IN]
    if kept and not is_quiet:
        click.echo(f"{', '.join(kept)}: built in, and stays enabled", err=True)


def _is_enabled(names: tuple[str, ...], is_quiet: bool) -> None:
    absent = sorted(set(names) - BUILT_IN)
    if absent:
        raise Failure(f"Warren lacks {', '.join(absent)}")
    if not is_quiet:
        for name in names:
            click.echo(f"Plugin {name} is enabled")


def _list(pattern: str, is_minimal: bool, is_quiet: bool, **_: bool) -> None:
    try:
        names = [name for name in sorted(BUILT_IN) if re.search(pattern, name)]
    except re.error as error:
        raise click.UsageError(f"PATTERN must be a regular expression, not {pattern!r}: {error}") from None
    if is_minimal:
        lines = names
    else:
        width = max(map(len, names), default=0)
        lines = [f"[E*] {name:{width}} {__version__}" for name in names]
        if not is_quiet:
            click.echo(f'Listing plugins with pattern "{pattern}" ...')
            click.echo(
                " Configured: E = explicitly enabled; e = implicitly enabled\n | Status: * = running\n |/"
            )
    for line in lines:
        click.echo(line)


def _directories(is_quiet: bool) -> None:
    raise Failure("there are no directories of plugins: they are built in")


def _version(is_quiet: bool) -> None:
    click.echo(COMPATIBLE_VERSION)


def _help(command: str | None, lists: bool, is_quiet: bool) -> None:
    context = click.get_current_context().find_root()
    if lists:
        for name in plugins.list_commands(context):
            click.echo(name)
        return
    shown = plugins if command is None else plugins.get_command(context, command)
    if shown is None:
        raise UnknownCommand(str(command), None, context)
    found = context if command is None else click.Context(shown, info_name=command, parent=context)
    click.echo(shown.get_help(found))


def _complete(names: tuple[str, ...], is_quiet: bool) -> None:
    raise Failure("use 'warren completion bash'")


def _command(name: str, text: str, callback: Callable[..., None], *takes: click.Parameter) -> click.Command:
    def run(is_quiet: bool, **given: Any) -> None:
        callback(is_quiet=is_quiet or click.get_current_context().find_root().params["is_quiet"], **given)

    return click.Command(
        name,
        params=[*takes, _QUIET, *_options(*_WHERE)],
        callback=run,
        help=text,
        context_settings={"help_option_names": HELP_OPTIONS},
    )


plugins = ToolGroup(
    "rabbitmq-plugins",
    help="List plugins of RabbitMQ whose work Warren does, and accept that they are enabled.",
    params=[
        click.Option(["-q", "--quiet", "-s", "--silent", "is_quiet"], is_flag=True, hidden=True),
        *_options(),
    ],
    commands=[
        _command("enable", "Check that Warren does the work of all PLUGINs.", _enable, _NAMES),
        _command(
            "disable", "Do nothing: what is built in stays.", _disable,
            click.Argument(["names"], nargs=-1, metavar="[PLUGIN]..."),
        ),
        _command("set", "Check that Warren does the work of all PLUGINs.", _enable, _NAMES),
        _command("is_enabled", "Check that Warren does the work of all PLUGINs.", _is_enabled, _NAMES),
        _command(
            "list", "List the plugins whose names match PATTERN.", _list,
            click.Argument(["pattern"], default=".*"),
            click.Option(["-m", "--minimal", "is_minimal"], is_flag=True, help="Print names only."),
            click.Option(["-E", "--enabled"], is_flag=True, help="All are enabled.", hidden=True),
            click.Option(["-e", "--implicitly-enabled"], is_flag=True, help="All are enabled.", hidden=True),
            click.Option(["-v", "--verbose"], is_flag=True, hidden=True),
        ),
        _command("directories", "Fail: there are none.", _directories),
        _command("version", "Print the version of RabbitMQ whose commands these are.", _version),
        _command(
            "help", "Show the help of a command.", _help,
            click.Argument(["command"], required=False),
            click.Option(["--list-commands", "lists"], is_flag=True, help="Print the names of commands."),
        ),
        _command(
            "autocomplete", "Fail: 'warren completion' has completions.", _complete,
            click.Argument(["names"], nargs=-1),
        ),
    ],
)  # fmt: skip
