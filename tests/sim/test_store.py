"""The message store on a disk that loses power at any step and is full sometimes, driven by seeds.

Confirmed and unreleased messages exist, at their position and undamaged; messages released in a synced batch
do not; others may or may not exist; and nothing else exists.
"""

import errno
import random

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import BODY_END, StoredMessage, encode_address
from warren.store.disk import SyncFile, WriteFile
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_store
from warren.store.store_port import StorePort
from warren.wire.properties import BasicProperties

QUEUES = (1, 2, 3)
STEPS = 150
# In every other seed a few queue states fill a segment, in the others some messages do.
SEGMENT_SIZES = (8_192, 600)
BODY_SIZES = ((0, 1, 20, 700, 3_000), (0, 1, 20, 100))
PROPERTIES = BasicProperties(delivery_mode=2).encode_list()


class Port(StorePort):
    """A port that commits when the simulation decides."""

    def __init__(self) -> None:
        self.is_dirty = False
        self.failures: list[OSError] = []

    def commit_due(self) -> None:
        self.is_dirty = True

    def failed(self, error: OSError, is_full: bool) -> None:
        self.failures.append(error)

    def recovered(self) -> None:
        self.failures.clear()


class Held(ConfirmListener):
    """Records what was confirmed."""

    def __init__(self) -> None:
        self.confirmed: set[int] = set()

    def expect(self, sequence: int) -> None:
        assert sequence not in self.confirmed

    def done(self, first: int, last: int) -> None:
        self.confirmed.update(range(first, last + 1))

    def refused(self, sequence: int) -> None:
        raise AssertionError(sequence)


class Simulation:
    """One store, its expected queues, and the random choices that drive them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        # How often the oldest message is released, and how often power is lost. If both are rare, some
        # messages stay in each segment, and are moved more than once.
        self.in_order, self.crashes = self.chance.choice([(0.5, 0.05), (0.0, 0.01)])
        self.body_sizes = BODY_SIZES[seed % 2]
        self.disk = SimulatedDisk(self.chance)
        self.port = Port()
        self.promises = Held()
        self.number = 0
        # (queue, position) -> (number, body) of appended and unreleased messages.
        self.held: dict[tuple[int, int], tuple[int, StoredMessage]] = {}
        # Released messages, and whether that is certain: the number of releases covered by a sync.
        self.released: dict[tuple[int, int], bool] = {}
        self.next: dict[int, int] = dict.fromkeys(QUEUES, 0)
        self.store = self.open().store

    def open(self) -> RecoveredStore:
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=lambda _: True, progress=lambda *_: None
        )
        return open_store(self.disk, self.port, dependencies)

    def step(self) -> None:
        actions = ["append"] * 6 + ["release"] * 4 + ["drain", "reach", "reach", "read"]
        actions += ["maintain", "commit", "commit", "commit"]
        actions += ["work"] * 4 + ["fill"] * (self.chance.random() < 0.3)
        getattr(self, "crash" if self.chance.random() < self.crashes else self.chance.choice(actions))()

    def append(self) -> None:
        body = self.chance.randbytes(self.chance.choice(self.body_sizes))
        message = StoredMessage(encode_address("", "q"), PROPERTIES, body + BODY_END, 5)
        self.number += 1
        for queue in self.chance.sample(QUEUES, self.chance.choice([1, 1, 2, 3])):
            position = self.next[queue]
            self.next[queue] += 1
            self.store.append(message, self.store.cursor(queue, 0), position)
            self.held[queue, position] = (self.number, message)
        self.store.confirm(self.promises, self.number)

    def release(self) -> None:
        if self.held:
            is_oldest = self.chance.random() < self.in_order
            key = min(self.held) if is_oldest else self.chance.choice(list(self.held))
            _, message = self.held.pop(key)
            self.store.release(message, self.store.cursor(key[0], 0), key[1])
            self.released[key] = False

    def drain(self) -> None:
        """Release all messages, or all but a few."""
        few = [0, 0, 1, 3] if self.in_order else [len(self.held) // 2]
        for _ in range(len(self.held) - self.chance.choice(few)):
            self.release()

    def reach(self) -> None:
        queue = self.chance.choice(QUEUES)
        self.store.delivered_up_to(self.store.cursor(queue, 0), self.chance.randrange(self.next[queue] + 1))

    def read(self) -> None:
        """Check that queues read their messages at their positions, moved or not."""
        reader = self.store.reader()
        for _, message in self.held.values():
            if 0 < message.location < self.store.written:
                found = reader.read(message.location)
                assert found is not None
                assert (found.content, found.address) == (message.content, message.address)

    def maintain(self) -> None:
        self.store.maintain()

    def commit(self) -> None:
        self.store.commit()

    def work(self) -> None:
        if self.port.failures:
            self.store.retry()
        self.disk.advance(self.chance.choice([1, 2, 3, None]))

    def fill(self) -> None:
        """Have the next write or sync fail, since the disk is full."""
        self.disk.fault = (self.chance.choice([WriteFile, SyncFile]), errno.ENOSPC)

    def settle(self) -> None:
        """Commit until nothing is pending: released messages are certainly gone then."""
        self.disk.fault = None
        while not self.store.is_idle:
            self.store.retry()
            self.store.commit()
            self.disk.advance()
        self.released = dict.fromkeys(self.released, True)

    def crash(self) -> None:
        if self.chance.random() < 0.3:
            self.settle()
        self.disk.fault = None
        if self.chance.random() < 0.3:
            # The process is killed after a failed sync: the next one reads what no sync would write.
            self.disk.fault = (SyncFile, errno.EIO)
            self.store.commit()
            self.disk.advance()
            self.disk.fault = None
            self.disk.die()
        else:
            self.disk.lose_power()
        self.port.failures.clear()
        recovered = self.open()
        assert not recovered.damage
        self.check(recovered)

    def check(self, recovered: RecoveredStore) -> None:
        found: dict[tuple[int, int], StoredMessage] = {}
        for queue, levels in recovered.queues.items():
            messages, end = messages_in(recovered, queue), levels[0].end
            positions = [position for position, _ in messages]
            assert positions == sorted(set(positions))
            assert end > max(positions, default=-1)
            found |= {(queue, position): message for position, message in messages}
        for key, (number, message) in self.held.items():
            if number in self.promises.confirmed:
                assert key in found, f"confirmed message {number} of {key} is lost"
            if key in found:
                assert (found[key].content, found[key].address) == (message.content, message.address)
        for key in found:
            assert key in self.held or self.released.get(key) is False, f"{key} returned"
        self.go_on(recovered, found)

    def go_on(self, recovered: RecoveredStore, found: dict[tuple[int, int], StoredMessage]) -> None:
        """Continue with the recovered messages, which are certain."""
        self.store = recovered.store
        numbers = {key: number for key, (number, _) in self.held.items()}
        self.held = {key: (numbers.get(key, 0), message) for key, message in found.items()}
        self.released = {
            (queue, position): True for queue in QUEUES for position in range(self.next[queue])
            if (queue, position) not in found
        }  # fmt: skip
        for key in found:
            number = numbers.get(key, 0)
            self.promises.confirmed.add(number)


@pytest.mark.seeds(SEEDS)
def test_no_confirmed_message_is_lost_and_no_released_message_returns(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed)
    for _ in range(STEPS):
        simulation.step()
    simulation.settle()
    simulation.read()
    assert {number for number, _ in simulation.held.values()} <= simulation.promises.confirmed | {0}
    simulation.crash()
