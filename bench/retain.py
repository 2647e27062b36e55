"""Measures the cost of the policy `retain`: persistent messages with confirms, with and without it."""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from brokers import warren
from table import figure, table
from warren.cli.perf.load import Load
from warren.cli.perf.result import traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.worker_group import Observer
from warren.client.uri import parse_uri

KINDS = {"nobody is retained": {}, "retained for a day": {"retain": "1D"}}
RATE, CPU = "consumed_per_s", "broker_cpu_us_per_message"


def main() -> None:
    """Measure both alternately, each with a new broker, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--duration", type=float, default=3.0, help="seconds of each measurement")
    parser.add_argument("--runs", type=int, default=3, help="a figure is the median of so many")
    parser.add_argument("--size", type=int, default=1024, help="bytes of each body")
    chosen = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for _ in range(chosen.runs):
        for kind, definition in KINDS.items():
            found[kind].append(measured(chosen, definition))
    lines = []
    for kind, runs in found.items():
        rate, cpu = (statistics.median(run[name] for run in runs) for name in (RATE, CPU))
        lines.append([kind, f"{rate:,.0f}", figure(cpu)])
    print(f"persistent messages of {chosen.size} bytes, confirmed, acknowledged in hundreds\n")
    print(table(["", "messages/s", "broker's CPU µs each"], lines))


def measured(chosen: argparse.Namespace, definition: dict[str, str]) -> dict[str, float]:
    """Return the figures of one run in which the policy `definition` applies to all queues."""
    everything = {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
    policy = {"vhost": "/", "name": "all", "pattern": ".*", "apply-to": "queues", "definition": definition}
    definitions = {
        "users": [{"name": "guest", "password": "guest", "tags": ["administrator"]}],
        "vhosts": [{"name": "/"}],
        "permissions": [everything],
        "policies": [policy] if definition else [],
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "definitions.json"
        file.write_text(json.dumps(definitions))
        with warren(chosen.warren, {"WARREN_LOAD_DEFINITIONS": str(file)}) as broker:
            load = Load(
                target=parse_uri(broker.uri),
                size=chosen.size,
                is_persistent=True,
                confirm_window=1_000,
                ack_every=100,
                prefetch=1_000,
                duration_s=chosen.duration,
            )
            return traffic_result("retain", {}, run_traffic(load, Observer([broker.pid]))).figures


if __name__ == "__main__":
    main()
