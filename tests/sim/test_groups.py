"""Atomic groups of messages on a disk that loses power at any step, driven by seeds.

A marker records the progress of a writer whose groups must be stored exactly once: every message of the
groups up to it exists, unless it was released, and no message of later groups. Confirmed progress is never
lost, even after the segments with the markers are deleted.
"""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import BODY_END, StoredMessage, encode_address
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_store
from warren.store.store_port import StorePort
from warren.wire.properties import BasicProperties

QUEUES = (1, 2)
KEYS = (b"one", b"two", b"three")
STEPS = 150
SEGMENT_SIZES = (8_192, 700)
BODY_SIZES = ((0, 20, 700, 3_000), (0, 1, 20, 200))
PROPERTIES = BasicProperties(delivery_mode=2).encode_list()


class Port(StorePort):
    """A port that commits when the simulation decides."""

    def commit_due(self) -> None:
        """A commit will follow."""


class ConfirmedProgress(ConfirmListener):
    """Records up to which group of one key everything is confirmed."""

    def __init__(self) -> None:
        self.safe = 0

    def expect(self, sequence: int) -> None:
        assert sequence > self.safe

    def done(self, first: int, last: int) -> None:
        self.safe = last


class Simulation:
    """One store, and the progress of each key in it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.body_sizes = BODY_SIZES[seed % 2]
        self.disk = SimulatedDisk(self.chance)
        # Key -> number of the last group; queues and bodies of its messages by key and number.
        self.sent = dict.fromkeys(KEYS, 0)
        self.asking = {key: ConfirmedProgress() for key in KEYS}
        self.groups: dict[tuple[bytes, int], list[tuple[int, bytes]]] = {}
        # (queue, body) -> position and message; released ones, whose release may be lost.
        self.held: dict[tuple[int, bytes], tuple[int, StoredMessage]] = {}
        self.released: set[tuple[int, bytes]] = set()
        self.gone: set[tuple[int, bytes]] = set()
        self.number = 0
        self.store = self.open().store
        self.next = dict.fromkeys(QUEUES, 0)

    def open(self) -> RecoveredStore:
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=lambda _: True, progress=lambda *_: None
        )
        return open_store(self.disk, Port(), dependencies)

    def group(self) -> None:
        """Append the next group of one key, which may be empty."""
        key = self.chance.choice(KEYS)
        number = self.sent[key] = self.sent[key] + 1
        self.store.begin_group()
        added = [self.append() for _ in range(self.chance.choice([0, 1, 2, 5]))]
        self.groups[key, number] = [name for names in added for name in names]
        self.store.end_group(key, b"%d" % number)
        self.store.confirm(self.asking[key], number)

    def append(self) -> list[tuple[int, bytes]]:
        self.number += 1
        body = b"%d " % self.number + bytes(self.chance.choice(self.body_sizes))
        message = StoredMessage(encode_address("", "q"), PROPERTIES, body + BODY_END, 5)
        names = []
        for queue in self.chance.sample(QUEUES, self.chance.choice([1, 2])):
            self.store.append(message, self.store.cursor(queue, 0), self.next[queue])
            self.held[queue, body] = (self.next[queue], message)
            self.next[queue] += 1
            names.append((queue, body))
        return names

    def release(self) -> None:
        if self.held:
            name = self.chance.choice(list(self.held))
            position, message = self.held.pop(name)
            self.store.release(message, self.store.cursor(name[0], 0), position)
            self.released.add(name)

    def drain(self) -> None:
        for _ in range(len(self.held) - self.chance.choice([0, 0, 2])):
            self.release()

    def step(self) -> None:
        actions = [self.group] * 5 + [self.append, self.release, self.release, self.drain]
        actions += [self.commit] * 3 + [self.work] * 4 + [self.store.maintain]
        (self.crash if self.chance.random() < 0.04 else self.chance.choice(actions))()

    def commit(self) -> None:
        self.store.commit()

    def work(self) -> None:
        self.disk.advance(self.chance.choice([1, 2, 3, None]))

    def crash(self) -> None:
        if self.chance.random() < 0.3:
            while not self.store.is_idle:
                self.store.commit()
                self.disk.advance()
            assert all(self.asking[key].safe == self.sent[key] for key in KEYS)
        elif self.chance.random() < 0.5:
            # In the middle of a batch: written, and not synced.
            self.disk.advance()
            self.group()
            self.store.commit()
            self.disk.advance(1)
        self.disk.lose_power()
        recovered = self.open()
        assert not recovered.damage
        self.check(recovered)

    def check(self, recovered: RecoveredStore) -> None:
        markers = recovered.store.markers
        done = {key: int(markers[key].value) if key in markers else 0 for key in KEYS}
        found = {
            (queue, message.body): (position, message)
            for queue in QUEUES
            for position, message in messages_in(recovered, queue)
        }
        for key in KEYS:
            assert self.asking[key].safe <= done[key] <= self.sent[key]
        for (key, number), names in self.groups.items():
            for name in names:
                if number > done[key]:
                    assert name not in found, f"group {number} of {key!r} is incomplete"
                elif name not in self.released | self.gone:
                    assert name in found, f"{name} of group {number} of {key!r} is lost"
        assert not self.gone & found.keys(), "a released message returned"
        self.go_on(recovered, found, done)

    def go_on(
        self,
        recovered: RecoveredStore,
        found: dict[tuple[int, bytes], tuple[int, StoredMessage]],
        done: dict[bytes, int],
    ) -> None:
        self.store = recovered.store
        self.gone |= (self.held.keys() | self.released) - found.keys()
        self.held, self.released = found, set()
        self.sent = done
        self.asking = {key: ConfirmedProgress() for key in KEYS}
        for key in KEYS:
            self.asking[key].safe = done[key]
        self.groups = {(key, number): names for (key, number), names in self.groups.items()
                       if number <= done[key]}  # fmt: skip
        ends = {queue: levels[0].end for queue, levels in recovered.queues.items()}
        self.next = {queue: ends.get(queue, 0) for queue in QUEUES}


@pytest.mark.seeds(SEEDS)
def test_a_group_is_stored_with_its_mark_or_not_at_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed)
    for _ in range(STEPS):
        simulation.step()
    simulation.crash()
