"""A start whose first write of the metadata fails, which serves only what a power cut does not undo."""

import errno

import pytest
from tests.seeds import SEEDS
from tests.sim.test_journal import Proposed, Simulation

from warren.journal.file_format import NAME
from warren.metadata.commands import CommandContext, DeclareQueue, Outcome, PutVhost
from warren.store.disk import CreateFile, DiskStep, SyncDirectory, SyncFile, WriteFile


def killed(seed: int) -> Simulation:
    """A node that was killed before it had synced the declaration of `q`, and has read it."""
    simulation = Simulation(seed)
    Proposed(simulation, PutVhost(name="v"))
    simulation.disk.advance()
    assert Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True)).reply is None
    simulation.disk.advance(1)
    simulation.disk.die()
    simulation.open()
    assert queues(simulation) == {"q"}
    return simulation


def queues(simulation: Simulation) -> set[str]:
    vhost = simulation.metadata.vhost("v")
    return set() if vhost is None else set(vhost.topology.queues)


@pytest.mark.parametrize("kind", [CreateFile, SyncFile, SyncDirectory], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_read_survives_a_power_cut_if_it_is_served(seed: int, kind: type[DiskStep]) -> None:
    simulation = killed(seed)
    simulation.disk.fault = (kind, errno.ENOSPC)
    simulation.journal.begin()
    assert simulation.journal.is_in_doubt
    assert Proposed(simulation, DeclareQueue(vhost="v", name="transient")).reply is not None
    simulation.disk.lose_power()
    simulation.open()
    assert queues(simulation) == {"q"}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_a_failed_sync_has_given_up_survives_a_power_cut_if_it_is_served(seed: int) -> None:
    simulation = killed(seed)
    simulation.disk.fault, simulation.disk.fault_name = (SyncFile, errno.EIO), NAME
    with pytest.raises(OSError, match="EIO"):
        simulation.disk.perform([SyncFile(NAME)])
    simulation.disk.is_full = True
    simulation.journal.begin()
    assert simulation.journal.is_in_doubt
    simulation.disk.is_full = False
    simulation.disk.lose_power()
    simulation.open()
    assert queues(simulation) == {"q"}


@pytest.mark.parametrize("kind", [WriteFile, SyncFile], ids=lambda kind: kind.__name__)
def test_a_start_that_cannot_sync_what_it_has_read_fails(kind: type[DiskStep]) -> None:
    simulation = killed(0)
    simulation.disk.is_full = True
    simulation.disk.fault, simulation.disk.fault_name = (kind, errno.EIO), NAME
    with pytest.raises(OSError, match="EIO"):
        simulation.journal.begin()


def test_a_start_that_cannot_write_a_queue_of_the_definitions_fails() -> None:
    simulation = killed(0)
    context = CommandContext(index=simulation.metadata.index + 1, now=0)
    defined = DeclareQueue(vhost="v", name="defined", durable=True)
    assert simulation.metadata.apply(defined, context).outcome is Outcome.DONE
    simulation.disk.is_full = True
    with pytest.raises(OSError, match="ENOSPC"):
        simulation.journal.begin()


def test_a_first_start_that_cannot_write_fails() -> None:
    simulation = Simulation(0)
    simulation.disk.files.clear()
    simulation.open()
    simulation.disk.is_full = True
    with pytest.raises(OSError, match="ENOSPC"):
        simulation.journal.begin()
