"""The `warren` command."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import click

from warren import __version__
from warren.cli.operator.options import common_options, rabbitmq_options
from warren.cli.sections import SectionedGroup

# The modules of large commands, which are imported only if called: a command that queries a broker does not
# wait for the import of those that run one.
_LARGE = {
    "serve": "warren.cli.server",
    "config": "warren.cli.config",
    "metadata": "warren.cli.metadata",
    "perf": "warren.cli.perf.command",
    "openapi": "warren.cli.openapi",
    "simulate": "warren.cli.simulate",
    "spark": "warren.cli.spark.command",
}

# The variables with which OpenSSL is told where the certificates of the system are.
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")

SECTIONS = {
    "Broker": ("serve", "config", "metadata"),
    "Messages": ("queues", "streams", "exchanges", "bindings", "dead-letters", "jobs", "leases"),
    "Other brokers": ("shovels", "federation", "move-from"),
    "Clients": ("connections", "channels", "consumers", "trace"),
    "Users and access": ("users", "permissions", "topic-permissions", "vhosts", "limits", "whoami"),
    "Policies and definitions": (
        "policies", "operator-policies", "parameters", "definitions", "feature-flags",
    ),
    "Monitoring and operation": (
        "status", "overview", "health", "cluster", "nodes", "log", "quarantine",
    ),
    "Tools": ("perf", "simulate", "spark", "openapi", "completion"),
    "Help": ("help", "version"),
}  # fmt: skip


class RootGroup(SectionedGroup):
    """The group of all commands; large ones are imported when they are called, others together."""

    _is_loaded = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        self._load_operator_commands()
        return sorted([*super().list_commands(ctx), *_LARGE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command `name`; None if there is none."""
        if cmd_name not in _LARGE:
            self._load_operator_commands()
            found = super().get_command(ctx, cmd_name)
            # Singular names such as `queue` for `queues` are accepted, but not shown.
            plural = f"{cmd_name[:-1]}ies" if cmd_name.endswith("y") else f"{cmd_name}s"
            return found or super().get_command(ctx, plural)
        name = _LARGE[cmd_name]
        if name not in sys.modules:
            with _without_collector(), _without_certificates():
                import_module(name)
        command: click.Command = getattr(sys.modules[name], cmd_name)
        return command

    def _load_operator_commands(self) -> None:
        if not self._is_loaded:
            self._is_loaded = True
            # They are a tenth of what a broker imports at its start, and it needs none (decision 0194).
            with _without_collector():
                from warren.cli.operator.command_groups import add_commands

                add_commands(self)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable the garbage collector during imports: it would take a fifth of the start, and free nothing.

    What was imported stays, and is not examined later either.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@contextmanager
def _without_certificates() -> Iterator[None]:
    """Hide the certificates of the system from aiohttp, which reads all of them twice when it is imported.

    They are for its client, to which Warren passes a context of its own; reading them takes a tenth of the
    start.
    """
    before = {name: os.environ.get(name) for name in _CERTIFICATES}
    os.environ.update(dict.fromkeys(_CERTIFICATES, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@click.group(cls=RootGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="warren")
def main(**given: object) -> None:
    """A message broker that RabbitMQ applications can switch to without change.

    All commands except serve, config, metadata, perf, simulate, openapi and spark use the HTTP API of a
    running broker: --uri, or WARREN_URI, WARREN_USER and WARREN_PASSWORD, set its address and the user. Names
    of rabbitmqctl such as list_queues and add_user work as well.

    Exit status: 0 success, 1 refused or not found, 2 usage error, 3 broker not reached, 4 not authorized,
    5 broker error, 6 failed health check.
    """


@main.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_command(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, as --help does."""
    found = context.find_root()
    command: click.Command = main
    for word in words:
        inner = command.get_command(found, word) if isinstance(command, click.Group) else None
        if inner is None:
            raise click.UsageError(f"No such command {' '.join(words)!r}.", context)
        found, command = click.Context(inner, info_name=word, parent=found), inner
    click.echo(command.get_help(found))


@main.command("version")
def version_command() -> None:
    """Print the version, as --version does; of a broker, 'nodes version'."""
    click.echo(f"warren, version {__version__}")


main.params += [*common_options(), *rabbitmq_options()]

if __name__ == "__main__":
    main()
