"""`warren config`: shows settings with their origin, and checks configuration files."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import click
from msgspec.structs import asdict

from warren.cli.sections import SectionedGroup
from warren.cli.setting_flags import SettingFlagsCommand, config_entries, with_setting_flags
from warren.metadata.users import PasswordHash
from warren.node.cluster_config import check_cluster
from warren.node.config import Config, load
from warren.node.config_file import ConfigError
from warren.node.effective_settings import MASK, EffectiveSetting, effective_settings
from warren.node.static_shovels import static_shovels
from warren.node.vhost_defaults import vhost_defaults

# The exit status of `warren serve` for a configuration error.
_REFUSED = 1


@click.group(cls=SectionedGroup)
def config() -> None:
    """Show settings and check a configuration file; needs no broker."""


@config.command(cls=SettingFlagsCommand)
@with_setting_flags
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
@click.option("--changed", is_flag=True, help="Only settings that differ from their defaults.")
def show(*, is_json: bool, changed: bool, **flags: Any) -> None:
    """Print every setting with its value and origin, as a valid configuration file.

    Settings without a value, and passwords, which are not shown, are comments. Takes the flags of warren
    serve.
    """
    found = [
        row
        for row in effective_settings(_loaded(flags["config"] or "", flags))
        if row.origin != "default" or not changed
    ]
    if is_json:
        click.echo(json.dumps([asdict(row) for row in found], indent=2))
        return
    lines = [_line(row) for row in found]
    width = max(map(len, lines), default=0)
    for line, row in zip(lines, found, strict=True):
        click.echo(f"{line.ljust(width)}  # {row.origin}")


@config.command()
@click.argument("file")
def check(file: str) -> None:
    """Check whether FILE is valid, and say of each of its keys whether it has an effect.

    RabbitMQ's advanced.config is checked with it, if it is beside FILE.
    """
    found = _loaded(file)
    try:
        static = static_shovels(found)
        of_cluster = check_cluster(found)
        of_vhosts = vhost_defaults(found, _no_hash).warnings
    except ConfigError as error:
        click.echo(f"warren: {error}", err=True)
        sys.exit(_REFUSED)
    files = tuple(name for name in (file, found.advanced.file) if name)
    effects = [(entry, reason) for entry, reason in found.effects() if entry.place.startswith(files)]
    lines = [
        f"{entry.place}: {entry.key} has " + (f"no effect: {reason}" if reason else "an effect")
        for entry, reason in effects
    ]
    for warning in (*found.warnings, *static.warnings, *of_cluster, *of_vhosts):
        if warning not in lines:
            click.echo(f"warning: {warning}", err=True)
    for line in lines:
        click.echo(line)
    click.echo(
        f"{file}: valid; {sum(not reason for _, reason in effects)} of {len(effects)} keys have an effect"
    )


def _loaded(file: str, flags: Mapping[str, Any] | None = None) -> Config:
    try:
        return load(file, os.environ, config_entries(flags) if flags is not None else ())
    except ConfigError as error:
        click.echo(f"warren: {error}", err=True)
        sys.exit(_REFUSED)


def _no_hash(_: str) -> PasswordHash:
    """The hash of a password that is only checked."""
    return PasswordHash(b"", "")


def _line(row: EffectiveSetting) -> str:
    """Return `row` as a line of a configuration file; a comment if it has no value or a masked one."""
    if row.value is None:
        return f"# {row.key} ="
    if row.value == MASK:
        return f"# {row.key} = {MASK}"
    is_plain = "#" not in row.value and row.value.strip() == row.value and row.value[0] not in "'\""
    return f"{row.key} = {row.value}" if is_plain else f'{row.key} = "{row.value}"'
