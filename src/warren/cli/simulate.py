"""`warren simulate`: runs a simulated broker with the queues of a definitions file, and crashes it."""

import json
import sys
import time
from pathlib import Path

import click
import msgspec

from warren.metadata.commands import MetadataCommand
from warren.metadata.definitions_import import DefinitionsError, import_commands
from warren.metadata.machine import Metadata
from warren.metadata.users import PasswordHash
from warren.simulation.actions import Action
from warren.simulation.campaign import BrokenRun, CampaignTotals, repeat, run_seeds
from warren.simulation.topology import Topology, standard_topology, topology_of
from warren.vhost.definitions_check import check_definitions

_FOUND = 1
_MINUTE_S = 60


@click.command()
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first seed.")
@click.option(
    "--minutes", type=click.FloatRange(min=0), default=1.0, show_default=True, help="How long to run."
)
@click.option("--seeds", type=click.IntRange(min=1), help="Run so many seeds, however long they take.")
@click.option(
    "--actions", "action_count", type=click.IntRange(min=1), default=150, show_default=True,
    help="Actions of each seed.",
)  # fmt: skip
@click.option(
    "--definitions", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use the queues, exchanges, bindings and policies of this file; without it, all kinds of them.",
)  # fmt: skip
@click.option(
    "--repeat", "repeated", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Repeat the actions in this file, as they were printed.",
)  # fmt: skip
def simulate(
    seed: int,
    minutes: float,
    seeds: int | None,
    action_count: int,
    definitions: Path | None,
    repeated: Path | None,
) -> None:
    """Run a broker on simulated disks, crash it at any point, and verify what clients were promised.

    Needs no running broker, and writes nothing. One seed is one run: clients declare, publish, consume and
    acknowledge while connections are cut, disks are full or fail, the clock jumps, and the broker is killed
    or loses its power. The same seed repeats the same run. If a promise is broken, the fewest actions that
    break it are printed, and the exit status is 1.
    """
    topology = standard_topology() if definitions is None else _read(definitions)
    if repeated is not None:
        _repeat(topology, repeated.read_bytes())
        return
    end = time.monotonic() + minutes * _MINUTE_S

    def go_on(totals: CampaignTotals) -> bool:
        return totals.seeds < seeds if seeds is not None else time.monotonic() < end

    click.echo(f"simulating {len(topology.queues)} queues, from seed {seed}")
    totals, finding = run_seeds(topology, seed, action_count, go_on)
    for line in totals.lines():
        click.echo(line)
    if finding is not None:
        _show(finding, definitions)
        sys.exit(_FOUND)


def _show(finding: BrokenRun, definitions: Path | None) -> None:
    option = "" if definitions is None else f" --definitions {definitions}"
    click.echo(f"\nseed {finding.seed}: {finding.text}")
    click.echo(f"{len(finding.actions)} actions are enough:")
    for action in finding.actions:
        click.echo(f"  {action}")
    click.echo(f"to repeat them: warren simulate{option} --repeat FILE, with this FILE:")
    click.echo(msgspec.json.encode(finding.actions).decode())


def _repeat(topology: Topology, written: bytes) -> None:
    try:
        actions = msgspec.json.decode(written, type=list[Action])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise click.UsageError(f"--repeat: {error}") from error
    broken = repeat(topology, actions)
    click.echo(broken or f"{len(actions)} actions break nothing")
    if broken:
        sys.exit(_FOUND)


def _read(path: Path) -> Topology:
    """The topology of a definitions file; a usage error if it cannot be imported."""
    try:
        commands: list[MetadataCommand] = import_commands(json.loads(path.read_bytes()), _no_hash)
        return topology_of(check_definitions(commands, Metadata()).complete())
    except (OSError, ValueError, DefinitionsError) as error:
        raise click.UsageError(f"definitions file {str(path)!r}: {error}") from error


def _no_hash(password: str) -> PasswordHash:
    """Clients of the simulation log in without a password."""
    return PasswordHash(b"", "")
