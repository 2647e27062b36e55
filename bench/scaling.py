"""Shows that the cost of a message does not grow with what else the broker holds.

Prints the broker's processor time per message with 1, 1,000 and 100,000 queues, bindings and waiting
messages, with a million and (`--long`) ten million messages of 1 KiB that wait on the disk, and with 1, 100
and 5,000 connections. A figure is the minimum of several runs, since other work on the machine only
adds to it. The table also contains the broker's memory with few and with many.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from brokers import Broker, rabbitmq, warren
from table import figure, ratio, table
from warren.cli.perf.connection import open_connection
from warren.cli.perf.load import Load
from warren.cli.perf.report import print_setup
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.worker_group import LoadSnapshot, Observer, raise_open_files_limit
from warren.client.uri import Target, parse_uri

THINGS = (1, 1_000, 100_000)
ON_DISK = (1, 1_000_000, 10_000_000)
LARGEST = 1_000_000  # by default; ten million take 11 GB of disk, and minutes to publish
CONNECTIONS = (1, 100, 5_000)
WAITING = {"ack_every": 100, "prefetch": 1_000}
PERSISTENT = WAITING | {"is_persistent": True, "size": 1024, "confirm_window": 1_000}
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Growth:
    """A kind of object whose number grows, and the load that is measured with it."""

    name: str
    text: str
    counts: tuple[int, ...]
    field: str  # field of Load that is set to the count; empty: the count of idle connections
    load: dict[str, Any]


GROWTHS = [
    Growth("queues", "queues, each written to in turn and read", THINGS, "queues", {}),
    Growth("direct", "bindings of a direct exchange", THINGS, "bindings", {"exchange_type": "direct"}),
    Growth("topic", "bindings of a topic exchange", THINGS, "bindings", {"exchange_type": "topic"}),
    Growth("waiting", "messages waiting in the queue", THINGS, "waiting", WAITING),
    Growth("disk", "persistent messages of 1 KiB waiting in the queue", ON_DISK, "waiting", PERSISTENT),
    Growth(
        "quorum",
        "messages of 1 KiB waiting in a quorum queue",
        ON_DISK,
        "waiting",
        PERSISTENT | {"queue_type": "quorum"},
    ),
    Growth("idle", "idle connections beside", CONNECTIONS, "", {}),
    Growth(
        "publishing",
        "connections that publish, 16 messages a write",
        CONNECTIONS,
        "producers",
        {"messages_per_write": 16},
    ),
]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--rabbitmq", action="store_true", help="measure RabbitMQ instead")
    parser.add_argument("--largest", type=int, default=LARGEST, help="leave out counts above")
    parser.add_argument("--long", action="store_true", help="leave out none")
    names = [growth.name for growth in GROWTHS]
    parser.add_argument("--rows", nargs="*", choices=names, default=names, help="only these")
    parser.add_argument("--runs", type=int, default=5, help="a figure is the least of so many")
    parser.add_argument("--duration", type=float, default=1.0, help="seconds of each run")
    arguments = parser.parse_args()
    raise_open_files_limit()
    with rabbitmq() if arguments.rabbitmq else warren(arguments.warren) as broker:
        base = Load(target=parse_uri(broker.uri), duration_s=arguments.duration, warmup_s=0.5)
        growths = [growth for growth in GROWTHS if growth.name in arguments.rows]
        rows = [row(growth, base, broker, arguments) for growth in growths]
        print(
            f"{broker.name} {broker.version}: processor time per message in µs, least of {arguments.runs}\n"
        )
        heads = ["as these grow", "few", "more", "many", "many / few", "MiB, few", "MiB, many"]
        print(table(heads, rows))


def row(growth: Growth, base: Load, broker: Broker, arguments: argparse.Namespace) -> list[str]:
    """Return one line: the cost at each count."""
    cells, found = [], []
    for count in growth.counts:
        if count > arguments.largest and not arguments.long:
            cells.append("-")
            continue
        found.append(cost(growth, count, (base, broker, arguments.runs)))
        cells.append(f"{count:,}: {figure(found[-1].cpu_us)}")
        print_setup(f"{growth.text} {cells[-1]}")
    few, many = found[0], found[-1]
    return [
        growth.text,
        *cells,
        ratio(many.cpu_us / few.cpu_us),
        figure(few.mebibytes),
        figure(many.mebibytes),
    ]


@dataclass(frozen=True, slots=True)
class Cost:
    """The broker's CPU time for a message, and its memory."""

    cpu_us: float
    mebibytes: float


def cost(growth: Growth, count: int, measured: tuple[Load, Broker, int]) -> Cost:
    """Measure the cost of a message with `count` objects."""
    base, broker, runs = measured
    changes = growth.load | ({growth.field: count} if growth.field else {})
    observer = Observer([broker.pid], on_setup=print_setup)
    with idle_connections(base.target, 0 if growth.field else count):
        traffic = run_traffic(replace(base, **changes), observer, windows=runs)
    return Cost(
        min(cost_between(before, after) for before, after in pairwise(traffic.moments)),
        traffic.end.broker.resident_bytes / MEBIBYTE,
    )


def cost_between(before: LoadSnapshot, after: LoadSnapshot) -> float:
    """Return the broker's CPU time per message between two snapshots, in µs."""
    consumed = after.totals.consumed - before.totals.consumed
    if not consumed:
        sys.exit("nothing was consumed in a whole run: there is no cost of a message to tell")
    return (after.broker.cpu_s - before.broker.cpu_s) / consumed * 1e6


@contextlib.contextmanager
def idle_connections(target: Target, count: int) -> Iterator[None]:
    """Open `count` connections that do nothing."""
    links = [open_connection(target) for _ in range(count)]
    try:
        yield
    finally:
        for connection in links:
            connection.close()


if __name__ == "__main__":
    main()
