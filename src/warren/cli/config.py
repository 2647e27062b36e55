"""`warren config`: what every setting is and where it comes from, and whether a file is right."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from warren.cli.settings import WithFlags, entries, with_settings
from warren.node.config import Config, load
from warren.node.config_file import ConfigError
from warren.node.shown import Shown, shown

# As `warren serve`, which refuses the same.
_REFUSED = 1


@click.group()
def config() -> None:
    """What the settings are, and whether a file is right; no broker is asked."""


@config.command(cls=WithFlags)
@with_settings
@click.option("--json", "is_json", is_flag=True, help="For programs.")
@click.option("--changed", is_flag=True, help="Only what is not as it is by default.")
def show(*, is_json: bool, changed: bool, **flags: Any) -> None:
    """Print every setting, its value and where that comes from; passwords are not shown.

    Flags are those of warren serve.
    """
    found = [
        row for row in shown(_loaded(flags["config"] or "", flags)) if row.origin != "default" or not changed
    ]
    if is_json:
        click.echo(json.dumps([asdict(row) for row in found], indent=2))
        return
    widths = [max(map(len, column)) for column in zip(*map(_cells, found), strict=True)] if found else []
    for row in found:
        cells = [cell.ljust(width) for cell, width in zip(_cells(row), widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


@config.command()
@click.argument("file")
def check(file: str) -> None:
    """Say whether FILE can be used, and which of its keys have no effect."""
    found = _loaded(file)
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    given = sum(row.origin.startswith(file) for row in shown(found))
    click.echo(f"{file}: can be used; settings in it: {given}")


def _loaded(file: str, flags: Mapping[str, Any] | None = None) -> Config:
    try:
        return load(file, os.environ, entries(flags) if flags is not None else ())
    except ConfigError as error:
        click.echo(f"warren: {error}", err=True)
        sys.exit(_REFUSED)


def _cells(row: Shown) -> tuple[str, str, str]:
    return row.key, "none" if row.value is None else row.value, row.origin
