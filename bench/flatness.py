"""Shows that the cost of a message does not grow with what else the broker holds.

Prints the broker's processor time per message with 1, 1,000 and 100,000 queues, bindings and waiting
messages, and with 1, 100 and 5,000 connections.
"""

import argparse
import contextlib
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brokers import Broker, rabbitmq, warren
from table import figure, ratio, table
from warren.cli.perf.crew import Observer, raise_open_files_limit
from warren.cli.perf.link import Link
from warren.cli.perf.load import Load
from warren.cli.perf.result import traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.uri import Target, parse_uri

THINGS = (1, 1_000, 100_000)
CONNECTIONS = (1, 100, 5_000)
WAITING = {"ack_every": 100, "prefetch": 1_000}
# Few messages at once from each, and few on their way, so that all have their turn.
IN_TURN = {"messages_per_write": 16, "in_flight_max": 50_000}
COST = "broker_cpu_us_per_message"


@dataclass(frozen=True, slots=True)
class Growth:
    """One thing that grows, and the load that is measured meanwhile."""

    text: str
    counts: tuple[int, ...]
    field: str  # of the Load, set to the count; empty: so many idle connections stand by
    load: dict[str, Any]


GROWTHS = [
    Growth("queues, each written to in turn and read", THINGS, "queues", {}),
    Growth("bindings of a direct exchange", THINGS, "bindings", {"exchange_type": "direct"}),
    Growth("bindings of a topic exchange", THINGS, "bindings", {"exchange_type": "topic"}),
    Growth("messages waiting in the queue", THINGS, "waiting", WAITING),
    Growth("idle connections beside", CONNECTIONS, "", {}),
    Growth(
        "connections that publish, 16 messages a write", CONNECTIONS, "producers", {"messages_per_write": 16}
    ),
]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--rabbitmq", action="store_true", help="measure RabbitMQ instead")
    parser.add_argument("--largest", type=int, default=THINGS[-1], help="leave out counts above")
    parser.add_argument("--runs", type=int, default=3, help="a figure is the median of so many")
    parser.add_argument("--duration", type=float, default=2.0, help="seconds measured")
    arguments = parser.parse_args()
    raise_open_files_limit()
    with rabbitmq() if arguments.rabbitmq else warren(arguments.warren) as broker:
        base = Load(target=parse_uri(broker.uri), duration_s=arguments.duration, warmup_s=0.5)
        rows = [row(growth, base, broker, arguments) for growth in GROWTHS]
        print(
            f"{broker.name} {broker.version}: processor time per message in µs, median of {arguments.runs}\n"
        )
        print(table(["as these grow", "few", "more", "many", "many / few"], rows))


def row(growth: Growth, base: Load, broker: Broker, arguments: argparse.Namespace) -> list[str]:
    """One line: the cost at each count."""
    cells, costs = [], []
    for count in growth.counts:
        if count > arguments.largest:
            cells.append("-")
            continue
        found = [cost(growth, count, base, broker) for _ in range(arguments.runs)]
        costs.append(statistics.median(found))
        cells.append(f"{count:,}: {figure(costs[-1])}")
        print(f"{growth.text} {cells[-1]}", file=sys.stderr, flush=True)
    return [growth.text, *cells, ratio(costs[-1] / costs[0]) if costs[0] else "-"]


def cost(growth: Growth, count: int, base: Load, broker: Broker) -> float:
    """The broker's processor time per message with `count` of what grows."""
    changes = growth.load | ({growth.field: count} if growth.field else {})
    with idle_connections(base.target, 0 if growth.field else count):
        traffic = run_traffic(replace(base, **changes), Observer([broker.pid]))
    return traffic_result(growth.text, changes, traffic).figures.get(COST, 0.0)


@contextlib.contextmanager
def idle_connections(target: Target, count: int) -> Iterator[None]:
    """So many connections that do nothing."""
    links = [Link(target) for _ in range(count)]
    try:
        yield
    finally:
        for link in links:
            link.close()


if __name__ == "__main__":
    main()
