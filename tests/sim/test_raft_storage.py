"""The only replica of a group, run by the driver on a disk that loses power at any step, driven by seeds.

What was applied was committed: after each crash it is applied again, the same entries at the same indexes,
with their messages at the same positions, unless these were settled. Messages that were published for a
classic queue too are in both or, if the write was torn before the entry, in that queue alone.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small
from tests.sim.test_group_log import BODY_SIZES, LEVELS, PROPERTIES, SEGMENT_SIZES, EndedError, Port

from warren.model.message import BODY_END, StoredMessage, encode_address
from warren.queues.quorum.raft_storage import ALONE, GroupStorage, QuorumPayload, encode_configuration
from warren.replication.driver import RaftDriver
from warren.replication.raft.raft_messages import Entry, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies
from warren.store.group_listener import GroupListener
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupSnapshot, PositionRun
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_store

GROUP, CLASSIC = 1, 2
REPLICA = 1
STEPS = 200

Place = tuple[int, int]


class Simulation(GroupListener):
    """A store with one group and a classic queue, and what was committed in the group."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.body_sizes = BODY_SIZES[seed % 2]
        self.disk = SimulatedDisk(self.chance)
        self.number = 0
        # What was applied at each index, the bodies at the positions of the group, and which were settled.
        self.history: dict[int, tuple[int, bytes, tuple[PositionRun, ...]]] = {}
        self.bodies: dict[Place, bytes] = {}
        self.settled: set[Place] = set()
        self.unproposed: list[tuple[int, StoredMessage]] = []
        self.proposed: dict[bytes, list[bytes]] = {}
        self.start(self.open())

    def open(self) -> RecoveredStore:
        replicas = {GROUP: REPLICA} if self.history else {}
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=lambda _: True, progress=lambda *_: None,
            replicas=replicas,
        )  # fmt: skip
        return open_store(self.disk, Port(), dependencies)

    def start(self, recovered: RecoveredStore) -> None:
        self.store = recovered.store
        found = GroupLog.find(self.store, GROUP)
        self.log = found or GroupLog.create(self.store, GROUP, REPLICA, encode_configuration(ALONE))
        self.log.listener = self
        self.unproposed = []
        classic = recovered.queues.get(CLASSIC, {}).get(0)
        self.next = classic.end if classic else 0
        self.applied = self.log.snapshot.index
        self.terms: list[int] = []
        storage = GroupStorage(self.log)
        dependencies = RaftDependencies(storage=storage, chance=lambda _: 0)
        replica = Replica(REPLICA, dependencies, RaftSettings(), applied=self.applied)
        self.driver = RaftDriver(replica, storage, self, self.send)
        self.driver.campaign()
        self.driver.flush()

    # As the listener of the log, and as the machine.

    def prepare(self) -> None:
        if self.unproposed and self.driver.is_leader and self.chance.random() < 0.8:
            self.propose()

    def shorten(self) -> None:
        """All entries are kept."""

    def written(self, ticket: int) -> None:
        self.driver.written(ticket)

    def apply(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            assert entry.index == self.applied + 1
            self.applied = entry.index
            payload = entry.payload
            if isinstance(payload, QuorumPayload):
                seen = (entry.term, payload.commands, payload.runs)
                self.note(payload)
            else:
                assert payload == b""
                seen = (entry.term, b"", ())
            assert self.history.setdefault(entry.index, seen) == seen, "another entry was committed there"

    def note(self, payload: QuorumPayload) -> None:
        places = [
            (run.level, position)
            for run in payload.runs
            for position in range(run.first, run.first + run.count)
        ]
        for place, body in zip(places, self.proposed[payload.commands], strict=True):
            assert self.bodies.setdefault(place, body) == body, f"{place} is used twice"

    def role_changed(self) -> None:
        """Nobody waits for that."""

    def install(self, snapshot: Snapshot) -> None:
        raise AssertionError(snapshot)

    def send(self, messages: Sequence[RaftMessage]) -> None:
        raise AssertionError(messages)

    # What happens.

    def step(self) -> None:
        actions: list[Callable[[], None]] = [self.publish] * 8 + [self.settle] * 3 + [self.compact]
        actions += [self.store.commit] * 4 + [self.work] * 6 + [self.propose_nothing, self.store.maintain]
        (self.crash if self.chance.random() < 0.05 else self.chance.choice(actions))()

    def publish(self) -> None:
        """Publish to the group, and sometimes to the classic queue by the same routing."""
        self.number += 1
        body = b"%d " % self.number + bytes(self.chance.choice(self.body_sizes))
        message = StoredMessage(encode_address("", "q"), PROPERTIES, body + BODY_END, 5)
        level = self.chance.choice(LEVELS)
        self.log.place(message, level)
        self.unproposed.append((level, message))
        if self.chance.random() < 0.3:
            self.store.append(message, self.store.cursor(CLASSIC, 0), self.next)
            self.next += 1

    def propose(self) -> None:
        messages, self.unproposed = self.unproposed, []
        ends = {level: self.log.end(level) for level in LEVELS}
        runs = []
        for level, same in groupby(messages, key=lambda each: each[0]):
            count = len(list(same))
            runs.append(PositionRun(level, ends[level], count))
            ends[level] += count
        self.number += 1
        commands = b"%d " % self.number
        self.proposed[commands] = [message.body for _, message in messages]
        index = self.driver.propose(QuorumPayload(tuple(runs), commands), self.chance.choice([1, 90, 5_000]))
        assert index, "little is uncommitted"
        self.driver.flush()

    def propose_nothing(self) -> None:
        """Only commands, while messages may wait for their entry."""
        if self.driver.is_leader and not self.unproposed:
            self.propose()
        else:
            self.log.announce()

    def settle(self) -> None:
        """Release messages that are committed."""
        known = [place for place in self.bodies if place not in self.settled]
        for place in self.chance.sample(known, min(len(known), self.chance.choice([1, 3, 9]))):
            message = self.message_at(place)
            if message is not None:
                cursor, stored = self.store.cursor(GROUP, place[0]), self.log.stored(*place)
                self.store.release(message, cursor, stored)
                self.settled.add(place)

    def message_at(self, place: Place) -> StoredMessage | None:
        """A committed message, if it is behind the snapshot."""
        level, position = place
        for index in range(self.log.first, self.applied + 1):
            before = 0
            for run in self.history[index][2]:
                if run.level == level and run.first <= position < run.first + run.count:
                    return self.log.messages(index)[before + position - run.first]
                before += run.count
        return None

    def compact(self) -> None:
        if self.applied > self.log.snapshot.index:
            index = self.chance.randrange(self.log.first, self.applied + 1)
            term, configuration = self.history[index][0], encode_configuration(ALONE)
            self.log.compact(GroupSnapshot(index=index, term=term, configuration=configuration))

    def work(self) -> None:
        self.disk.advance(self.chance.choice([1, 2, 3, None]))

    def settle_all(self) -> None:
        while not self.store.is_idle:
            self.store.commit()
            self.disk.advance()

    def crash(self) -> None:
        committed = self.applied
        self.disk.lose_power()
        recovered = self.open()
        if [error.reason for error in recovered.damage] == ["the head of the segment is damaged"]:
            # Torn within its 24 bytes, in a file that is reused: that cannot be told from rot.
            raise EndedError
        assert not recovered.damage
        found = GroupLog.find(recovered.store, GROUP)
        assert found is not None or not self.history, "a replica with entries is there"
        self.start(recovered)
        assert self.log.untrusted == ""
        self.settle_all()
        assert self.driver.is_leader
        assert self.applied > committed
        self.check(recovered)

    def check(self, recovered: RecoveredStore) -> None:
        """Every committed message that was not settled is there, and no other."""
        there: dict[Place, bytes] = {}
        for level in LEVELS:
            for stored, message in messages_in(recovered, GROUP, level):
                there[level, self.log.logical(level, stored)] = message.body
        for place, body in there.items():
            assert self.bodies[place] == body
        missing = self.bodies.keys() - there.keys()
        assert missing <= self.settled, f"{sorted(missing - self.settled)} are lost"
        # A release that was not synced is forgotten: the machine of a queue knows of it, and releases again.
        self.settled -= there.keys()


@pytest.mark.seeds(SEEDS)
def test_a_replica_alone_keeps_what_it_has_applied(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed)
    with suppress(EndedError):
        for _ in range(STEPS):
            simulation.step()
        simulation.crash()
        simulation.crash()
