"""Runs a load: declares what it needs, lets a crew play it, measures a window, and cleans up."""

import time
from dataclasses import dataclass
from functools import partial

from warren.cli.perf.board import Phase
from warren.cli.perf.crew import Crew, Moment, Observer
from warren.cli.perf.link import Link
from warren.cli.perf.load import Load
from warren.cli.perf.topology import CHANNEL, declare, delete, names_for
from warren.cli.perf.worker import Latencies, assignments, join

DRAIN_S_MAX = 2
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Traffic:
    """What happened between the two ends of the measured window, and the latencies within it."""

    load: Load
    start: Moment
    end: Moment
    latencies: Latencies


def run_traffic(load: Load, observer: Observer) -> Traffic:
    """Run `load` and measure it."""
    admin = Link(load.target)
    admin.open_channel(CHANNEL)
    names = names_for(load)
    try:
        declare(admin, load, names)
        crew = Crew([partial(join, load, names, assignment) for assignment in assignments(load)], observer)
        try:
            return _measure(load, crew)
        finally:
            crew.end()
            delete(admin, load, names)
    finally:
        admin.close()


def _measure(load: Load, crew: Crew[Latencies]) -> Traffic:
    """Warm up, measure, let what is in flight arrive, stop."""
    crew.start(load.warmup_s)
    crew.watch(load.warmup_s)
    start = crew.moment()
    crew.watch(load.duration_s)
    end = crew.moment()
    _drain(load, crew)
    latencies = Latencies()
    for report in crew.stop():
        latencies.merge(report)
    return Traffic(load, start, end, latencies)


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
