"""A broker whose messages are on a simulated disk, so that it can lose power and start again."""

import random

from tests.sim.disk import SimulatedDisk
from tests.unit.session.client import Broker

from warren.model.message_position import POSITIONS_CAPABILITY
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_erased, open_store
from warren.store.store_port import StorePort
from warren.store.stores import Stores


class _Port(StorePort):
    """Notes that there is something to commit."""

    is_due = False

    def commit_due(self) -> None:
        self.is_due = True


class DurableBroker(Broker):
    """A broker with a store; its metadata survive as they are, its messages as far as they were synced."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.disk = SimulatedDisk(chance)
        self._spill = SimulatedDisk(chance)
        self.server.random_bytes = chance.randbytes
        self.server.settings.handshake.server_properties[POSITIONS_CAPABILITY] = True
        self.port = _Port()
        self.services.vhost.attach_store(self._open().stores)

    def work(self, steps: int | None = None) -> None:
        """Commit what is due, and perform so many steps of the disk, or all."""
        if self.port.is_due:
            self.port.is_due = False
            self.store.commit()
        self.disk.advance(steps)

    def sync(self) -> None:
        """Write and sync everything."""
        while self.port.is_due or self.disk.is_busy:
            self.work()

    def crash(self, *, is_power_lost: bool) -> None:
        """Lose the process, or the power, and start again; connections are gone."""
        metadata = self.services.metadata
        self.services.close()
        self.turns.clear()
        if is_power_lost:
            self.disk.lose_power()
        else:
            self.disk.die()
        self._spill = SimulatedDisk(self.chance)
        dependencies = VhostDependencies(
            random_bytes=self.chance.randbytes,
            later=self.turns.append,
            after=lambda pause_ms, action: self.later.append((pause_ms, action)),
            turn=self.clock.turn,
            node_name="warren@test",
        )
        self.services = VhostServices.open("/", metadata, self.proposals, dependencies)
        self.port = _Port()
        opened = self._open()
        self.services.vhost.attach_store(opened.stores)
        for _ in self.services.recover(opened.recovered.queues):
            pass
        self.server.vhost_services["/"] = self.services

    def _open(self) -> "_Opened":
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=lambda _: True, progress=lambda *_: None
        )
        recovered = open_store(self.disk, self.port, dependencies)
        assert not recovered.damage
        self.store = recovered.store
        transient = open_erased(self._spill, _Port(), self.chance.randbytes)
        return _Opened(recovered, Stores(recovered.store, transient))


class _Opened:
    """The stores, and what was found in the persistent one."""

    def __init__(self, recovered: RecoveredStore, stores: Stores) -> None:
        self.recovered = recovered
        self.stores = stores
