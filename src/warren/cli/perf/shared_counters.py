"""Counters in memory shared by the processes of a load: each writes its own row and can read all rows."""

import ctypes
import multiprocessing.sharedctypes
from dataclasses import dataclass
from enum import IntEnum

_PHASE, _START_NS, _FROM_NS, _HEAD = 0, 1, 2, 3
_PUBLISHED, _CONSUMED, _SETTLED, _NACKED, _WIDTH = 0, 1, 2, 3, 4


class LoadPhase(IntEnum):
    """The phase of a load."""

    SETUP = 0
    RUNNING = 1
    DRAINING = 2  # publishing has stopped
    STOPPED = 3


@dataclass(frozen=True, slots=True)
class Totals:
    """The message counts of all processes together."""

    published: int
    consumed: int
    settled: int
    nacked: int


class SharedCounters:
    """A row of counters for each worker; each row has a single writer, so no lock is needed."""

    def __init__(self, workers: int) -> None:
        self._cells = multiprocessing.sharedctypes.RawArray(ctypes.c_uint64, _HEAD + workers * _WIDTH)
        self._workers = workers

    @property
    def phase(self) -> LoadPhase:
        """The phase of the load."""
        return LoadPhase(self._cells[_PHASE])

    @phase.setter
    def phase(self, phase: LoadPhase) -> None:
        self._cells[_PHASE] = phase

    @property
    def start_ns(self) -> int:
        """When the load started, in monotonic nanoseconds."""
        return self._cells[_START_NS]

    @start_ns.setter
    def start_ns(self, now_ns: int) -> None:
        self._cells[_START_NS] = now_ns

    @property
    def measured_from_ns(self) -> int:
        """From when latencies are recorded, in monotonic nanoseconds; 0 during the warm-up."""
        return self._cells[_FROM_NS]

    @measured_from_ns.setter
    def measured_from_ns(self, now_ns: int) -> None:
        self._cells[_FROM_NS] = now_ns

    def post(self, worker: int, totals: Totals) -> None:
        """Store the counters of `worker`."""
        at = _HEAD + worker * _WIDTH
        self._cells[at : at + _WIDTH] = [totals.published, totals.consumed, totals.settled, totals.nacked]

    def totals(self) -> Totals:
        """Return the sum of the counters of all workers."""
        cells = self._cells[_HEAD:]
        return Totals(*(sum(cells[column::_WIDTH]) for column in range(_WIDTH)))


@dataclass(frozen=True, slots=True)
class WorkerCounters:
    """The shared counters, with the row of one worker."""

    shared_counters: SharedCounters
    number: int

    def post(self, totals: Totals) -> None:
        """Store the counters of this worker."""
        self.shared_counters.post(self.number, totals)
