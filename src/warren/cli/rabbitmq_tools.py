"""The program under RabbitMQ's names: `rabbitmqctl`, `rabbitmq-diagnostics` and the others.

All of them have the commands that `warren` has under names of RabbitMQ; `rabbitmq-plugins` has its own. Exit
statuses are those of RabbitMQ's tools, which are from sysexits.h.
"""

import sys
from pathlib import Path

import click

from warren.cli.main import main as warren
from warren.cli.operator.failures import (
    BROKEN,
    NOT_AUTHORISED,
    UNHEALTHY,
    UNREACHABLE,
    USAGE,
    Failure,
    ObjectNotFound,
)
from warren.cli.rabbitmq_plugins import plugins

_EX_USAGE, _EX_DATAERR, _EX_NOUSER, _EX_UNAVAILABLE, _EX_SOFTWARE, _EX_NOPERM = 64, 65, 67, 69, 70, 77
_STATUSES = {
    USAGE: _EX_USAGE,
    UNREACHABLE: _EX_UNAVAILABLE,
    NOT_AUTHORISED: _EX_NOPERM,
    BROKEN: _EX_SOFTWARE,
    UNHEALTHY: _EX_UNAVAILABLE,
}
_INTERRUPTED = 130


def main() -> None:
    """Run the command of the arguments, as the tool by whose name the program was called."""
    name = Path(sys.argv[0]).name
    tool: click.Command = plugins if name == "rabbitmq-plugins" else warren
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
    if isinstance(error, ObjectNotFound):
        return _EX_NOUSER if "user" in error.message else _EX_DATAERR
    if isinstance(error, Failure):
        return _STATUSES.get(error.status, _EX_SOFTWARE)
    return _EX_USAGE if isinstance(error, click.UsageError) else _EX_SOFTWARE
