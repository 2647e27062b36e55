"""`warren spark`: its commands, each loaded when it is called."""

from importlib import import_module

import click

# Each is a module of this package that has a command of its name in `command`.
_COMMANDS = {
    "archive": "warren.cli.spark.archive",
    "clean": "warren.cli.spark.clean",
    "compact": "warren.cli.spark.compact",
    "decode": "warren.cli.spark.decode",
    "dlx-report": "warren.cli.spark.dlx_report",
    "doctor": "warren.cli.spark.doctor",
    "init": "warren.cli.spark.init",
    "replay": "warren.cli.spark.replay",
    "rollup": "warren.cli.spark.rollup",
    "sql": "warren.cli.spark.sql",
}


class Pipelines(click.Group):
    """All commands; help of one is loaded with it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in _COMMANDS:
            return None
        found: click.Command = import_module(_COMMANDS[cmd_name]).command
        return found


@click.group(cls=Pipelines)
def spark() -> None:
    """Pipelines over queues and streams, with Spark.

    They need `pip install '.[spark]'` in a checkout of Warren. They read over AMQP, from Warren or RabbitMQ:
    --uri, or WARREN_AMQP_URI, says where. They run in this process unless --master or --remote names a
    cluster. `warren spark doctor` tells what is missing.
    """
