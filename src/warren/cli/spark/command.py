"""`warren spark`: its commands, each loaded when it is called."""

from importlib import import_module

import click

from warren.cli.sections import SectionedGroup

# What each does, in a line; its module here has it as `command`.
_COMMANDS = {
    "archive": "put messages into a lake, each once",
    "clean": "remove what crashes have left in a lake",
    "compact": "rewrite small files of a Delta table as few large ones",
    "decode": "turn JSON into columns, and send back what does not fit",
    "dlx-report": "count dead letters by queue, reason and exchange",
    "doctor": "look whether pipelines can run here",
    "init": "write a project for Spark's declarative pipelines",
    "replay": "send messages of a lake again, each once",
    "rollup": "rates, sizes and latencies by windows of time",
    "sql": "query queues, streams and lakes; nothing is consumed",
}
_SECTIONS = {
    "To begin": ("doctor", "init"),
    "Lakes": ("archive", "compact", "clean", "replay"),
    "Queues and streams": ("decode", "dlx-report", "rollup", "sql"),
}


class SparkCommands(SectionedGroup):
    """All commands; help of one is loaded with it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"warren.cli.spark.{cmd_name.replace('-', '_')}")
        found: click.Command = module.command
        return found

    def texts(self, ctx: click.Context) -> dict[str, str]:
        """What each does, without loading any."""
        return _COMMANDS


@click.group(cls=SparkCommands, sections=_SECTIONS)
def spark() -> None:
    """Pipelines over queues and streams, with Spark.

    They need `pip install '.[spark]'` in a checkout of Warren. They read over AMQP, from Warren or RabbitMQ:
    --uri, or WARREN_AMQP_URI, says where. They run in this process unless --master or --remote names a
    cluster. `warren spark doctor` tells what is missing.
    """
