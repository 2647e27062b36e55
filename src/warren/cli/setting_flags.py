"""A flag for every setting, derived from its declaration: `log.file.level` becomes --log-file-level.

--help shows the common flags; --help-all shows the others, grouped by the beginning of their keys.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

import click
from click.shell_completion import CompletionItem

from warren.node import settings
from warren.node.all_settings import ALL
from warren.node.cluster_settings import CLUSTER_TCP, DISTRIBUTION_INTERFACE
from warren.node.config import DEPRECATED_KEYS
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.setting_types import Family, Setting
from warren.node.values import OneOf, boolean

AnySetting = Setting[object] | Family[object]
_PORT = click.IntRange(0, 65_535)
# Prefix of click's parameter names for setting flags, which no other parameter has.
_NAME = "setting__"
_USUAL = "data_dir"
_SECRET = "; visible in the list of processes: prefer an environment variable"
_DEFAULT_PORT, _DEFAULT_STREAM_PORT = 5672, 5552


class SettingFlagsCommand(click.Command):
    """A command that completes all flags, also those that are not in its help."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return completions of `incomplete`."""
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("--"):
            found += [
                CompletionItem(flag, help=setting.reason)
                for flag, setting in FLAGS.items()
                if flag.startswith(incomplete)
            ]
        return found


def with_setting_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add all flags to a command; `config_entries` converts their values to settings."""
    options = [
        click.option(
            "--config", metavar="FILE",
            help="Configuration file in the format of rabbitmq.conf or in TOML, or a directory of them.",
        ),
        click.option(
            "--data-dir", metavar="DIR",
            help="Directory of persistent messages, streams and metadata. "
            "[default: $XDG_DATA_HOME/warren, /var/lib/warren (root), ~/.local/share/warren]",
        ),
        click.option("--host", metavar="HOST", help="Address to listen on. [default: all interfaces]"),
        click.option(
            "--port", metavar="PORT", type=_PORT, help="AMQP port; 0: a free port. [default: 5672]"
        ),
        click.option(
            "--stream-port", metavar="PORT", type=_PORT, help="Port of the stream protocol. [default: 5552]"
        ),
        click.option(
            "--cluster-port", metavar="PORT", type=_PORT,
            help="Port for other nodes of a cluster. [default: 25672, opened only in a cluster]",
        ),
        click.option(
            "--management-port", metavar="PORT", type=_PORT, help="Port of the HTTP API. [default: 15672]"
        ),
        click.option(
            "--prometheus-port", metavar="PORT", type=_PORT,
            help="Port of the Prometheus endpoint. [default: 15692]",
        ),
        click.option(
            "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_print_all,
            help="Show a flag for every setting and exit.",
        ),
        *map(_option, FLAGS.values()),
        *(
            click.option(_flag(key), _parameter(key), metavar="VALUE", hidden=True)
            for key in DEPRECATED_KEYS
        ),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def config_entries(given: Mapping[str, Any]) -> list[ConfigEntry]:
    """Convert flags to settings, shorthands first; --host replaces the address of every listener."""
    found: list[ConfigEntry] = []
    host, port = given["host"], given["port"]
    if host is not None or port is not None:
        place = "--port" if host is None else "--host"
        found.append(ConfigEntry("listeners.tcp", "none", place))
        address = f"{host or ''}:{_DEFAULT_PORT if port is None else port}"
        found.append(ConfigEntry("listeners.tcp.default", address, place))
    stream_port = given["stream_port"]
    if host is not None or stream_port is not None:
        place = "--stream-port" if host is None else "--host"
        address = f"{host or ''}:{_DEFAULT_STREAM_PORT if stream_port is None else stream_port}"
        found.append(ConfigEntry("stream.listeners.tcp.default", address, place))
    if given["cluster_port"] is not None:
        found.append(ConfigEntry(CLUSTER_TCP.key, "none", "--cluster-port"))
        address = f"{host or ''}:{given['cluster_port']}"
        found.append(ConfigEntry(f"{CLUSTER_TCP.key}.default", address, "--cluster-port"))
    if host is not None:
        found.append(ConfigEntry(DISTRIBUTION_INTERFACE.key, str(host), "--host"))
        found.append(ConfigEntry("management.tcp.ip", str(host), "--host"))
        found.append(ConfigEntry("prometheus.tcp.ip", str(host), "--host"))
    for flag, key in (
        ("management_port", "management.tcp.port"),
        ("prometheus_port", "prometheus.tcp.port"),
        ("data_dir", _USUAL),
    ):
        if given[flag] is not None:
            found.append(ConfigEntry(key, str(given[flag]), f"--{flag.replace('_', '-')}"))
    found += [
        ConfigEntry(key, given[_parameter(key)], _flag(key))
        for key in DEPRECATED_KEYS
        if given[_parameter(key)] is not None
    ]
    for flag, setting in FLAGS.items():
        value = given[_parameter(setting.key)]
        if isinstance(setting, Family):
            found.extend(_member(flag, setting, written) for written in value)
        elif value is not None:
            found.append(ConfigEntry(setting.key, value, flag))
    return found


def _member(flag: str, family: Family[object], written: str) -> ConfigEntry:
    """Parse one value of a family: NAME=VALUE, or `none` to remove the default entries."""
    name, separator, value = written.partition("=")
    if separator and name:
        return ConfigEntry(f"{family.key}.{name}", value, flag)
    if written.lower() != "none":
        raise ConfigError(f"{flag}: must be NAME=VALUE, or none, not {written!r}")
    return ConfigEntry(family.key, written, flag)


def _option(setting: AnySetting) -> Callable[[Any], Any]:
    more: dict[str, Any] = {"metavar": "VALUE"}
    if isinstance(setting, Family):
        more = {"metavar": "NAME=VALUE", "multiple": True}
    elif setting.parse is boolean:
        # A boolean flag without a value means true.
        more = {"metavar": "[true|false]", "is_flag": False, "flag_value": "true"}
    return click.option(
        _flag(setting.key), _parameter(setting.key), help=_help(setting),
        hidden=setting is not settings.IN_MEMORY,
        shell_complete=_completion(setting), **more,
    )  # fmt: skip


def _completion(
    setting: AnySetting,
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    parse = setting.parse
    words = ["true", "false"] if parse is boolean else list(parse.choices) if isinstance(parse, OneOf) else []

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        if not isinstance(setting, Family):
            return [word for word in words if word.startswith(begun)]
        name, separator, value = begun.partition("=")
        return [f"{name}={word}" for word in words if word.startswith(value)] if separator else []

    return complete


def _help(setting: AnySetting) -> str:
    text = setting.reason[:1].upper() + setting.reason[1:]
    if isinstance(setting, Setting) and setting.is_secret:
        return text + _SECRET
    return text + ("; repeat" if isinstance(setting, Family) else "")


def _print_all(context: click.Context, parameter: click.Parameter, is_wanted: bool) -> None:
    if not is_wanted:
        return
    click.echo(context.get_help())
    formatter = context.make_formatter()
    hidden = {option.opts[0]: option for option in context.command.params if isinstance(option, click.Option)}
    for begun, group in groupby(sorted(FLAGS, key=_group), _group):
        with formatter.section(begun):
            rows = []
            for flag in group:
                option = hidden[flag]
                rows.append((f"{flag} {option.metavar}", option.help or ""))
            formatter.write_dl(rows)
    click.echo()
    click.echo(formatter.getvalue().rstrip("\n"))
    context.exit()


def _group(flag: str) -> str:
    """Return the beginning of its key, if other keys have the same; else "others"."""
    begun = FLAGS[flag].key.partition(".")[0]
    return begun if _SIZES[begun] > 1 else "others"


def _flag(key: str) -> str:
    return "--" + key.replace(".", "-").replace("_", "-")


def _parameter(key: str) -> str:
    return _NAME + key.replace(".", "__")


FLAGS: dict[str, AnySetting] = {_flag(setting.key): setting for setting in ALL if setting.key != _USUAL}
# The number of keys by their beginning.
_SIZES = Counter(setting.key.partition(".")[0] for setting in FLAGS.values())
