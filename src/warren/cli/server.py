"""`warren serve`: runs a broker until it is asked to stop."""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import click

from warren.cli.setting_flags import SettingFlagsCommand, config_entries, with_setting_flags
from warren.node import settings
from warren.node.boot import Node, run
from warren.node.config import Config, load
from warren.node.config_file import ConfigError
from warren.node.errors import BootRefused, NodeFailed
from warren.node.node_log import NodeLog
from warren.wire import frames

# Exit status: 0 after a clean stop, 1 if it refused to start or ended by itself, with one line on standard
# error.
_REFUSED = 1


@click.command(cls=SettingFlagsCommand)
@with_setting_flags
def serve(**flags: Any) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    Data is stored in a directory that only one broker can use at a time; --data-dir sets it, and with
    --in-memory nothing is stored.

    Every setting of the file can also be set by an environment variable WARREN_… or a flag: heartbeat by
    WARREN_HEARTBEAT or --heartbeat, listeners.tcp.default by WARREN_LISTENERS_TCP_DEFAULT or
    --listeners-tcp default=5672. Flags override the environment, and the environment overrides the file.
    """
    file = flags["config"] or ""
    log: NodeLog | None = None
    failure = ""
    # Files are readable by their owner only.
    os.umask(0o077)
    try:
        check_build(os.environ, frames.__file__)
        config = load(str(file), os.environ, config_entries(flags))
        log = NodeLog(config)
        run(config, lambda node: _welcome(config, node), log)
    except (ConfigError, BootRefused, NodeFailed) as error:
        failure = str(error)
    finally:
        # Log lines are written before the final message.
        if log is not None:
            log.stop()
    if failure:
        click.echo(f"warren: {failure}", err=True)
        sys.exit(_REFUSED)


def _welcome(config: Config, node: Node) -> None:
    """Print the addresses, the data directory and a command to try."""
    where = next((view for view in node.listeners if view.protocol == "amqp"), None)
    if where is None:
        return
    host = "127.0.0.1" if where.host in ("0.0.0.0", "::") else where.host
    is_guest = not config.is_set(settings.DEFAULT_USER) and "guest" in node.broker.metadata.users.by_name
    who = "guest:guest" if is_guest and not config.is_set(settings.DEFAULT_PASSWORD) else "USER:PASSWORD"
    command = command_name(sys.argv[0])
    click.echo(f"Warren listens for AMQP on {where.host}, port {where.port}; press Ctrl-C to stop it.")
    if node.data_directory:
        click.echo(f"Its data is in {node.data_directory}.")
    else:
        click.echo("Everything is kept in memory only and is lost when it stops.")
    click.echo(f"To manage it, use {command}; {command} --help lists the commands. Try:")
    click.echo(f"    {command} perf throughput --uri amqp://{who}@{host}:{where.port}/%2f")


def check_build(environment: Mapping[str, str], module: str) -> None:
    """Raise BootRefused if WARREN_COMPILED=1 is set and the build is interpreted."""
    if environment.get("WARREN_COMPILED") == "1" and module.endswith(".py"):
        raise BootRefused("WARREN_COMPILED=1 is set, but this Warren is interpreted")


def command_name(called: str) -> str:
    """Return the command line of this command: its name if it is on the PATH, else the path in `called`."""
    found = shutil.which("warren")
    if os.path.basename(called) != "warren" or (found and os.path.samefile(found, called)):
        return "warren"
    return called
