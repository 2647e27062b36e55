"""Counters in memory that the processes of a load share: each writes its own row, all read all."""

import ctypes
import multiprocessing.sharedctypes
from dataclasses import dataclass
from enum import IntEnum

_PHASE, _START_NS, _FROM_NS, _HEAD = 0, 1, 2, 3
_PUBLISHED, _CONSUMED, _SETTLED, _NACKED, _WIDTH = 0, 1, 2, 3, 4


class LoadPhase(IntEnum):
    """How far a load is."""

    SETUP = 0
    RUNNING = 1
    DRAINING = 2  # nothing more is published
    STOPPED = 3


@dataclass(frozen=True, slots=True)
class Totals:
    """What all processes together have done."""

    published: int
    consumed: int
    settled: int
    nacked: int


class SharedCounters:
    """One row of counters per worker; a row has one writer, so nothing needs a lock."""

    def __init__(self, workers: int) -> None:
        self._cells = multiprocessing.sharedctypes.RawArray(ctypes.c_uint64, _HEAD + workers * _WIDTH)
        self._workers = workers

    @property
    def phase(self) -> LoadPhase:
        """How far the load is."""
        return LoadPhase(self._cells[_PHASE])

    @phase.setter
    def phase(self, phase: LoadPhase) -> None:
        self._cells[_PHASE] = phase

    @property
    def start_ns(self) -> int:
        """When the load began to run (monotonic)."""
        return self._cells[_START_NS]

    @start_ns.setter
    def start_ns(self, now_ns: int) -> None:
        self._cells[_START_NS] = now_ns

    @property
    def measured_from_ns(self) -> int:
        """From when latencies count (monotonic); 0 while the load is warming up."""
        return self._cells[_FROM_NS]

    @measured_from_ns.setter
    def measured_from_ns(self, now_ns: int) -> None:
        self._cells[_FROM_NS] = now_ns

    def post(self, worker: int, totals: Totals) -> None:
        """Write the row of `worker`."""
        at = _HEAD + worker * _WIDTH
        self._cells[at : at + _WIDTH] = [totals.published, totals.consumed, totals.settled, totals.nacked]

    def totals(self) -> Totals:
        """The sum of all rows."""
        cells = self._cells[_HEAD:]
        return Totals(*(sum(cells[column::_WIDTH]) for column in range(_WIDTH)))


@dataclass(frozen=True, slots=True)
class WorkerCounters:
    """A board, and the row of it that is one's own."""

    shared_counters: SharedCounters
    number: int

    def post(self, totals: Totals) -> None:
        """Write one's own row."""
        self.shared_counters.post(self.number, totals)
