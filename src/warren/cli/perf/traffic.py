"""Runs a load: declares queues, starts worker processes, measures windows, and cleans up."""

import time
from dataclasses import dataclass
from functools import partial

from warren.cli.perf.connection import open_connection
from warren.cli.perf.declarations import CHANNEL, declare, delete, names_for
from warren.cli.perf.load import Load
from warren.cli.perf.load_worker import Latencies, assignments, connect_worker
from warren.cli.perf.shared_counters import LoadPhase
from warren.cli.perf.worker_group import LoadSnapshot, Observer, WorkerGroup

DRAIN_S_MAX = 2
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Traffic:
    """The snapshots between consecutive measured windows, and the latencies of all windows."""

    load: Load
    moments: tuple[LoadSnapshot, ...]
    latencies: Latencies

    @property
    def start(self) -> LoadSnapshot:
        """The snapshot at the start of the first window."""
        return self.moments[0]

    @property
    def end(self) -> LoadSnapshot:
        """The snapshot at the end of the last window."""
        return self.moments[-1]


def run_traffic(load: Load, observer: Observer, *, windows: int = 1) -> Traffic:
    """Run `load`, and measure `windows` consecutive windows."""
    admin = open_connection(load.target)
    admin.open_channel(CHANNEL)
    names = names_for(load)
    try:
        declare(admin, load, names, observer.on_setup)
        worker_group = WorkerGroup(
            [partial(connect_worker, load, names, assignment) for assignment in assignments(load)], observer
        )
        try:
            return _measure(load, worker_group, windows)
        finally:
            worker_group.end()
            delete(admin, load, names, observer.on_setup)
    finally:
        admin.close()


def _measure(load: Load, worker_group: WorkerGroup[Latencies], windows: int) -> Traffic:
    """Warm up, measure, let messages in flight arrive, and stop."""
    worker_group.start(load.warmup_s)
    worker_group.watch(load.warmup_s)
    if not load.rate:
        worker_group.await_published(load.round)
    moments = [worker_group.snapshot()]
    for _ in range(windows):
        worker_group.watch(load.duration_s)
        moments.append(worker_group.snapshot())
    _drain(load, worker_group)
    latencies = Latencies()
    for report in worker_group.stop():
        latencies.merge(report)
    return Traffic(load, tuple(moments), latencies)


def _drain(load: Load, worker_group: WorkerGroup[Latencies]) -> None:
    """Stop publishing, and wait for outstanding deliveries and confirms."""
    worker_group.shared_counters.phase = LoadPhase.DRAINING
    give_up_s = time.monotonic() + DRAIN_S_MAX
    while time.monotonic() < give_up_s:
        totals = worker_group.shared_counters.totals()
        is_consumed = not load.consumers or totals.consumed >= totals.published * load.copies
        is_confirmed = not load.confirm_window or totals.settled >= totals.published
        if is_consumed and is_confirmed:
            return
        time.sleep(_POLL_S)
