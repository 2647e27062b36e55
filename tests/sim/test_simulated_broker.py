"""A whole broker, crashed at any point by seeds: promises are kept, and planted mistakes are found."""

import random
from collections.abc import Callable, Sequence

import pytest
from tests.seeds import SEEDS

from warren.simulation import simulation
from warren.simulation.actions import Action, Kind, draw
from warren.simulation.campaign import CampaignTotals, repeat, run_seed
from warren.simulation.disk import SimulatedDisk
from warren.simulation.history import History
from warren.simulation.message_copy import Copy, Publisher
from warren.simulation.queue_history import QueueSpecification
from warren.simulation.shrinking import shrink
from warren.simulation.topology import standard_topology
from warren.simulation.vhost_unit import VhostUnit
from warren.simulation.violation import Violation
from warren.store.disk import DiskStep, SyncFile, WriteFile

ACTIONS = 100
# A run takes as long as a hundred of the store alone.
RUNS = max(1, SEEDS // 30)
# Seeds within which each mistake is found.
PLANTED_SEEDS = 12


@pytest.mark.seeds(RUNS)
def test_a_broker_keeps_its_promises_whatever_happens(seed: int) -> None:
    actions = draw(seed, ACTIONS, simulation.CLIENT_COUNT)
    simulation.Simulation(standard_topology()).run(actions)


def test_a_seed_repeats_its_run() -> None:
    def outcome() -> object:
        return simulation.Simulation(standard_topology()).run(draw(5, ACTIONS, simulation.CLIENT_COUNT))

    assert outcome() == outcome()


def found(seeds: range = range(PLANTED_SEEDS)) -> str:
    """What the first of `seeds` that breaks a promise breaks."""
    for seed in seeds:
        broken = repeat(standard_topology(), draw(seed, ACTIONS, simulation.CLIENT_COUNT))
        if broken:
            return broken
    return ""


def leave_out(monkeypatch: pytest.MonkeyPatch, is_left_out: Callable[[DiskStep], bool]) -> None:
    """Have disks skip some steps."""
    perform = SimulatedDisk._do

    def skip(self: SimulatedDisk, step: DiskStep) -> None:
        if not is_left_out(step):
            perform(self, step)

    monkeypatch.setattr(SimulatedDisk, "_do", skip)


def test_a_disk_that_does_not_sync_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(monkeypatch, lambda step: isinstance(step, SyncFile) and step.name.endswith(".segment"))
    assert "damaged" in found()


def test_metadata_that_are_not_logged_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(
        monkeypatch, lambda step: isinstance(step, WriteFile) and step.name == "metadata" and step.at > 0
    )
    assert "the metadata" in found()


def test_a_turn_with_too_much_work_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "TURN_WORK_MAX", 5)
    assert "pieces of work" in found()


def test_an_unexpected_exception_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: VhostUnit) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(VhostUnit, "maintain", fail)
    assert "unexpected KeyError" in found()


class Told:
    """A history with one queue and three promised messages of one channel."""

    def __init__(self, **arguments: object) -> None:
        keys = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        self.history = History([QueueSpecification(vhost="/", name="orders", arguments=keys)])  # type: ignore[arg-type]
        self.queue = self.history.queues[0]
        self.queue.defined()
        publisher = Publisher("a")
        for _ in range(3):
            id = self.history.next_id()
            copy = Copy(id, publisher, persistent=True, priority=0)
            route = self.history.route("/", "", "orders", {})
            self.history.confirmed(self.history.published(id, route, copy))


def test_a_message_behind_a_later_one_of_its_channel_is_found() -> None:
    told = Told()
    with pytest.raises(Violation, match="message 2 behind message 3"):
        told.history.inspected(told.queue, [1, 3, 2])


def test_a_first_delivery_behind_a_later_one_is_found() -> None:
    told = Told()
    told.history.delivered(told.queue, 2, object(), "consumer", flag=False)
    with pytest.raises(Violation, match="message 1 of queue 'orders' is delivered behind message 2"):
        told.history.delivered(told.queue, 1, object(), "consumer", flag=False)


def test_a_message_of_two_consumers_is_found() -> None:
    told = Told()
    told.history.delivered(told.queue, 1, object(), "one", flag=False)
    with pytest.raises(Violation, match="delivered to two consumers"):
        told.history.delivered(told.queue, 1, object(), "other", flag=True)


def test_a_message_that_is_delivered_again_before_its_time_is_found() -> None:
    told = Told(queue_type="quorum", delayed_retry_type="all", delayed_retry_min=400)
    for returned in (False, True):
        copy = told.history.delivered(told.queue, 1, object(), "consumer", flag=returned)
        told.history.returned(told.queue, copy)
        # The return was not written.
        if not returned:
            told.history.crashed(is_power_lost=False)
    told.history.synced()
    told.history.crashed(is_power_lost=False)
    told.history.now += 399
    with pytest.raises(Violation, match="message 1 of queue 'orders' is delivered 1 ms too early"):
        told.history.delivered(told.queue, 1, object(), "consumer", flag=True)


def test_a_message_that_is_twice_in_a_queue_is_found() -> None:
    told = Told()
    with pytest.raises(Violation, match="twice"):
        told.history.inspected(told.queue, [1, 2, 2, 3])


def test_a_message_that_nobody_published_is_found() -> None:
    told = Told()
    with pytest.raises(Violation, match="nobody published"):
        told.history.delivered(told.queue, 9, object(), "consumer", flag=False)


def test_a_finding_is_shrunk_and_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    perform = simulation.Simulation.perform

    def fail(self: simulation.Simulation, action: Action) -> None:
        perform(self, action)
        if action.kind is Kind.PURGE:
            raise ValueError("planted")

    monkeypatch.setattr(simulation.Simulation, "perform", fail)
    seed = next(seed for seed in range(50) if Kind.PURGE in [one.kind for one in draw(seed, 40, 4)])
    finding = run_seed(standard_topology(), seed, 40, CampaignTotals())
    assert finding is not None
    assert [action.kind for action in finding.actions] == [Kind.PURGE]
    assert repeat(standard_topology(), finding.actions) == finding.text == "unexpected ValueError: planted"


def test_shrinking_keeps_only_what_is_needed() -> None:
    def fails(some: Sequence[int]) -> bool:
        return 7 in some and 40 in some

    assert shrink(range(50), fails, 1_000) == [7, 40]


def test_drawing_depends_on_the_seed_only() -> None:
    random.seed(1)
    first = draw(3, 20, 4)
    random.seed(2)
    assert draw(3, 20, 4) == first
    assert draw(4, 20, 4) != first
