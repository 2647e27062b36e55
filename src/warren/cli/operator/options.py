"""The options of every command: broker, user, and output format."""

import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from warren.cli.operator.api_target import DEFAULT_URI, target_of
from warren.cli.operator.management_client import ManagementClient
from warren.cli.operator.session import Arguments, Session, Style
from warren.cli.operator.tls import TLS_OPTIONS, tls_of, tls_options

# The options that show the help of a command under its name in rabbitmqctl.
HELP_OPTIONS = ["-h", "--help", "-?"]
REQUEST_TIMEOUT_S = 60.0
# As rabbitmqctl waits for nodes.
_WAITING_S = 300.0
_COMMON = (
    "uri", *TLS_OPTIONS, "timeout", "is_json", "formatter", "is_quiet", "is_silent", "at_node",
)  # fmt: skip


# Options with values for the way of RabbitMQ's tools to files and nodes, which the HTTP API replaces.
_OF_ERLANG = (
    "--aliases-file", "--data-dir", "--enabled-plugins-file", "--erlang-cookie", "--file", "--mnesia-dir",
    "--plugins-dir", "--printer", "--rabbitmq-home", "--script-name",
)  # fmt: skip


def common_of(context: click.Context) -> Arguments:
    """Return the common options: those of the command, or those before it, as in `warren -q status`."""
    root = context.find_root()
    return {"at_node": node_before(context)} | {
        name: root.params[name] if _is_given(root, name) and not _is_given(context, name) else value
        for name, value in context.params.items()
        if name in _COMMON
    }


def session_of(common: Arguments, *, is_known_as: bool = False) -> Session:
    """Create the session of a command with these options; `is_known_as`: with the output of rabbitmqctl."""
    formatter = "json" if common["is_json"] else common["formatter"]
    style = Style(
        formatter=formatter,
        is_quiet=common["is_quiet"] or common["is_silent"],
        has_headers=not common["is_silent"],
        is_rabbitmq=is_known_as and not common["is_json"],
    )
    return Session(api_of(common, secret), style)


def node_before(context: click.Context) -> str | None:
    """Return the node of an option --node before the command, as in `rabbitmqctl -n NAME drain`."""
    found: str | None = context.find_root().params.get("at_node")
    return found


def vhost_before(context: click.Context) -> Arguments:
    """Return the virtual host of an option before the command, as in `rabbitmqctl -p VHOST list_queues`."""
    found: str | None = context.find_root().params.get("at_vhost")
    takes = [item.name for item in context.command.params if isinstance(item, click.Option)]
    return {} if found is None or "vhost" not in takes or _is_given(context, "vhost") else {"vhost": found}


def api_of(common: Arguments, ask_password: Callable[[str], str]) -> ManagementClient:
    """Create the client for the broker that the options name."""
    target = target_of(_uri_of(common), os.environ, ask_password)
    return ManagementClient(target, common["timeout"], tls_of(common))


def common_options(*, is_waiting: bool = False) -> list[click.Parameter]:
    """Return the options that every command has; the timeout of a command that waits is that of waiting."""
    flag: dict[str, Any] = {"is_flag": True}
    return [
        click.Option(
            ["--uri"],
            default=DEFAULT_URI,
            envvar="WARREN_URI",
            show_default=True,
            help="address of the HTTP API; with a password, prefer WARREN_URI",
        ),
        *tls_options(),
        _waiting_timeout() if is_waiting else _request_timeout(),
        click.Option(["--json", "is_json"], help="print JSON", **flag),
        click.Option(
            ["--formatter"],
            type=click.Choice(("table", "tsv", "csv", "pretty_table", "json")),
            default="table",
            show_default=True,
            help="output format",
        ),
        click.Option(["-q", "--quiet", "is_quiet"], help="print results only", **flag),
        click.Option(
            ["-s", "--silent", "--no-table-headers", "is_silent"],
            help="results only, without column names",
            **flag,
        ),
    ]


def rabbitmq_options(*, is_used: bool = True) -> list[click.Parameter]:
    """Return the options of every command of rabbitmqctl that are about its way to the node.

    Those without a use are accepted and change nothing; with `is_used` false all are of this kind.
    """
    options: list[click.Parameter] = [
        click.Option(
            ["-n", "--node", "at_node"],
            metavar="NAME",
            hidden=True,
            expose_value=is_used,
            help="node, whose host is asked over HTTP",
        ),
        click.Option(
            ["-p", "--vhost", "at_vhost"],
            metavar="VHOST",
            hidden=True,
            expose_value=is_used,
            help="virtual host of the command",
        ),
        *(
            click.Option(names, is_flag=True, hidden=True, expose_value=False)
            for names in (["-l", "--longnames"], ["--dry-run"], ["--print-stacktrace"], ["--table-headers"])
        ),
        *(
            click.Option([name, f"unused{name.replace('-', '_')}"], hidden=True, expose_value=False)
            for name in _OF_ERLANG
        ),
    ]
    if not is_used:
        names = ["-t", "--timeout"], ["--formatter"]
        options += [click.Option(each, hidden=True, expose_value=False) for each in names]
    return options


def _uri_of(common: Arguments) -> str:
    """Return the address of the API; with --node NAME@HOST and no address, that of HOST."""
    uri: str = common["uri"]
    host = (common.get("at_node") or "").rpartition("@")[2]
    own = socket.gethostname()
    if uri != DEFAULT_URI or host in ("", "localhost", own, own.partition(".")[0], socket.getfqdn()):
        return uri
    return f"http://{f'[{host}]' if ':' in host else host}:15672"


def _request_timeout() -> click.Option:
    return click.Option(
        ["-t", "--timeout"],
        type=click.FloatRange(0.1, 86_400),
        default=REQUEST_TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="timeout of a request in seconds",
    )


def _waiting_timeout() -> click.Option:
    return click.Option(
        ["-t", "--timeout", "--within", "timeout"],
        type=click.FloatRange(0, 86_400),
        default=_WAITING_S,
        show_default=True,
        metavar="SECONDS",
        help="how long to wait, in seconds",
    )


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def secret(prompt: str) -> str:
    """Read a password: from a prompt without echo, or the first line of standard input."""
    if sys.stdin.isatty():
        typed: str = click.prompt(prompt, hide_input=True, err=True)
        return typed
    return sys.stdin.readline().rstrip("\r\n")
