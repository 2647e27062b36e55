"""Measures the latency of one client, and the broker's memory, while other clients load the broker.

The client publishes and consumes 1,000 transient messages a second; a figure is the median of several runs.
"""

import argparse
import contextlib
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brokers import NOTHING, Broker, rabbitmq, warren
from table import figure, ratio
from warren.cli.perf.load import Load
from warren.cli.perf.result import traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.usage import usage
from warren.cli.perf.worker_group import LoadSnapshot, Observer
from warren.client.uri import parse_uri

RATE = 1000
SETTLE_S = 1.0
MEBIBYTE = 1 << 20
HEADS = ["beside", "p50 µs", "p99 µs", "max µs", "p50 / alone", "p99 / alone", "cores", "MiB more, at most"]


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """The figures of the client in each run, and the broker's memory, once a second."""

    runs: list[dict[str, float]]
    resident_bytes: list[int]

    def median(self, name: str) -> float:
        """Return the median of a figure; 0 if no run has it."""
        return statistics.median(figures.get(name, 0.0) for figures in self.runs)


def parse_arguments(text: str, **more: str) -> argparse.Namespace:
    """Parse the command line of a benchmark; `more` are options with text values, and their help."""
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--rabbitmq", action="store_true", help="measure RabbitMQ instead")
    parser.add_argument("--duration", type=float, default=3.0, help="seconds of each measurement")
    for name, meaning in more.items():
        parser.add_argument(f"--{name}", default="", help=meaning)
    parser.add_argument("--runs", type=int, default=3, help="a figure is the median of so many")
    return parser.parse_args()


def chosen(
    arguments: argparse.Namespace, environment: Mapping[str, str] = NOTHING, *, http: int = 0
) -> contextlib.AbstractContextManager[Broker]:
    """Start the broker that the command line selects; `http` is the port of Warren's HTTP API."""
    if arguments.rabbitmq:
        return rabbitmq(environment)
    return warren(arguments.warren, environment, http=(http, 0))


def probe(broker: Broker, arguments: argparse.Namespace) -> ClientFigures:
    """Measure the latency of the client now."""
    load = Load(
        target=parse_uri(broker.uri), rate=RATE, duration_s=arguments.duration, warmup_s=0.5, processes=2
    )
    resident: list[int] = []

    def watch(_: LoadSnapshot, now: LoadSnapshot) -> None:
        resident.append(now.broker.resident_bytes)

    observer = Observer([broker.pid], on_progress=watch)
    runs = []
    for _ in range(arguments.runs):
        runs.append(traffic_result("probe", {}, run_traffic(load, observer)).figures)
        resident.append(resident_bytes(broker))
    return ClientFigures(runs, resident)


def line(text: str, beside: ClientFigures, alone: ClientFigures, before_bytes: int) -> list[str]:
    """Return a row under HEADS."""
    names = [f"delivery_{percent}_us" for percent in ("p50", "p99", "max")]
    cells = [text, *(figure(beside.median(name)) for name in names)]
    cells += [
        ratio(beside.median(name) / alone.median(name)) if alone.median(name) else "-" for name in names[:2]
    ]
    more = max(beside.resident_bytes) - before_bytes
    return [*cells, figure(beside.median("broker_cores")), figure(more / MEBIBYTE)]


def resident_bytes(broker: Broker) -> int:
    """Return the broker's resident memory, in bytes."""
    return usage([broker.pid]).resident_bytes
