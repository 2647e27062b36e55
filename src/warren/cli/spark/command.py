"""The command group `warren spark`; each command is imported when it is called."""

from importlib import import_module

import click

from warren.cli.sections import SectionedGroup

# A one-line help for each; the module of the same name has it as `command`.
_COMMANDS = {
    "archive": "write messages to a lake, each once",
    "clean": "remove files of crashes and old versions from a lake",
    "compact": "rewrite small files of a Delta table into few large ones",
    "decode": "parse JSON into columns, and dead-letter what does not match",
    "dlx-report": "count dead letters by queue, reason and exchange",
    "doctor": "check whether pipelines can run here",
    "init": "write a project for Spark's declarative pipelines",
    "replay": "publish messages of a lake again, each once",
    "rollup": "report rates, sizes and latencies by time window",
    "sql": "query queues, streams and lakes; nothing is consumed",
}
_SECTIONS = {
    "Getting started": ("doctor", "init"),
    "Lakes": ("archive", "compact", "clean", "replay"),
    "Queues and streams": ("decode", "dlx-report", "rollup", "sql"),
}


class SparkCommands(SectionedGroup):
    """The group of commands, which are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, sorted."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is none of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"warren.cli.spark.{cmd_name.replace('-', '_')}")
        found: click.Command = module.command
        return found

    def texts(self, ctx: click.Context) -> dict[str, str]:
        """Return the help lines without importing the commands."""
        return _COMMANDS


@click.group(cls=SparkCommands, sections=_SECTIONS)
def spark() -> None:
    """Pipelines over queues and streams, with Spark.

    Install with `pip install '.[spark]'` in a checkout of Warren. The commands read from Warren or RabbitMQ
    at --uri or WARREN_AMQP_URI. Spark runs in this process unless --master or --remote names a cluster.
    `warren spark doctor` checks the installation.
    """
