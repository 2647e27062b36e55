"""Measures the start of a broker: the CPU time from its process to the moment when it is ready.

A broker tells a service manager that it is ready (`READY=1`, as for systemd). At that moment, its CPU time is
read: user and system, of all its threads, the start of the interpreter included. Starts in memory, with a new
data directory and with an existing one alternate.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from brokers import build_of
from table import table
from warren.cli.perf.usage import own_cpu_s

IN_MEMORY, NEW, EXISTING = "in memory", "new data directory", "existing data directory"
FREE_PORTS = [
    part
    for flag in ("--port", "--stream-port", "--management-port", "--prometheus-port")
    for part in (flag, "0")
]
START_S_MAX = 60
STOP_S_MAX = 30


@dataclass(frozen=True, slots=True)
class Start:
    """The cost of one start."""

    cpu_ms: float
    wall_ms: float
    memory_kib: int


def main() -> None:
    """Measure the starts alternately, and print the least and the median of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--runs", type=int, default=10, help="starts of each kind")
    parser.add_argument("--max-ms", type=float, help="exit with status 1 if the least CPU time is more")
    chosen = parser.parse_args()
    found: dict[str, list[Start]] = {IN_MEMORY: [], NEW: [], EXISTING: []}
    started(chosen.warren, ["--in-memory"])  # for the page cache, and the bytecode of a new installation
    for _ in range(chosen.runs):
        found[IN_MEMORY].append(started(chosen.warren, ["--in-memory"]))
        with tempfile.TemporaryDirectory(prefix="warren-bench-") as folder:
            directory = ["--data-dir", str(Path(folder) / "data")]
            found[NEW].append(started(chosen.warren, directory))
            found[EXISTING].append(started(chosen.warren, directory))
    print(f"warren {build_of(chosen.warren)}, {chosen.runs} starts of each kind\n")
    heads = ["start", "CPU ms, least", "median", "ms until ready", "MiB"]
    print(table(heads, [line(kind, starts) for kind, starts in found.items()]))
    worst = max(min(start.cpu_ms for start in starts) for starts in found.values())
    if chosen.max_ms is not None and worst > chosen.max_ms:
        sys.exit(f"a start takes {worst:.0f} ms of CPU time, more than {chosen.max_ms:.0f}")


def line(kind: str, starts: Sequence[Start]) -> list[str]:
    """Return the row of one kind of start."""
    cpu = [start.cpu_ms for start in starts]
    wall = statistics.median(start.wall_ms for start in starts)
    memory = statistics.median(start.memory_kib for start in starts) / 1024
    return [kind, f"{min(cpu):.0f}", f"{statistics.median(cpu):.0f}", f"{wall:.0f}", f"{memory:.0f}"]


def started(executable: Path, arguments: list[str]) -> Start:
    """Start a broker, measure it when it is ready, and stop it."""
    with (
        tempfile.TemporaryDirectory(prefix="warren-bench-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        manager.bind(f"{folder}/notify")
        manager.settimeout(START_S_MAX)
        begin_s = time.monotonic()
        with (Path(folder) / "output").open("wb") as output:
            process = subprocess.Popen(
                [str(executable.absolute()), "serve", *FREE_PORTS, *arguments],
                env=os.environ | {"NOTIFY_SOCKET": f"{folder}/notify"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
            )
        try:
            if b"READY=1" not in manager.recv(4096):
                sys.exit("the broker has told the service manager something else than that it is ready")
            wall_ms = (time.monotonic() - begin_s) * 1e3
            return Start(own_cpu_s(process.pid) * 1e3, wall_ms, memory_kib(process.pid))
        except TimeoutError:
            sys.exit((Path(folder) / "output").read_text(errors="replace")[-2000:])
        finally:
            process.terminate()
            process.wait(STOP_S_MAX)


def memory_kib(pid: int) -> int:
    """Return the resident memory of the process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


if __name__ == "__main__":
    main()
