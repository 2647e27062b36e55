"""An older copy of a store or of the metadata is refused, and whatever a crash leaves of both is started."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.sim.test_simulated_node import Bench

from warren.simulation.disk import SimulatedDisk
from warren.simulation.simulated_node import METADATA, StartRefused
from warren.store.disk import DiskStep
from warren.store.reach import FOLDER, NAME, OlderCopyError, StartReach, StoreReach

STORE = ("/", "//streams")
METADATA_FOLDER = (METADATA, f"{METADATA}/{FOLDER}")
# A start has fewer steps.
STEPS_MAX = 200


class Killed(BaseException):
    """The process ends at a step."""


def filled(count: int = 10) -> Bench:
    """A broker with `count` confirmed messages."""
    bench = Bench()
    bench.connect()
    bench.declare()
    bench.flow()
    bench.publish(count)
    bench.flow()
    return bench


def stop(bench: Bench) -> None:
    """Stop the broker; its client has no connection then."""
    bench.machine.stop()
    bench.network.cut_all()
    bench.history.crashed(is_power_lost=False)


def copied(bench: Bench, directories: tuple[str, ...]) -> dict[str, SimulatedDisk]:
    """A copy of `directories`, as they are on the disk."""
    return {name: copy.deepcopy(bench.machine.disk(name)) for name in directories}


def put_back(bench: Bench, older: dict[str, SimulatedDisk]) -> None:
    """Replace directories of a broker that has stopped."""
    bench.machine._disks |= older


@pytest.mark.parametrize("way", ["kill", "cut_power", "stop"])
def test_a_store_that_is_older_than_the_metadata_is_refused(way: str) -> None:
    bench = filled()
    stop(bench)
    older = copied(bench, STORE)
    bench.machine.start()
    bench.connect()
    bench.publish(50)
    bench.flow()
    getattr(bench.machine, way)()
    put_back(bench, older)
    with pytest.raises(OlderCopyError, match=r"older copy.*stores\.accept_older"):
        bench.machine.start()


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_a_store_that_was_copied_in_the_last_run_is_refused(way: str) -> None:
    bench = filled()
    older = copied(bench, STORE)
    bench.publish(50)
    bench.flow()
    # What was reached is noted once a second.
    bench.machine.clock.now += 1_000
    bench.machine.node.run_timers()
    getattr(bench.machine, way)()
    for disk in older.values():
        disk.die()
    put_back(bench, older)
    with pytest.raises(OlderCopyError, match="and has reached byte"):
        bench.machine.start()


@pytest.mark.parametrize("way", ["kill", "cut_power", "stop"])
def test_metadata_that_are_older_than_a_store_are_refused(way: str) -> None:
    bench = filled()
    stop(bench)
    older = copied(bench, METADATA_FOLDER)
    bench.machine.start()
    bench.connect()
    bench.publish(50)
    bench.flow()
    getattr(bench.machine, way)()
    put_back(bench, older)
    with pytest.raises(StartRefused, match="older copy, up to change"):
        bench.machine.start()


@pytest.mark.parametrize("way", ["kill", "cut_power", "stop"])
def test_an_older_copy_of_both_is_started(way: str) -> None:
    bench = filled()
    stop(bench)
    older = copied(bench, STORE + METADATA_FOLDER)
    bench.machine.start()
    getattr(bench.machine, way)()
    put_back(bench, older)
    bench.machine.start()


def test_a_directory_of_a_version_without_these_files_is_started() -> None:
    bench = filled()
    stop(bench)
    del bench.machine.disk("/").files[NAME]
    bench.machine._disks[f"{METADATA}/{FOLDER}"] = SimulatedDisk(bench.machine.chance)
    bench.machine.start()


def crashed_start(bench: Bench, step: int, end: Callable[[SimulatedDisk], None]) -> bool:
    """Start, and end the process at a step of any disk; False if the start had fewer."""
    is_started = True
    with killed_at(step):
        try:
            bench.machine.start()
        except Killed:
            is_started = False
    bench.machine.running = None
    for disk in bench.machine.disks:
        end(disk)
    return not is_started


@contextmanager
def killed_at(step: int) -> Iterator[None]:
    """Raise Killed before the step with this number, and at all that follow."""
    perform, left = SimulatedDisk._do, step

    def count(self: SimulatedDisk, each: DiskStep) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        perform(self, each)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedDisk, "_do", count)
        yield


def first_refusal(end: Callable[[SimulatedDisk], None]) -> str:
    """The first refusal of a start behind one that has ended at any of its steps, and at the next one."""
    bench = filled()
    # The segment that a start begins, and writes nothing to, is used again by the next one.
    for _ in range(2):
        stop(bench)
        bench.machine.start()
    stop(bench)
    stopped = bench.machine._disks
    for step in range(STEPS_MAX):
        bench.machine._disks = {name: copy.deepcopy(disk) for name, disk in stopped.items()}
        has_ended = crashed_start(bench, step, end)
        crashed_start(bench, step + 1, end)
        try:
            bench.machine.start()
        except (StartRefused, OlderCopyError) as error:
            return f"step {step}: {error}"
        bench.machine.kill()
        if not has_ended:
            return ""
    raise AssertionError("a start has more steps")


@pytest.mark.parametrize("end", [SimulatedDisk.die, SimulatedDisk.lose_power])
def test_whatever_a_start_that_has_ended_leaves_is_started(end: Callable[[SimulatedDisk], None]) -> None:
    assert first_refusal(end) == ""


def test_the_other_order_of_the_two_writes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = StoreReach._fault

    def write_too_early(self: StoreReach, end: int, *, is_damaged: bool) -> OlderCopyError | None:
        error = fault(self, end, is_damaged=is_damaged)
        self._beside_metadata.begin(StartReach(self._beside_store.found.start + 1))
        return error

    monkeypatch.setattr(StoreReach, "_fault", write_too_early)
    assert "older copy" in first_refusal(SimulatedDisk.die)
