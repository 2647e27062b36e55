"""Shows what one client suffers, and what the broker's memory does, while others behave badly.

A client publishes and consumes 1,000 messages a second; its latency is measured alone, then beside each
kind of misbehaviour. Then come bodies of 128 MiB and connection churn, which have figures of their own.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from brokers import Broker, rabbitmq, warren
from disturbances import (
    Behaviour,
    declare_endlessly,
    misbehaving,
    publish_endlessly,
    reconnect_endlessly,
    send_octet_by_octet,
    stop_reading,
    trickle,
)
from table import figure, ratio, table
from warren.cli.perf.capacity import measure_churn
from warren.cli.perf.crew import Observer
from warren.cli.perf.load import Load
from warren.cli.perf.result import Result, traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.uri import parse_uri
from warren.cli.perf.usage import usage

LARGE_BYTES = 128 << 20
LARGE_S = 6.0
SETTLE_S = 1.0
BEHAVIOURS: dict[str, tuple[Behaviour, int, float]] = {  # what, how many processes, seconds to get going
    "an endless publisher": (publish_endlessly, 1, 1),
    "an endless declarer": (declare_endlessly, 1, 1),
    "a storm of reconnects": (reconnect_endlessly, 2, 1),
    "ten consumers that stop reading": (stop_reading, 1, 1),
    "a client that sends octet by octet": (send_octet_by_octet, 1, 1),
    "5,000 connections that trickle": (trickle, 1, 10),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--rabbitmq", action="store_true", help="measure RabbitMQ instead")
    parser.add_argument("--duration", type=float, default=3.0, help="seconds of each measurement")
    parser.add_argument("--runs", type=int, default=3, help="a figure is the median of so many")
    arguments = parser.parse_args()
    with rabbitmq() if arguments.rabbitmq else warren(arguments.warren) as broker:
        print(f"{broker.name} {broker.version}\n")
        heads = ["beside", "p50 µs", "p99 µs", "max µs", "p50 / alone", "p99 / alone", "cores", "MiB more"]
        print(table(heads, latencies(broker, arguments)))
        print()
        print(table(["what", "figure"], [large_bodies(broker), *churn(broker, arguments.duration)]))


def latencies(broker: Broker, arguments: argparse.Namespace) -> list[list[str]]:
    """One line alone, and one beside each misbehaviour."""
    alone = probe(broker, arguments)
    rows = [line("nobody", alone, alone, 0)]
    for text, (behaviour, count, settle_s) in BEHAVIOURS.items():
        print(text, file=sys.stderr, flush=True)
        before = usage([broker.pid]).resident_bytes
        with misbehaving(behaviour, parse_uri(broker.uri), count=count):
            time.sleep(settle_s)
            beside = probe(broker, arguments)
            grown = usage([broker.pid]).resident_bytes - before
        rows.append(line(text, beside, alone, grown))
        time.sleep(SETTLE_S)
    return rows


def probe(broker: Broker, arguments: argparse.Namespace) -> list[dict[str, float]]:
    """The figures of a client that publishes and consumes at a fixed rate, several times."""
    load = Load(
        target=parse_uri(broker.uri), rate=1000, duration_s=arguments.duration, warmup_s=0.5, processes=2
    )
    observer = Observer([broker.pid])
    return [traffic_result("probe", {}, run_traffic(load, observer)).figures for _ in range(arguments.runs)]


def line(text: str, beside: list[dict[str, float]], alone: list[dict[str, float]], grown: int) -> list[str]:
    """A row of the table of latencies."""

    def median(found: list[dict[str, float]], name: str) -> float:
        return statistics.median(figures.get(name, 0.0) for figures in found)

    cells = [text]
    cells += [figure(median(beside, f"delivery_{percent}_us")) for percent in ("p50", "p99", "max")]
    for percent in ("p50", "p99"):
        name = f"delivery_{percent}_us"
        cells.append(ratio(median(beside, name) / median(alone, name)) if median(alone, name) else "-")
    return [*cells, figure(median(beside, "broker_cores")), figure(grown / (1 << 20))]


def large_bodies(broker: Broker) -> list[str]:
    """Messages of 128 MiB, one after the other."""
    load = Load(
        target=parse_uri(broker.uri),
        size=LARGE_BYTES,
        in_flight_max=1,
        duration_s=LARGE_S,
        warmup_s=1,
        processes=2,
    )
    before = usage([broker.pid]).resident_bytes
    figures = traffic_result("large", {}, run_traffic(load, Observer([broker.pid]))).figures
    grown = (figures["broker_resident_bytes"] - before) / (1 << 20)
    rate = figures["consumed_per_s"] * LARGE_BYTES / (1 << 20)
    return ["128 MiB messages", f"{rate:,.0f} MiB/s, broker {grown:,.0f} MiB more"]


def churn(broker: Broker, duration_s: float) -> list[list[str]]:
    """Connections opened and closed, and whether they leave anything behind."""
    observer = Observer([broker.pid])
    target = parse_uri(broker.uri)
    before = usage([broker.pid]).resident_bytes
    result: Result = measure_churn(target, processes=2, duration=duration_s, observer=observer)
    time.sleep(SETTLE_S)
    grown = usage([broker.pid]).resident_bytes - before
    figures = result.figures
    cpu = figures["broker_cpu_us_per_connection"]
    speed = f"{figures['connections_per_s']:,.0f}/s, {figure(cpu)} µs of the broker each"
    return [
        ["connection churn", speed],
        ["connection churn, time of one", f"p50 {figure(figures['connection_p50_us'])} µs"],
        ["connection churn, memory left", f"{grown / (1 << 20):.1f} MiB more"],
    ]


if __name__ == "__main__":
    main()
