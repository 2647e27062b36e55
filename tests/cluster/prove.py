"""Proves that quorum queues on several nodes lose nothing that they confirmed, and keep nothing twice.

Runs the fourteen scenarios of RabbitMQ's Jepsen tests for a while each: partitions of four shapes for 10 or
30 seconds, consumers that are called, poll or both, and messages that are dead-lettered when they expire.
Then what those leave out: kills, stops, pauses, breaks of 43 ms, partitions in one direction, disks that
fail, members that come and go, and all of it by chance. It begins again until the time is over, and ends
with a table and a line that counts the runs.
"""

import argparse
import logging
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.table import table  # noqa: E402
from tests.cluster import disturbances as by  # noqa: E402
from tests.cluster.disturbances import PARTITIONS, Disturbance  # noqa: E402
from tests.cluster.proof import Findings, Proof  # noqa: E402
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster  # noqa: E402
from tests.integration.faults import Faults, NoCompiler  # noqa: E402

THREE, FIVE = ("a", "b", "c"), ("a", "b", "c", "d", "e")
# For each consumer whether it polls with basic.get.
CALLED, POLLING, MIXED = (False, False), (True, True), (False, True)
HEADS = (
    "run", "nodes", "faults", "confirmed", "lost", "twice", "late", "recovered", "redelivered", "gap s",
    "seconds",
)  # fmt: skip
LEGEND = """\
lost         confirmed, and in no queue and with no consumer
twice        came again without the mark: enqueued twice, or handed out while another consumer held it; dead
             letters are kept at least once, and may
late         came without the mark behind a later message of the same connection, to the same consumer
recovered    not confirmed, and kept all the same
redelivered  came again with the mark
gap s        the longest time that a publisher got no confirm"""


class Scenario(NamedTuple):
    """One run: what fails, for how many seconds at a time, and who is there."""

    name: str
    disturbance: Disturbance | None
    each_s: float
    nodes: tuple[str, ...] = THREE
    polls: Sequence[bool] = MIXED
    has_dead_letters: bool = False


def scenarios() -> list[Scenario]:
    """RabbitMQ's fourteen, then the others."""
    found = [
        Scenario(f"{name}, {each_s} s", disturbance, each_s, FIVE)
        for each_s in (30, 10)
        for name, disturbance in PARTITIONS.items()
    ]
    for each_s in (30, 10):
        named = f"random halves, {each_s} s"
        found += [
            Scenario(f"{named}, called", by.random_halves, each_s, FIVE, CALLED),
            Scenario(f"{named}, polling", by.random_halves, each_s, FIVE, POLLING),
            Scenario(f"{named}, dead letters", by.random_halves, each_s, FIVE, MIXED, has_dead_letters=True),
        ]
    return [
        *found,
        Scenario("one way", by.one_way, 10),
        Scenario("breaks of 43 ms", by.blips, 20),
        Scenario("kill", by.kill, 2),
        Scenario("kill the leader", by.kill_leader, 2),
        Scenario("kill the leader, dead letters", by.kill_leader, 2, has_dead_letters=True),
        Scenario("kill all", by.kill_all, 5),
        Scenario("stop", by.stop, 2),
        Scenario("pause", by.pause, 20),
        Scenario("disk", None, 10),
        Scenario("members", by.change_members, 4),
        Scenario("everything", by.EVERYTHING, 5),
        Scenario("everything, five nodes", by.EVERYTHING, 5, FIVE),
    ]


def main() -> int:
    """Run the scenarios; 0 if all of them hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="of all runs together: %(default)s")
    parser.add_argument("--seconds", type=float, default=45, help="of failures in each run: %(default)s")
    parser.add_argument("--only", default="", help="run the scenarios whose names contain this")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what chance decides")
    options = parser.parse_args()
    for name in ("pika", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    print(f"seed {options.seed}", flush=True)
    chosen = [scenario for scenario in scenarios() if options.only in scenario.name]
    end = time.monotonic() + options.minutes * 60
    rows, runs, failed, skipped = [], 0, 0, 0
    for number, scenario in enumerate(cycle(chosen)):
        if time.monotonic() > end:
            break
        started = time.monotonic()
        runs += 1
        try:
            count, found = run(scenario, random.Random(options.seed + number), options.seconds)
            rows.append(row(scenario, count, found, time.monotonic() - started))
            print(", ".join(f"{head} {cell}" for head, cell in zip(HEADS, rows[-1], strict=True)), flush=True)
            found.check(may_come_twice=scenario.has_dead_letters)
        except NoCompiler as error:
            print(f"skipped: {scenario.name}: {error}")
            skipped += 1
        except Exception:
            traceback.print_exc()
            print(f"FAILED {scenario.name}: run {number} of seed {options.seed}", flush=True)
            failed += 1
    print(table(HEADS, rows), LEGEND, sep="\n\n", end="\n\n")
    total = sum(int(cells[3].replace(",", "")) for cells in rows)
    print(f"{total:,} messages confirmed in {len(rows)} runs")
    print(f"{runs - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def run(scenario: Scenario, chance: random.Random, seconds: float) -> tuple[int, Findings]:
    """Start the nodes, let them fail for some seconds, and count; returns how often something failed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warren-cluster-")))
        disturbance, environment = scenario.disturbance, {}
        if disturbance is None:
            faults = Faults(folder)
            disturbance, environment = by.failing_disk(faults), faults.environment
        cluster = stack.enter_context(warren_cluster(folder, scenario.nodes, **environment))
        stack.callback(lambda: sys.exc_info()[0] and show(cluster))
        proof = Proof(cluster, polls=scenario.polls, has_dead_letters=scenario.has_dead_letters)
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            disturbance(proof, chance, scenario.each_s)
            proof.mended()
            count += 1
        return count, proof.end()


def show(cluster: WarrenCluster) -> None:
    """Print whom each node sees, and the end of its log."""
    for node in cluster.nodes.values():
        up = [other.name for other in cluster.nodes.values() if cluster.sees(node, other)]
        print(
            f"{node.name} sees {' '.join(up) or 'nobody'}",
            *node.log.read_text().splitlines()[-12:],
            sep="\n  ",
        )


def row(scenario: Scenario, count: int, found: Findings, seconds: float) -> list[str]:
    """The line of the table."""
    figures = (
        len(scenario.nodes), count, found.confirmed, found.lost, found.twice, found.late, found.recovered,
        found.redelivered,
    )  # fmt: skip
    return [scenario.name, *(f"{figure:,}" for figure in figures), f"{found.gap_s:.1f}", f"{seconds:.0f}"]


if __name__ == "__main__":
    sys.exit(main())
