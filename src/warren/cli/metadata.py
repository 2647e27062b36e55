"""`warren metadata recover`: recovers damaged or lost metadata of a stopped broker."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from warren.cli.sections import SectionedGroup
from warren.node.metadata_recovery import (
    RecoveryChoice,
    apply_choice,
    orphaned,
    recovery_choices,
    stored_queues,
)
from warren.runtime.locked_directory import DirectoryUnusable, LockedDirectory

# The exit status of `warren serve` for an error at the start.
_REFUSED = 1
_WHAT = {
    "readable": "the readable part of the present file",
    "copy": "the file given with --copy",
    "empty": "nothing: users and virtual hosts are created as at the first start",
}


@click.group(cls=SectionedGroup)
def metadata() -> None:
    """Recover the metadata of a stopped broker."""


@metadata.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--copy", type=click.Path(exists=True, path_type=Path), help="A backup of the metadata to consider."
)
@click.option(
    "--source", "choose", type=click.Choice(tuple(_WHAT)), help="The metadata to use at the next start."
)
@click.option(
    "--apply", "is_applied", is_flag=True, help="Replace the metadata; without this flag nothing is changed."
)
def recover(directory: Path, copy: Path | None, choose: str | None, *, is_applied: bool) -> None:
    """Show how the metadata in DIRECTORY can be recovered; with --source and --apply, replace them.

    Messages of queues that are not in the chosen metadata are kept: the next start quarantines them, and
    `warren quarantine` lists and removes them.
    """
    try:
        folder = LockedDirectory(str(directory))
    except DirectoryUnusable as error:
        _refuse(str(error))
    try:
        _recover(directory, copy, choose, is_applied=is_applied)
    except OSError as error:
        _refuse(str(error))
    finally:
        folder.close()


def _recover(directory: Path, copy: Path | None, choose: str | None, *, is_applied: bool) -> None:
    found = recovery_choices(directory, copy)
    stored = stored_queues(directory)
    messages = sum(one.held.messages for one in stored)
    vhosts = len({one.digits for one in stored})
    click.echo(f"stores: {vhosts} virtual hosts, {len(stored)} queues and streams, {messages} messages")
    for choice in found:
        count, held = orphaned(choice, stored)
        click.echo(f"\n{choice.name}: {_WHAT[choice.name]}")
        click.echo(f"  {choice.problem or 'complete'}")
        click.echo("  names " + ", ".join(f"{number} {what}" for what, number in choice.counts().items()))
        click.echo(
            f"  does not name {count} queues and streams: {held.messages} messages, {held.byte_count} bytes"
        )
    if choose is None:
        if is_applied:
            _refuse("--apply requires --source with one of the names above")
        click.echo("\nnothing was changed; --source NAME --apply replaces the metadata by one of these")
        return
    chosen = next((choice for choice in found if choice.name == choose), None)
    if chosen is None or (chosen.error and choose != "empty"):
        _refuse(f"{choose} cannot be used: {chosen.error if chosen else '--copy is not given'}")
    _put(directory, chosen, is_applied=is_applied)


def _put(directory: Path, chosen: RecoveryChoice, *, is_applied: bool) -> None:
    if not is_applied:
        click.echo(f"\nnothing was changed; --apply replaces the metadata by {chosen.name}")
        return
    apply_choice(directory, chosen, stored_queues(directory))
    click.echo(
        f"\nthe metadata were replaced by {chosen.name}; "
        f"the old ones are in {directory / 'quarantine' / 'metadata'}"
    )


def _refuse(text: str) -> NoReturn:
    click.echo(f"warren: {text}", err=True)
    sys.exit(_REFUSED)
