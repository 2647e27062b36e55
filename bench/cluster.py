"""Measures a cluster of three nodes on this machine, beside one of RabbitMQ: the cost of using another node.

The traffic of one queue, or of many quorum queues with three replicas: its producer and its consumer are
connected to the node that has the queue, or one of them or both to other nodes. CPU time is that of all three
nodes, for each message. Then: declarations of durable queues on 32 connections, spread over the nodes; and
how much each node uses when nothing is done.
"""

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokers import Broker, has_rabbitmq, rabbitmq_cluster, warren_cluster
from declares import Clients, durable
from rows import CONFIRMED, QUORUM_ROWS, RATE_ROWS
from table import figure, ratio, table
from warren.cli.perf.load import Load
from warren.cli.perf.result import traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.usage import own_cpu_s
from warren.cli.perf.worker_group import Observer
from warren.client.uri import parse_uri

NODES = 3
WARMUP_S = 0.5
CPU, RATE = "broker_cpu_us_per_message", "consumed_per_s"
# Fewer messages, of 16 B and of 1 KiB, than a queue of Warren keeps in its 16 MiB of memory: what it writes
# to its disk when the consumer is slower than the producer is another cost.
IN_MEMORY_MAX, LARGE_IN_MEMORY_MAX = 50_000, 12_000
LOADS: dict[str, dict[str, Any]] = {
    "a16": {"in_flight_max": IN_MEMORY_MAX},
    "a1k": {"size": 1024, "in_flight_max": LARGE_IN_MEMORY_MAX},
    "b16": CONFIRMED,
    "b1k": CONFIRMED | {"size": 1024},
    # Quorum queues, which have a replica on each node; at a rate, each message comes alone.
    **{row.name: row.load for row in (*QUORUM_ROWS, *RATE_ROWS) if row.load.get("queue_type") == "quorum"},
}


@dataclass(frozen=True, slots=True)
class Way:
    """The nodes of the producer and of the consumer; the queue is on node 0."""

    text: str
    producer: int
    consumer: int


LOCAL = Way("both at the home", 0, 0)
WAYS = [
    LOCAL,
    Way("published elsewhere", 1, 0),
    Way("consumed elsewhere", 0, 2),
    Way("both elsewhere", 1, 2),
]
Clusters = Mapping[str, Sequence[Broker]]


def main() -> None:
    """Measure the clusters in turns, and print three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose cluster is measured")
    parser.add_argument("--no-rabbitmq", action="store_true", help="measure Warren alone")
    parser.add_argument("--loads", nargs="*", choices=LOADS, default=list(LOADS), help="loads of the traffic")
    parser.add_argument("--runs", type=int, default=5, help="measurements of each figure")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of one measurement of traffic")
    parser.add_argument("--count", type=int, default=3_000, help="queues of one measurement of declarations")
    parser.add_argument("--connections", type=int, default=32, help="connections that declare")
    parser.add_argument("--idle-s", type=float, default=20.0, help="duration of the measurement without work")
    chosen = parser.parse_args()
    with contextlib.ExitStack() as stack:
        clusters: dict[str, list[Broker]] = {
            "warren": stack.enter_context(warren_cluster(chosen.warren, NODES))
        }
        if has_rabbitmq() and not chosen.no_rabbitmq:
            clusters["rabbitmq"] = stack.enter_context(rabbitmq_cluster(NODES))
        versions = ", ".join(f"{name} {nodes[0].version}" for name, nodes in clusters.items())
        print(f"{versions}; three nodes each; {chosen.runs} runs\n", flush=True)
        print(_idle_table(clusters, chosen.idle_s), "\n", flush=True)
        for load in chosen.loads:
            print(_traffic_table(clusters, load, chosen), "\n", flush=True)
        print(_declares_table(clusters, chosen), flush=True)


def _cpu_s(nodes: Sequence[Broker]) -> float:
    return sum(own_cpu_s(node.pid) for node in nodes)


def _idle_table(clusters: Clusters, seconds: float) -> str:
    before = {name: [own_cpu_s(node.pid) for node in nodes] for name, nodes in clusters.items()}
    time.sleep(seconds)
    rows = []
    for name, nodes in clusters.items():
        used = [own_cpu_s(node.pid) - at for node, at in zip(nodes, before[name], strict=True)]
        rows.append([name, *(f"{used_s / seconds * 100:.2f}" for used_s in used)])
    return table(["idle, % of a core", *(f"node {number}" for number in range(NODES))], rows)


def _traffic_table(clusters: Clusters, load: str, chosen: argparse.Namespace) -> str:
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(chosen.runs):
        for way in WAYS:
            for name, nodes in clusters.items():
                measured = _measure(nodes, way, LOADS[load], chosen.seconds)
                found.setdefault((name, way.text), []).append(measured)
    rows = []
    for way in WAYS:
        cells = [way.text]
        for name in clusters:
            runs, local = found[name, way.text], found[name, LOCAL.text]
            more = [one[CPU] - other[CPU] for one, other in zip(runs, local, strict=True)]
            cells += [
                figure(statistics.median(one[CPU] for one in runs)),
                "" if way is LOCAL else f"{statistics.median(more):+.2f}",
                f"{statistics.median(one[RATE] for one in runs):,.0f}",
            ]
        if "rabbitmq" in clusters:
            pairs = zip(found["rabbitmq", way.text], found["warren", way.text], strict=True)
            cells.append(ratio(statistics.median(theirs[CPU] / ours[CPU] for theirs, ours in pairs)))
        rows.append(cells)
    heads = [load, *(head for name in clusters for head in (f"{name}: µs", "more", "per second"))]
    return table([*heads, "ratio"] if "rabbitmq" in clusters else heads, rows)


def _measure(nodes: Sequence[Broker], way: Way, load: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """The figures of one run; CPU time is the sum of all nodes."""
    given = Load(
        target=parse_uri(nodes[0].uri),
        publish_target=parse_uri(nodes[way.producer].uri),
        consume_target=parse_uri(nodes[way.consumer].uri),
        duration_s=seconds,
        warmup_s=WARMUP_S,
        **load,
    )
    traffic = run_traffic(given, Observer([node.pid for node in nodes]))
    return traffic_result(way.text, dict(load), traffic).figures


def _declares_table(clusters: Clusters, chosen: argparse.Namespace) -> str:
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in clusters}
    rounds = chosen.count // chosen.connections
    clients = {name: Clients(nodes, chosen.connections) for name, nodes in clusters.items()}
    for each in clients.values():
        durable(each, max(rounds // 10, 1))()
    for _ in range(chosen.runs):
        for name, nodes in clusters.items():
            begin_cpu_s, begin_s = _cpu_s(nodes), time.monotonic()
            clean_up = durable(clients[name], rounds)
            count, took_s = rounds * chosen.connections, time.monotonic() - begin_s
            figures[name].append(((_cpu_s(nodes) - begin_cpu_s) * 1e6 / count, count / took_s))
            clean_up()
    for each in clients.values():
        each.close()
    rows = [
        [
            name,
            figure(statistics.median(cpu for cpu, _ in runs)),
            f"{statistics.median(rate for _, rate in runs):,.0f}",
        ]
        for name, runs in figures.items()
    ]
    return table([f"durable queues, {chosen.connections} connections", "CPU µs each", "per second"], rows)


if __name__ == "__main__":
    main()
