"""Starts, observes and ends the worker processes of a load."""

import multiprocessing
import multiprocessing.connection
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from warren.cli.perf.shared_counters import LoadPhase, SharedCounters, Totals, WorkerCounters
from warren.cli.perf.usage import Usage, usage

SETUP_S_MAX = 300
SETUP_PROGRESS_S = 5.0
STALL_S_MAX = 60
STOP_S_MAX = 60
PROGRESS_S = 1.0
_POLL_S = 0.001

Report = TypeVar("Report")


class LoadFailed(Exception):
    """The load could not be run; the text has the reason."""


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """Counters and resource usage at one time."""

    at_s: float
    totals: Totals
    broker: Usage
    client: tuple[Usage, ...]  # per process


@dataclass(frozen=True, slots=True)
class Observer:
    """The processes of the broker, and callbacks for progress.

    `on_progress` gets the previous and the current snapshot each second; `on_setup` gets the progress while a
    large load is set up or removed.
    """

    broker_pids: Sequence[int] = ()
    on_progress: Callable[[LoadSnapshot, LoadSnapshot], None] = lambda before, now: None
    on_setup: Callable[[str], None] = lambda text: None


# A member is called in its own process with its row of the shared counters. It sets itself up and returns a
# function, which is called when all members are ready, runs until the load stops, and returns measurements.
Member = Callable[[WorkerCounters], Callable[[], Report]]


class WorkerGroup(Generic[Report]):
    """A process for each member, and the counters that they share."""

    def __init__(self, members: Sequence[Member[Report]], observer: Observer) -> None:
        context = multiprocessing.get_context("fork")  # faster than spawn, which imports everything again
        self.shared_counters = SharedCounters(len(members))
        self._observer = observer
        self._pipes: list[Pipe] = []
        self._processes: list[BaseProcess] = []
        for number, member in enumerate(members):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_run_worker,
                args=(member, WorkerCounters(self.shared_counters, number), theirs),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def start(self, warmup_s: float) -> None:
        """Wait until all processes are ready, and start the load."""
        begun_s = time.monotonic()
        for pipe in self._pipes:
            while not pipe.poll(SETUP_PROGRESS_S) and time.monotonic() - begun_s < SETUP_S_MAX:
                self._observer.on_setup(f"connecting for {time.monotonic() - begun_s:.0f} s")
            self._receive(pipe, 0)
        now_ns = time.monotonic_ns()
        self.shared_counters.start_ns = now_ns
        self.shared_counters.measured_from_ns = now_ns + int(warmup_s * 1e9)
        self.shared_counters.phase = LoadPhase.RUNNING

    def watch(self, duration_s: float) -> None:
        """Sleep, report each second, and raise LoadFailed at once if a process fails."""
        before = self.snapshot()
        end_s = before.at_s + duration_s
        while (remaining_s := end_s - time.monotonic()) > 0:
            for pipe in multiprocessing.connection.wait(self._pipes, min(remaining_s, PROGRESS_S)):
                assert isinstance(pipe, Pipe)
                self._receive(pipe, 0)
                raise LoadFailed("a process of the load tool ended early")
            now = self.snapshot()
            if now.at_s - before.at_s >= PROGRESS_S:
                self._observer.on_progress(before, now)
                before = now

    def await_published(self, count: int) -> None:
        """Wait until `count` messages are published. Raises LoadFailed if publishing stalls."""
        before, since_s = -1, time.monotonic()
        while (published := self.shared_counters.totals().published) < count:
            if published > before:
                before, since_s = published, time.monotonic()
            if time.monotonic() - since_s > STALL_S_MAX:
                text = (
                    f"{published:,} of {count:,} messages were published, then none for {STALL_S_MAX} seconds"
                )
                raise LoadFailed(text)
            self.watch(_POLL_S)

    def snapshot(self) -> LoadSnapshot:
        """Return the current counters and resource usage."""
        totals = self.shared_counters.totals()
        at_s = time.monotonic()
        client = tuple(usage([process.pid]) for process in self._processes if process.pid is not None)
        return LoadSnapshot(at_s, totals, usage(self._observer.broker_pids), client)

    def stop(self) -> list[Report]:
        """Stop all processes, and return their measurements."""
        self.shared_counters.phase = LoadPhase.STOPPED
        return [self._receive(pipe, STOP_S_MAX) for pipe in self._pipes]

    def end(self) -> None:
        """Terminate processes that are still running."""
        self.shared_counters.phase = LoadPhase.STOPPED
        for process in self._processes:
            process.join(STOP_S_MAX)
            if process.is_alive():
                process.terminate()
                process.join()

    def _receive(self, pipe: Pipe, wait_s: float) -> Report:
        """Return the next report of a process. Raises LoadFailed if it fails or does not answer."""
        if not pipe.poll(wait_s):
            raise LoadFailed(f"a process of the load tool did not answer for {wait_s} seconds")
        try:
            report: Report | _Failed = pipe.recv()
        except EOFError:
            raise LoadFailed("a process of the load tool ended unexpectedly") from None
        if isinstance(report, _Failed):
            raise LoadFailed(report.reason)
        return report


@dataclass(frozen=True, slots=True)
class _Failed:
    """The report of a process that failed, with the reason."""

    reason: str


def raise_open_files_limit() -> None:
    """Raise the limit of open files to the maximum for this user."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _run_worker(member: Member[Report], worker_counters: WorkerCounters, parent: Pipe) -> None:
    """Run a member; the main function of its process."""
    try:
        raise_open_files_limit()
        run = member(worker_counters)
        parent.send(None)
        while worker_counters.shared_counters.phase is LoadPhase.SETUP:
            time.sleep(_POLL_S)
        parent.send(run())
    except Exception as error:
        parent.send(_Failed(f"{type(error).__name__}: {error}"))
    finally:
        parent.close()
