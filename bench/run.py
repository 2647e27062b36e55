"""Compares Warren with RabbitMQ, if that is installed: the same load on both, in turn, on this machine.

What counts is the processor time that a broker spends on a message, since rates depend on how the
machine's cores are shared with the load. Brokers are measured in interleaved pairs; a figure is the
median over the pairs, a ratio the median of the ratios of pairs.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import idle
import memory
from brokers import Broker, build_of, installed_rabbitmqs, rabbitmq, warren
from links import MEASUREMENTS, links_table, measure_links
from links import starters as link_starters
from machine import loop_ms, sync_us
from measurement import measurement
from rows import ALL_ROWS, AT_A_RATE, Row
from samples import NAMES, WARREN, Samples, lines_table, measured_names
from store import MESSAGES_STEP, lines_of, measure_store
from table import figure, ratio, table
from warren.cli.perf.load import Load
from warren.cli.perf.result import Result, traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.worker_group import Observer
from warren.client.uri import parse_uri

WARMUP_S = 0.5
# The tables besides those of the rows; those of the store have the type of their queue.
MEMORY, IDLE, STORE, QUORUM_STORE = "memory", "idle", "store", "quorum-store"
LINKS, SPARK = "links", "spark"
STORES = {STORE: "", QUORUM_STORE: "quorum"}
# Spark has an environment of its own, if there is a Java.
SPARK_PYTHON = Path(__file__).parent.parent / ".venv-spark" / "bin" / "python"
SPARK_S_MAX = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSize:
    """The extent of a measurement."""

    pairs: int
    duration_s: float
    crowd: memory.ObjectCounts
    memory_samples: int
    idle: idle.IdleCounts
    store_samples: int
    store_messages: int
    link_samples: int
    link_messages: int
    spark_rows: int
    spark_runs: int


THOROUGH = RunSize(
    pairs=5,
    duration_s=3.0,
    crowd=memory.ObjectCounts(connections=1000, queues=2000, messages=200_000, declaring_s=3.0),
    memory_samples=3,
    idle=idle.IdleCounts(connections=1000, queues=10_000, duration_s=60.0),
    store_samples=1,
    store_messages=1_000_000,
    link_samples=1,
    link_messages=200_000,
    spark_rows=2_000_000,
    spark_runs=3,
)
QUICK = RunSize(
    pairs=2,
    duration_s=1.0,
    crowd=memory.ObjectCounts(connections=200, queues=500, messages=50_000, declaring_s=1.0),
    memory_samples=1,
    idle=idle.IdleCounts(connections=200, queues=1000, duration_s=20.0),
    store_samples=1,
    store_messages=100_000,
    link_samples=1,
    link_messages=40_000,
    spark_rows=500_000,
    spark_runs=1,
)
Starter = Callable[[], contextlib.AbstractContextManager[Broker]]
# Measures, and returns what to print and what to save.
Table = Callable[[], tuple[str, dict[str, Samples]]]


def main() -> None:
    """Measure, print, and save if requested."""
    arguments = parse_arguments()
    plan = plan_for(arguments)
    comparison = Comparison(starters_for(arguments))
    wanted = arguments.rows or [MEMORY, IDLE, *(row.name for row in ALL_ROWS), *STORES, LINKS, SPARK]
    rows = [row for row in ALL_ROWS if row.name in wanted]
    tables: list[tuple[list[str], Table]] = []
    if MEMORY in wanted:
        tables.append(([MEMORY], lambda: memory_table(comparison, plan)))
    if IDLE in wanted:
        tables.append(([IDLE], lambda: idle_table(comparison, plan)))
    if rows:
        tables.append(([row.name for row in rows], lambda: traffic_tables(comparison, rows, plan)))
    stores = [name for name in STORES if name in wanted]
    tables += [([name], partial(store_table, comparison, plan, name)) for name in stores]
    if LINKS in wanted:
        tables.append(([LINKS], lambda: link_table(comparison, arguments, plan)))
    if SPARK in wanted and arguments.only in (None, WARREN):
        comparison.versions["warren"] = build_of(arguments.warren)
        tables.append(([SPARK], lambda: spark_table(arguments, plan)))
    begun, begun_s = datetime.now(UTC), time.monotonic()
    load_before = os.getloadavg()[0]
    for names, measure in tables:
        text, found = measure()
        title = ", ".join(f"{name} {version}" for name, version in comparison.versions.items())
        print(f"{title}\n\n{text}\n")
        # At once, so that a table that fails later costs only itself.
        if arguments.save and found:
            saved = measurement(
                found, comparison.versions, used(plan, names), load_before=load_before, begun=begun
            ).save()
            print(f"saved as {saved}\n")
    print(f"{plan.pairs} pairs of {plan.duration_s:g} s; {time.monotonic() - begun_s:.0f} s in all")


def used(plan: RunSize, wanted: Sequence[str]) -> dict[str, object]:
    """Return the part of the plan that applies to the tables and rows that were measured."""
    prefixes = {MEMORY: ("crowd", "memory_"), IDLE: ("idle",), LINKS: ("link_",), SPARK: ("spark_",)}
    prefixes |= dict.fromkeys(STORES, ("store_",))
    begins = [begin for name in wanted for begin in prefixes.get(name, ("pairs", "duration_"))]
    return {name: value for name, value in asdict(plan).items() if name.startswith(tuple(begins))}


def memory_table(comparison: "Comparison", plan: RunSize) -> tuple[str, dict[str, Samples]]:
    """Measure the memory that a connection, a queue and a message take."""
    found = comparison.fresh(
        memory.MEASUREMENTS,
        lambda name, broker: memory.measure(name, broker, plan.crowd),
        plan.memory_samples,
    )
    return "memory\n" + lines_table(memory.LINES, found), found


def idle_table(comparison: "Comparison", plan: RunSize) -> tuple[str, dict[str, Samples]]:
    """Measure the CPU time of a broker whose clients do nothing."""
    found = comparison.fresh(
        idle.MEASUREMENTS, lambda name, broker: idle.measure_idle(name, broker, plan.idle), times=1
    )
    return "idle\n" + lines_table(idle.lines(plan.idle), found), found


def traffic_tables(
    comparison: "Comparison", rows: list[Row], plan: RunSize
) -> tuple[str, dict[str, Samples]]:
    """Measure the rows of messages that are published and consumed."""
    found = comparison.rows(rows, plan)
    parts = machine(found), cost_table(rows, found), latency_table(found)
    return "\n\n".join(part for part in parts if part), found


def store_table(comparison: "Comparison", plan: RunSize, name: str) -> tuple[str, dict[str, Samples]]:
    """Measure a queue with many persistent messages, and starts with it."""
    count = plan.store_messages
    found = comparison.fresh(
        [name], lambda _, broker: measure_store(broker, count, STORES[name]), plan.store_samples
    )
    kind = f"{STORES[name]} " if STORES[name] else ""
    head = f"{count:,} persistent messages of 1 KiB in one {kind}queue\n"
    return head + lines_table(lines_of(name), found), found


def link_table(
    comparison: "Comparison", arguments: argparse.Namespace, plan: RunSize
) -> tuple[str, dict[str, Samples]]:
    """Measure shovels and federation links between two brokers of a kind."""
    pairs = link_starters(arguments.warren)
    wanted = {arguments.only: pairs[arguments.only]} if arguments.only else pairs
    found, versions = measure_links(wanted, list(MEASUREMENTS), plan.link_messages, plan.link_samples)
    comparison.versions |= versions
    head = f"links that move {plan.link_messages:,} persistent messages of 1 KiB from broker A to broker B\n"
    return head + links_table(found), found


def spark_table(arguments: argparse.Namespace, plan: RunSize) -> tuple[str, dict[str, Samples]]:
    """Run `spark.py` with the Python that has Spark; returns its output and figures, or what is missing."""
    if not SPARK_PYTHON.exists():
        return "Spark is not measured: there is no .venv-spark, which `make spark` makes", {}
    say("spark")
    command = [str(SPARK_PYTHON), str(Path(__file__).with_name("spark.py"))]
    command += ["--warren", str(arguments.warren), "--runs", str(plan.spark_runs)]
    command += ["--rows", str(plan.spark_rows)]
    if arguments.only:
        command.append("--no-rabbitmq")
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        try:
            run = subprocess.run(
                [*command, "--figures", file.name],
                stdout=subprocess.PIPE, text=True, check=False, timeout=SPARK_S_MAX,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"Spark is not measured: it took more than {SPARK_S_MAX} s", {}
        if run.returncode:
            return f"Spark is not measured: bench/spark.py ended with {run.returncode}", {}
        figures = json.load(file)
    return run.stdout.rstrip(), {text: Samples({"spark": [one]}) for text, one in figures.items()}


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--quick", action="store_true", help="fewer, shorter runs: a first impression")
    parser.add_argument("--pairs", type=int, default=0, help="how often each row is measured")
    names = [MEMORY, IDLE, *(row.name for row in ALL_ROWS), *STORES, LINKS, SPARK]
    parser.add_argument("--rows", nargs="*", choices=names, help="only these rows and tables")
    parser.add_argument("--messages", type=thousands, default=0, help="how many wait in the tables of stores")
    parser.add_argument("--only", choices=NAMES, help="only this broker")
    parser.add_argument("--save", action="store_true", help="write the figures into bench/history")
    return parser.parse_args()


def thousands(text: str) -> int:
    """Parse a number of messages that the table `store` supports."""
    count = int(text)
    if count < MESSAGES_STEP or count % MESSAGES_STEP:
        raise argparse.ArgumentTypeError(f"a multiple of {MESSAGES_STEP}, not {text}")
    return count


def plan_for(arguments: argparse.Namespace) -> RunSize:
    """Return the extent of the measurement that the command line selects."""
    plan = QUICK if arguments.quick else THOROUGH
    return replace(
        plan,
        pairs=arguments.pairs or plan.pairs,
        store_messages=arguments.messages or plan.store_messages,
    )


def starters_for(arguments: argparse.Namespace) -> dict[str, Starter]:
    """Return functions that start the brokers of the comparison."""
    starters: dict[str, Starter] = {name: partial(rabbitmq, name=name) for name in installed_rabbitmqs()}
    if not starters:
        print("RabbitMQ is not installed: Warren is measured alone")
    starters[WARREN] = lambda: warren(arguments.warren)
    if arguments.only:
        starters = {arguments.only: starters[arguments.only]}
    return starters


class Comparison:
    """Measures the brokers in turn, and records their versions."""

    def __init__(self, starters: Mapping[str, Starter]) -> None:
        self.versions: dict[str, str] = {}
        self._starters = starters

    def fresh(
        self, names: Sequence[str], measure: Callable[[str, Broker], Result], times: int
    ) -> dict[str, Samples]:
        """Measure each of `names` with each broker in turn, each time with a new broker."""
        found = {name: Samples() for name in names}
        for number in range(times):
            for name in names:
                for starter in self._starters.values():
                    with starter() as broker:
                        self.versions[broker.name] = broker.version
                        say(f"{name} {number + 1}/{times}: {broker.name}")
                        found[name].add(broker.name, measure(name, broker))
        return found

    def rows(self, rows: list[Row], plan: RunSize) -> dict[str, Samples]:
        """Measure every row with every broker in turn; the others are idle meanwhile."""
        found = {row.name: Samples() for row in rows}
        with started(self._starters) as brokers:
            self.versions |= {broker.name: broker.version for broker in brokers}
            for row in rows:
                for pair in range(plan.pairs):
                    for broker in brokers:
                        result = measure_row(row, broker, plan)
                        found[row.name].add(broker.name, result)
                        cost = result.figures.get(row.figure)
                        say(f"{row.name} {pair + 1}/{plan.pairs}: {broker.name} {figure(cost)} µs")
        return found


@contextlib.contextmanager
def started(starters: Mapping[str, Starter]) -> Iterator[list[Broker]]:
    """Start all brokers."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(starter()) for starter in starters.values()]


def measure_row(row: Row, broker: Broker, plan: RunSize) -> Result:
    """Measure one row once."""
    load = Load(
        target=parse_uri(broker.uri), duration_s=plan.duration_s, warmup_s=WARMUP_S, processes=2, **row.load
    )
    pace_ms = loop_ms()
    result = traffic_result(row.name, row.load, run_traffic(load, Observer([broker.pid])))
    result.figures["machine_loop_ms"] = (pace_ms + loop_ms()) / 2
    if load.is_persistent:
        result.figures["machine_sync_us"] = sync_us()
    return result


def machine(traffic: dict[str, Samples]) -> str:
    """Describe how fast the machine and its disk were during the measurement."""
    loops, syncs = seen(traffic, "machine_loop_ms"), seen(traffic, "machine_sync_us")
    low, middle, high = min(loops), statistics.median(loops), max(loops)
    text = f"a fixed loop took {middle:.0f} ms of processor time here, {low:.0f} at best, {high:.0f} at worst"
    if syncs:
        text += f"; a small write was synced in {statistics.median(syncs):,.0f} µs"
        text += f", {min(syncs):,.0f} at best, {max(syncs):,.0f} at worst"
    return text + ("; the machine was not quiet: trust the ratios only" if high > 1.5 * low else "")


def seen(traffic: dict[str, Samples], name: str) -> list[float]:
    """Return the figure `name` of all runs that have it."""
    return [
        figures[name]
        for samples in traffic.values()
        for runs in samples.by_broker.values()
        for figures in runs
        if name in figures
    ]


def cost_table(rows: list[Row], traffic: dict[str, Samples]) -> str:
    """Return the table of rates, and of the CPU time of brokers and of the load generator."""
    cpu, client, rate = "broker_cpu_us_per_message", "client_cpu_us_per_message", "consumed_per_s"
    names = measured_names(traffic)
    lines = []
    for row in rows:
        samples = traffic[row.name]
        line = [row.name, row.text]
        for name in (rate, cpu, client):
            line += [figure(samples.median(broker, name)) for broker in names]
        line.append(ratio(samples.ratio(cpu)))
        line.append(f"<= {row.reach:g}" if row.figure == cpu and row.reach else "")
        lines.append(line)
    heads = ["row", "load", *(f"{name} /s" for name in names), *(f"{name} µs" for name in names)]
    heads += [*(f"client µs ({name})" for name in names), "ratio µs", "promised"]
    return "broker's processor time per message\n" + table(heads, lines, words=2)


def latency_table(traffic: dict[str, Samples]) -> str:
    """Return the percentiles of the rows at a fixed rate, measured from when a message was due."""
    names = measured_names(traffic)
    lines = []
    for name in AT_A_RATE:
        if name not in traffic:
            continue
        for kind in ("delivery", "confirm"):
            for percent in ("p50", "p95", "p99", "p99.9", "max"):
                wanted = f"{kind}_{percent}_us"
                values = [traffic[name].median(broker, wanted) for broker in names]
                if any(value is not None for value in values):
                    cells = [figure(value) for value in values]
                    promised = promise(name, wanted)
                    lines.append(
                        [f"{name} {kind} {percent}", *cells, ratio(traffic[name].ratio(wanted)), promised]
                    )
    heads = ["latency", *(f"{name} µs" for name in names), "ratio", "promised"]
    return "latency at a fixed rate\n" + table(heads, lines) if lines else ""


def promise(name: str, wanted: str) -> str:
    """Return the target for a figure of a row, if the row has one."""
    row = next(row for row in ALL_ROWS if row.name == name)
    return f"<= {row.reach:g}" if row.figure == wanted else ""


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
