"""Runs a load: declares what it needs, lets a crew play it, measures a window, and cleans up."""

import time
from dataclasses import dataclass
from functools import partial

from warren.cli.perf.board import Phase
from warren.cli.perf.crew import Crew, Moment, Observer
from warren.cli.perf.link import open_link
from warren.cli.perf.load import Load
from warren.cli.perf.topology import CHANNEL, declare, delete, names_for
from warren.cli.perf.worker import Latencies, assignments, join

DRAIN_S_MAX = 2
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Traffic:
    """The ends of the measured windows, which lie behind one another, and the latencies within them all."""

    load: Load
    moments: tuple[Moment, ...]
    latencies: Latencies

    @property
    def start(self) -> Moment:
        """When the first window began."""
        return self.moments[0]

    @property
    def end(self) -> Moment:
        """When the last window ended."""
        return self.moments[-1]


def run_traffic(load: Load, observer: Observer, *, windows: int = 1) -> Traffic:
    """Run `load` and measure it, `windows` times without setting it up again."""
    admin = open_link(load.target)
    admin.open_channel(CHANNEL)
    names = names_for(load)
    try:
        declare(admin, load, names, observer.on_setup)
        crew = Crew([partial(join, load, names, assignment) for assignment in assignments(load)], observer)
        try:
            return _measure(load, crew, windows)
        finally:
            crew.end()
            delete(admin, load, names, observer.on_setup)
    finally:
        admin.close()


def _measure(load: Load, crew: Crew[Latencies], windows: int) -> Traffic:
    """Warm up, measure, let what is in flight arrive, stop."""
    crew.start(load.warmup_s)
    crew.watch(load.warmup_s)
    if not load.rate:
        crew.await_published(load.round)
    moments = [crew.moment()]
    for _ in range(windows):
        crew.watch(load.duration_s)
        moments.append(crew.moment())
    _drain(load, crew)
    latencies = Latencies()
    for report in crew.stop():
        latencies.merge(report)
    return Traffic(load, tuple(moments), latencies)


def _drain(load: Load, crew: Crew[Latencies]) -> None:
    """Publish nothing more, and let consumers and confirms catch up."""
    crew.board.phase = Phase.DRAINING
    give_up_s = time.monotonic() + DRAIN_S_MAX
    while time.monotonic() < give_up_s:
        totals = crew.board.totals()
        is_consumed = not load.consumers or totals.consumed >= totals.published * load.copies
        is_confirmed = not load.confirm_window or totals.settled >= totals.published
        if is_consumed and is_confirmed:
            return
        time.sleep(_POLL_S)
