"""Proves that links between Warren and RabbitMQ lose nothing: shovels, federated exchanges and queues.

Each passes 200,000 messages in each direction while its network is gone for a minute, and while the brokers
at both ends are killed. Two Warrens do the same with losses of power. Then two brokers federate an exchange
both ways while their links are cut for two minutes. Ends with a table, and a line that counts the proofs.
"""

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.table import table  # noqa: E402
from tests.crash.recording import why_impossible  # noqa: E402
from tests.links.both_ways import FULL_CUTS, BothWays  # noqa: E402
from tests.links.brokers import LinkEnd, PowerLossEnd, RabbitMQEnd, WarrenEnd, started  # noqa: E402
from tests.links.links import SET_UPS  # noqa: E402
from tests.links.proof import FULL, Outcome, Proof  # noqa: E402
from tests.rabbitmq import is_installed  # noqa: E402

HEADS = (
    "link", "messages", "cuts", "kills", "lost", "twice", "came back", "at most", "unmarked", "late",
    "unconfirmed", "seconds",
)  # fmt: skip
BOTH_WAYS = "exchanges federated both ways"
DIRECTIONS = ("Warren to RabbitMQ", "RabbitMQ to Warren", "Warren to Warren")


LEGEND = """\
twice        copies beyond the first; at most a prefetch for each cut and kill, and what came back
came back    acknowledged messages whose acknowledgement the source had not synced when it lost its power
unmarked     copies beyond the first of which the link was not told that they are redelivered (federation)
late         first copies behind a later message of their source
unconfirmed  messages whose publisher was not told whether they are confirmed; they may be lost"""


class Task(NamedTuple):
    """One proof to run."""

    kind: str
    direction: str

    @property
    def name(self) -> str:
        """What the table and the option `--only` call it."""
        return f"{self.kind}, {self.direction}"

    @property
    def obstacle(self) -> str:
        """Why it cannot be run here; empty if it can."""
        if "RabbitMQ" in self.direction and not is_installed():
            return "there is no rabbitmq-server"
        return why_impossible() if self.direction == "Warren to Warren" else ""


def main() -> int:
    """Run the proofs; 0 if all of them hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=FULL.messages, help="of each proof: %(default)s")
    parser.add_argument("--cut", type=float, default=FULL.cut_s, help="seconds without network: %(default)s")
    parser.add_argument("--only", default="", help="run the proofs whose names contain this")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of losses of power")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    tasks = [task for task in all_tasks() if options.only in task.name]
    runnable = [task for task in tasks if not task.obstacle]
    for task in tasks:
        if task.obstacle:
            print(f"skipped: {task.name}: {task.obstacle}")
    rows, failed = [], 0
    for task in runnable:
        print(task.name, flush=True)
        try:
            for name, outcome, messages in outcomes(task, options):
                rows.append(row(name, outcome))
                outcome.check(messages)
        except Exception:
            traceback.print_exc()
            print(f"FAILED {task.name}")
            failed += 1
    print(table(HEADS, rows), LEGEND, sep="\n\n", end="\n\n")
    print(f"{len(runnable) - failed} passed, {failed} failed, {len(tasks) - len(runnable)} skipped")
    return 1 if failed else 0


def all_tasks() -> Iterator[Task]:
    """Every kind of link in every direction, and both directions at once."""
    for kind in SET_UPS:
        for direction in DIRECTIONS:
            yield Task(kind, direction)
    yield Task(BOTH_WAYS, "Warren and RabbitMQ")


def outcomes(task: Task, options: argparse.Namespace) -> Iterator[tuple[str, Outcome, int]]:
    """Start the brokers and run a proof; yields a name, what happened, and the number of messages wanted."""
    say = partial(print, " ", flush=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warren-links-")))
        ends = brokers(task.direction, folder, options.seed)
        for end in ends:
            stack.enter_context(started(end))
        if task.kind == BOTH_WAYS:
            both = BothWays(ends, FULL_CUTS, say)
            for source, outcome in both.run().items():
                yield f"{task.kind}, published at {source}", outcome, both.messages
            return
        size = FULL._replace(messages=options.messages, cut_s=options.cut)
        outcome = Proof(*ends, size, say).run(SET_UPS[task.kind])
        yield task.name, outcome, size.messages


def brokers(direction: str, folder: Path, seed: int) -> tuple[LinkEnd, LinkEnd]:
    """The brokers of a direction, from and to; two Warrens lose their power when they are killed."""
    near, far = folder / "from", folder / "to"
    near.mkdir()
    far.mkdir()
    if direction == "Warren to Warren":
        return PowerLossEnd(near, seed), PowerLossEnd(far, seed)
    if direction.startswith("RabbitMQ"):
        return RabbitMQEnd(near), WarrenEnd(far)
    return WarrenEnd(near), RabbitMQEnd(far)


def row(name: str, outcome: Outcome) -> list[str]:
    """The line of the table."""
    found = outcome.found
    figures = (
        found.messages, outcome.cuts, outcome.kills, found.lost, found.duplicates, outcome.came_back,
        outcome.bound, found.duplicates_at_first_delivery, found.late, found.unconfirmed,
        round(outcome.seconds),
    )  # fmt: skip
    return [name, *(f"{figure:,}" for figure in figures)]


if __name__ == "__main__":
    sys.exit(main())
