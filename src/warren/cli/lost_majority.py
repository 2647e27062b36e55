"""`warren cluster recover`: a stopped member goes on alone when a majority is lost for good."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import click

from warren.node.cluster_recovery import RecoveryRefused, StoppedMember, continue_alone, read_member
from warren.runtime.locked_directory import DirectoryUnusable, LockedDirectory

# The exit status of `warren serve` for an error at the start.
_REFUSED = 1


def recover_cluster(directory: Path, alive: list[str], *, is_loss_accepted: bool) -> None:
    """Show what a recovery with the member in `directory` would lose, or perform it if that is accepted."""
    try:
        folder = LockedDirectory(str(directory))
    except DirectoryUnusable as error:
        _refuse(str(error))
    try:
        member = read_member(directory)
        _check_alive(member, alive)
        _report(member, alive)
        if not is_loss_accepted:
            click.echo("\nnothing was changed; --accept-loss makes this node the only member of the cluster")
            return
        count = member.divided_queue_count
        continue_alone(directory, member)
        _report_done(directory, member, alive)
        if count:
            queues = "1 quorum queue" if count == 1 else f"{count} quorum queues"
            click.echo(
                f"then recover {queues} of more than two replicas: warren queues recover QUEUE --accept-loss"
            )
    except RecoveryRefused as error:
        _refuse(str(error))
    except OSError as error:
        _refuse(f"{error.filename or directory}: {error.strerror or error}")
    finally:
        folder.close()


def _check_alive(member: StoppedMember, alive: list[str]) -> None:
    known = [one.name for one in member.others]
    for name in alive:
        if name not in known:
            raise RecoveryRefused(f"{name!r} is no other member of the cluster: {', '.join(known)}")


def _report(member: StoppedMember, alive: list[str]) -> None:
    found = member.found
    reached = max([found.index, *(entry.index for entry, _ in found.tail)])
    click.echo(f"node {member.own.name}, cluster {member.metadata.members.cluster_id.hex()}")
    click.echo(f"  metadata up to change {reached} of {_time(found.now)}: what was agreed on later is lost")
    if found.tail:
        click.echo(f"  the last {len(found.tail)} of them may not have been agreed on, but will count")
    for other in member.others:
        state = "to be admitted again" if other.name in alive else "removed"
        count = member.queue_count_on(other)
        click.echo(f"  {other.name}: {state}; {count} queues on it become unavailable, with their messages")


def _report_done(directory: Path, member: StoppedMember, alive: list[str]) -> None:
    click.echo(
        f"\n{member.own.name} is the only member of cluster {member.metadata.members.cluster_id.hex()}"
    )
    click.echo(f"the old metadata are in {directory / 'quarantine' / 'metadata'}; start the node now")
    if alive:
        click.echo("then have each of these join, after what is needed was copied from its data directory:")
    for name in alive:
        click.echo(f"  on {name}: stop it, start it with an empty data directory, and")
        click.echo(f"    warren cluster join {member.own.host}:{member.own.cluster_port}")


def _time(now: int) -> str:
    return f"{datetime.fromtimestamp(now / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _refuse(text: str) -> NoReturn:
    click.echo(f"warren: {text}", err=True)
    sys.exit(_REFUSED)
