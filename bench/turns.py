"""Shows where the CPU time of a message goes that comes alone: by part of the broker, and its system calls.

Needs `perf` and `strace`. Each is attached to a broker of its own run, for they make it slower: shares and
counts are what to compare, not times.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from brokers import Broker, warren
from rows import ALL_ROWS, RATE_ROWS, Row
from table import figure, table
from warren.cli.perf.load import Load
from warren.cli.perf.result import traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.worker_group import Observer
from warren.client.uri import parse_uri

WARMUP_S = 0.5
SAMPLES_PER_S = 4000
# A part of the broker, and the objects of the process that belong to it.
PARTS = {
    "kernel": r"\[kernel",
    "interpreter": r"libpython|python3",
    "event loop": r"loop\.",
    "C library": r"libc\.",
}
SHARE = re.compile(r"\s*([\d.]+)%\s+(\S+)")
CALL = re.compile(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$")


def main() -> None:
    """Measure each row three times: alone, sampled and traced."""
    arguments = parse_arguments()
    for row in (row for row in ALL_ROWS if row.name in arguments.rows):
        with warren(arguments.warren) as broker:
            plain = measured(row, broker, arguments.duration)
            cpu_us = plain["broker_cpu_us_per_message"]
            shares = sampled(row, broker, arguments.duration)
            calls = traced(row, broker, arguments.duration)
        print(f"{row.name}: {row.text}; {figure(cpu_us)} µs per message\n")
        print(
            table(["part", "share", "µs"], [part_line(part, share, cpu_us) for part, share in shares.items()])
        )
        print()
        print(table(["system call", "per message"], [[name, figure(count)] for name, count in calls.items()]))
        print()


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--rows", nargs="*", default=[row.name for row in RATE_ROWS], help="of bench/rows.py")
    parser.add_argument("--duration", type=float, default=3.0, help="seconds of each measurement")
    return parser.parse_args()


def measured(
    row: Row, broker: Broker, duration_s: float, attach: Callable[[], None] = lambda: None
) -> Mapping[str, float]:
    """Run the load of `row`, and `attach` in a thread meanwhile; returns the figures."""
    load = Load(
        target=parse_uri(broker.uri), duration_s=duration_s, warmup_s=WARMUP_S, processes=2, **row.load
    )
    beside = threading.Thread(target=attach)
    beside.start()
    figures = traffic_result(row.name, row.load, run_traffic(load, Observer([broker.pid]))).figures
    beside.join()
    return figures


def sampled(row: Row, broker: Broker, duration_s: float) -> dict[str, float]:
    """The percentage of the CPU time that each part takes; Warren's own modules are one part."""
    with tempfile.NamedTemporaryFile() as file:
        record = ["perf", "record", "-q", "-F", str(SAMPLES_PER_S), "-p", str(broker.pid), "-o", file.name]

        def attach() -> None:
            time.sleep(WARMUP_S)
            subprocess.run([*record, "--", "sleep", str(duration_s)], check=True)

        measured(row, broker, duration_s + WARMUP_S, attach)
        report = ["perf", "report", "-i", file.name, "--stdio", "--sort", "dso"]
        answer = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    shares: Counter[str] = Counter()
    for share, name in SHARE.findall(answer):
        part = next((part for part, names in PARTS.items() if re.match(names, name)), "Warren, compiled")
        shares[part] += float(share)
    return dict(shares.most_common())


def traced(row: Row, broker: Broker, duration_s: float) -> dict[str, float]:
    """How often each system call is made for a message."""
    trace = ["strace", "-f", "-c", "-p", str(broker.pid)]
    counted = ""

    def attach() -> None:
        nonlocal counted
        time.sleep(WARMUP_S)
        with subprocess.Popen(trace, stderr=subprocess.PIPE, text=True) as strace:
            time.sleep(duration_s)
            strace.terminate()
            counted = strace.communicate()[1]

    figures = measured(row, broker, duration_s + WARMUP_S, attach)
    messages = figures["consumed_per_s"] * duration_s
    calls = [CALL.match(line) for line in counted.splitlines()]
    found = Counter({call[2]: int(call[1]) / messages for call in calls if call and call[2] != "total"})
    return {name: count for name, count in found.most_common() if count >= 0.01}


def part_line(part: str, share: float, cpu_us: float) -> list[str]:
    """Return a row of the table of parts."""
    return [part, f"{share:.0f} %", figure(cpu_us * share / 100)]


if __name__ == "__main__":
    main()
