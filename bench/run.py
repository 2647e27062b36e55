"""Compares Warren with RabbitMQ, if that is installed: the same load on both, in turn, on this machine.

What counts is the processor time that a broker spends on a message, since rates depend on how the
machine's cores are shared with the load. Brokers are measured in interleaved pairs; a figure is the
median over the pairs, a ratio the median of the ratios of pairs.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from brokers import Broker, has_rabbitmq, rabbitmq, warren
from machine import loop_ms
from rows import LATENCY_ROWS, ROWS, Row
from table import figure, ratio, table
from warren.cli.perf.capacity import (
    Backlog,
    measure_backlog,
    measure_connections,
    measure_declares,
    measure_queues,
)
from warren.cli.perf.crew import Observer
from warren.cli.perf.load import Load
from warren.cli.perf.result import Result, traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.uri import parse_uri

HISTORY = Path(__file__).parent / "history"
WARMUP_S = 0.5
NAMES = ("rabbitmq", "warren")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured."""

    pairs: int
    duration_s: float
    memory_samples: int
    connections: int
    queues: int
    messages: int


THOROUGH = Plan(pairs=5, duration_s=3.0, memory_samples=3, connections=1000, queues=2000, messages=200_000)
QUICK = Plan(pairs=2, duration_s=1.0, memory_samples=1, connections=200, queues=500, messages=50_000)


@dataclass(slots=True)
class Samples:
    """The figures of one measurement: by broker, then one dictionary per time it was made."""

    by_broker: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    def add(self, broker: str, result: Result) -> None:
        """Keep what one run found."""
        self.by_broker.setdefault(broker, []).append(result.figures)

    def median(self, broker: str, name: str) -> float | None:
        """The median of a figure; None if it was not measured."""
        values = [figures[name] for figures in self.by_broker.get(broker, []) if name in figures]
        return statistics.median(values) if values else None

    def ratio(self, name: str) -> float | None:
        """The median, over the pairs, of RabbitMQ's figure divided by Warren's."""
        pairs = zip(self.by_broker.get("rabbitmq", []), self.by_broker.get("warren", []), strict=False)
        ratios = [
            theirs[name] / ours[name]
            for theirs, ours in pairs
            if theirs.get(name, 0) > 0 and ours.get(name, 0) > 0
        ]
        return statistics.median(ratios) if ratios else None


Starter = Callable[[], contextlib.AbstractContextManager[Broker]]


def main() -> None:
    """Measure, print, and save if asked to."""
    arguments = parse_arguments()
    plan = QUICK if arguments.quick else THOROUGH
    if arguments.pairs:
        plan = Plan(**{name: getattr(plan, name) for name in Plan.__slots__} | {"pairs": arguments.pairs})
    starters: dict[str, Starter] = {"warren": lambda: warren(arguments.warren)}
    if has_rabbitmq():
        starters = {"rabbitmq": rabbitmq, **starters}
    else:
        print("RabbitMQ is not installed: Warren is measured alone")
    if arguments.only:
        starters = {arguments.only: starters[arguments.only]}
    rows = [row for row in ROWS if not arguments.rows or row.name in arguments.rows]
    begun = time.monotonic()
    versions: dict[str, str] = {}
    memory = {} if arguments.rows else measure_memory(starters, plan)
    traffic = measure_rows(starters, rows, plan, versions)
    print(report(rows, traffic, memory, versions))
    print(f"\n{plan.pairs} pairs of {plan.duration_s:g} s; {time.monotonic() - begun:.0f} s in all")
    if arguments.save:
        print(f"saved as {save(traffic | memory, versions)}")


def parse_arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--quick", action="store_true", help="fewer, shorter runs: a first impression")
    parser.add_argument("--pairs", type=int, default=0, help="how often each row is measured")
    parser.add_argument("--rows", nargs="*", choices=[row.name for row in ROWS], help="only these rows")
    parser.add_argument("--only", choices=NAMES, help="only this broker")
    parser.add_argument("--save", action="store_true", help="write the figures into bench/history")
    return parser.parse_args()


def measure_memory(starters: dict[str, Starter], plan: Plan) -> dict[str, Samples]:
    """What connections, queues and messages take; each in a broker that has done nothing before."""
    steps: dict[str, Callable[[Broker], Result]] = {
        "connections": lambda broker: measure_connections(
            parse_uri(broker.uri), count=plan.connections, observer=Observer([broker.pid])
        ),
        "queues": lambda broker: measure_queues(
            parse_uri(broker.uri), count=plan.queues, observer=Observer([broker.pid])
        ),
        "backlog16": lambda broker: measure_backlog(
            parse_uri(broker.uri), Backlog(plan.messages, 16, is_persistent=False), Observer([broker.pid])
        ),
        "backlog1k": lambda broker: measure_backlog(
            parse_uri(broker.uri), Backlog(plan.messages, 1024, is_persistent=False), Observer([broker.pid])
        ),
        "declares": lambda broker: measure_declares(
            parse_uri(broker.uri), durable=False, duration=plan.duration_s, observer=Observer([broker.pid])
        ),
    }
    found = {name: Samples() for name in steps}
    for sample in range(plan.memory_samples):
        for name, step in steps.items():
            for broker_name, starter in starters.items():
                say(f"{name} {sample + 1}/{plan.memory_samples}: {broker_name}")
                with starter() as broker:
                    found[name].add(broker_name, step(broker))
    return found


def measure_rows(
    starters: dict[str, Starter], rows: list[Row], plan: Plan, versions: dict[str, str]
) -> dict[str, Samples]:
    """Every row with every broker, in turn; all brokers run all the time, idle when it is not their turn."""
    found = {row.name: Samples() for row in rows}
    with started(starters) as brokers:
        versions.update({broker.name: broker.version for broker in brokers})
        for row in rows:
            for pair in range(plan.pairs):
                for broker in brokers:
                    result = measure_row(row, broker, plan)
                    found[row.name].add(broker.name, result)
                    cost = result.figures.get(row.figure)
                    say(f"{row.name} {pair + 1}/{plan.pairs}: {broker.name} {figure(cost)} µs")
    return found


@contextlib.contextmanager
def started(starters: dict[str, Starter]) -> Iterator[list[Broker]]:
    """All brokers at once."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(starter()) for starter in starters.values()]


def measure_row(row: Row, broker: Broker, plan: Plan) -> Result:
    """One run of one row."""
    load = Load(
        target=parse_uri(broker.uri), duration_s=plan.duration_s, warmup_s=WARMUP_S, processes=2, **row.load
    )
    pace_ms = loop_ms()
    result = traffic_result(row.name, row.load, run_traffic(load, Observer([broker.pid])))
    result.figures["machine_loop_ms"] = (pace_ms + loop_ms()) / 2
    return result


def report(
    rows: list[Row], traffic: dict[str, Samples], memory: dict[str, Samples], versions: dict[str, str]
) -> str:
    """All tables."""
    title = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts = [title, machine(traffic), cost_table(rows, traffic), latency_table(traffic)]
    if memory:
        parts.append(memory_table(memory))
    if any(row.needs_disk for row in rows):
        parts.append("* not comparable: not durable yet; Warren keeps messages in memory, RabbitMQ fsyncs")
    return "\n\n".join(part for part in parts if part)


def machine(traffic: dict[str, Samples]) -> str:
    """How fast the machine was while it was measured."""
    loops = [
        figures["machine_loop_ms"]
        for samples in traffic.values()
        for runs in samples.by_broker.values()
        for figures in runs
    ]
    if not loops:
        return ""
    low, middle, high = min(loops), statistics.median(loops), max(loops)
    text = f"a fixed loop took {middle:.0f} ms of processor time here, {low:.0f} at best, {high:.0f} at worst"
    return text + ("; the machine was not quiet: trust the ratios only" if high > 1.5 * low else "")


def cost_table(rows: list[Row], traffic: dict[str, Samples]) -> str:
    """Rates, and the processor time of brokers and of the load tool."""
    cpu, client, rate = "broker_cpu_us_per_message", "client_cpu_us_per_message", "consumed_per_s"
    lines = []
    for row in rows:
        samples = traffic[row.name]
        line = [row.name + ("*" if row.needs_disk else ""), row.text]
        for name in (rate, cpu, client):
            line += [figure(samples.median(broker, name)) for broker in NAMES]
        line.append(ratio(samples.ratio(cpu)))
        line.append(f"<= {row.reach:g}" if row.figure == cpu else "")
        lines.append(line)
    heads = ["row", "load", "rabbitmq /s", "warren /s", "rabbitmq µs", "warren µs"]
    heads += ["client µs (r)", "client µs (w)", "ratio µs", "promised"]
    return "broker's processor time per message\n" + table(heads, lines, words=2)


def latency_table(traffic: dict[str, Samples]) -> str:
    """Percentiles of the rows at a fixed rate, from when a message was due."""
    lines = []
    for name in LATENCY_ROWS:
        if name not in traffic:
            continue
        for kind in ("delivery", "confirm"):
            for percent in ("p50", "p95", "p99", "p99.9", "max"):
                wanted = f"{kind}_{percent}_us"
                values = [traffic[name].median(broker, wanted) for broker in NAMES]
                if any(value is not None for value in values):
                    star = "*" if name == "latencyp" else ""
                    cells = [figure(value) for value in values]
                    lines.append(
                        [f"{name}{star} {kind} {percent}", *cells, ratio(traffic[name].ratio(wanted))]
                    )
    heads = ["latency", "rabbitmq µs", "warren µs", "ratio"]
    return "latency at a fixed rate\n" + table(heads, lines) if lines else ""


def memory_table(memory: dict[str, Samples]) -> str:
    """Resident memory per thing, and declares per second."""
    wanted = [
        ("connections", "idle_kb_per_connection", "KB per connection, idle", ""),
        ("connections", "with_channel_kb_per_connection", "KB per connection with a channel", ""),
        (
            "connections",
            "with_queue_and_consumer_kb_per_connection",
            "KB per connection with queue and consumer",
            "<= 20",
        ),
        ("queues", "memory_bytes_per_queue", "bytes per queue", "<= 2048"),
        ("backlog16", "memory_beside_body_bytes_per_message", "bytes per 16 B message, beside it", "<= 120"),
        ("backlog1k", "memory_beside_body_bytes_per_message", "bytes per 1 KiB message, beside it", "<= 120"),
    ]
    lines = []
    for measurement, name, text, promised in wanted:
        samples = memory[measurement]
        cells = [figure(samples.median(broker, name)) for broker in NAMES]
        lines.append([text, *cells, ratio(samples.ratio(name)), promised])
    rates = [memory["declares"].median(broker, "queues_per_s") for broker in NAMES]
    inverse = memory["declares"].ratio("queues_per_s")
    times = ratio(1 / inverse) if inverse else "-"
    lines.append(["transient queue declares per second", *map(figure, rates), times, ">= 5000"])
    return "memory\n" + table(["what", "rabbitmq", "warren", "ratio", "promised"], lines)


def save(found: dict[str, Samples], versions: dict[str, str]) -> Path:
    """Every figure of every run, as JSON named by the time."""
    HISTORY.mkdir(exist_ok=True)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
        cwd=HISTORY,
    ).stdout.strip()
    now = datetime.now(UTC)
    path = HISTORY / f"{now:%Y-%m-%dT%H%M}-{commit or 'export'}.json"
    document = {
        "at": now.isoformat(timespec="seconds"),
        "commit": commit,
        "versions": versions,
        "samples": {name: samples.by_broker for name, samples in found.items()},
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
