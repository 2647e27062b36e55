"""The logs of Raft groups on a disk that loses power at any step, driven by seeds.

After each crash the log of a group is one that it had since the last change that was told as durable, with
its hard state, which never goes back. Every message of it is there unless it was settled, no message is there
without its entry, and what the snapshot has as settled does not come back. Snapshots of a leader are
received, with messages at any positions, and installed or given up. Messages are placed, some of them
for a classic queue too, and proposed as the next batch is made, or later, or never. A bit that rots in what
was synced is never served: the replica is untrusted, or nothing of it has changed.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby

import pytest
from msgspec import Struct
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small

from warren.model.message import BODY_END, StoredMessage, encode_address
from warren.store.group_listener import GroupListener
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupEntry, GroupSnapshot, PositionRun
from warren.store.recovery import RecoveredStore, RecoveryDependencies, StoreEnd, open_store
from warren.store.store_port import StorePort
from warren.wire.properties import BasicProperties

GROUPS = (1, 2)
CLASSIC = 3
LEVELS = (0, 4)
REPLICA = 7
STEPS = 200
SEGMENT_SIZES = (8_192, 900)
BODY_SIZES = ((0, 20, 700, 3_000), (0, 1, 20, 200))
PROPERTIES = BasicProperties(delivery_mode=2).encode_list()

Place = tuple[int, int]


class EndedError(Exception):
    """Nothing can be asserted any more."""


class Port(StorePort):
    """A port that commits when the simulation decides."""

    def commit_due(self) -> None:
        """A commit will follow."""

    def commit_due_later(self) -> None:
        """A commit will follow."""


class Seen(Struct, frozen=True):
    """What a group had after one of its changes."""

    hard: tuple[int, int]
    commit: int
    snapshot: GroupSnapshot
    entries: tuple[GroupEntry, ...]
    # (level, position) -> body of every message that any entry so far has, settled or not.
    bodies: dict[Place, bytes]


class Group(GroupListener):
    """One group, what it had after each change, and what was told as durable."""

    def __init__(self, log: GroupLog, bodies: dict[Place, bytes]) -> None:
        self.log = log
        # What it had after each change, from number `base` on.
        self.base = log.ticket
        self.history: list[Seen] = []
        self.bodies = bodies
        # Messages that are not settled: themselves, or their locations.
        self.held: dict[Place, StoredMessage | int] = {}
        self.settled: set[Place] = set()
        # Before each snapshot that was installed: the number of the change, and what was settled then.
        self.installed: list[tuple[int, set[Place]]] = []
        # The messages of a snapshot that is being received.
        self.receiving: dict[Place, StoredMessage] = {}
        # What was placed and is in no entry.
        self.placed: list[tuple[int, StoredMessage]] = []
        self.propose: Callable[[Group], None] = lambda _: None
        # Replaces entries by a snapshot.
        self.compact: Callable[[Group], None] = lambda _: None
        # Entries behind the snapshot that the log has on disk only.
        self.forgotten: tuple[GroupEntry, ...] = ()
        self.commit = 0
        self.told = self.base - 1
        self.note()

    def note(self) -> None:
        log = self.log
        log.listener = self
        self.forgotten = tuple(entry for entry in self.forgotten if entry.index > log.snapshot.index)
        entries = self.forgotten + tuple(
            log.entries(log.first, log.last, 1 << 40) if log.last >= log.first else ()
        )
        hard = (log.hard.term, log.hard.vote)
        self.history.append(Seen(hard, log.hard.commit, log.snapshot, entries, dict(self.bodies)))
        assert len(self.history) == log.ticket - self.base + 1

    def prepare(self) -> None:
        self.propose(self)

    def shorten(self) -> None:
        """Entries are kept, unless some are forgotten."""
        if self.forgotten:
            self.compact(self)

    def written(self, ticket: int) -> None:
        assert self.told < ticket <= self.base + len(self.history) - 1
        self.told = ticket

    def settled_as_of(self, seen: Seen) -> set[Place]:
        """What may be missing in a log that is as `seen`."""
        ticket = self.base + max(at for at, each in enumerate(self.history) if each is seen)
        return next((settled for at, settled in self.installed if ticket < at), self.settled)

    def possible(self) -> list[Seen]:
        """What the group may have after a crash."""
        return self.history[max(self.told - self.base, 0) :]


class Simulation:
    """One store with two groups and a queue beside them, and the random choices that drive them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.body_sizes = BODY_SIZES[seed % 2]
        self.disk = SimulatedDisk(self.chance)
        self.groups: dict[int, Group] = {}
        # The groups that have installed a snapshot.
        self.installed: set[int] = set()
        self.store = self.open().store
        for number in GROUPS:
            group = self.groups[number] = Group(GroupLog.create(self.store, number, REPLICA, b"all"), {})
            group.propose, group.compact = self.propose_sometimes, self.compact
        self.number = 0
        self.next = 0
        self.beside: dict[int, StoredMessage | int] = {}
        self.settle_all()

    def open(self) -> RecoveredStore:
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=lambda _: True, progress=lambda *_: None,
            replicas=dict.fromkeys(self.groups, REPLICA),
        )  # fmt: skip
        return open_store(self.disk, Port(), dependencies)

    def step(self) -> None:
        actions: list[Callable[[], None]] = [self.append] * 3 + [self.settle] * 4 + [self.agree] * 3
        actions += [self.place] * 8 + [self.propose, self.unplace]
        actions += [self.receive] * 2 + [self.install]
        actions += [self.forget] * 2 + [lambda: self.compact(self.any_group())]
        actions += [self.promise, self.cut, self.drain, self.publish, self.consume, self.read]
        actions += [self.store.commit] * 3 + [self.work] * 4 + [self.store.maintain]
        (self.crash if self.chance.random() < 0.04 else self.chance.choice(actions))()

    def any_group(self) -> Group:
        """A group; a snapshot that it was receiving does not come to its end."""
        group = self.groups[self.chance.choice(GROUPS)]
        if group.receiving:
            group.receiving = {}
            group.log.discard_received()
            group.note()
        return group

    def receive(self) -> None:
        """Receive a few messages of a snapshot."""
        group = self.groups[self.chance.choice(GROUPS)]
        self.unplace(group)
        for _ in range(self.chance.randrange(1, 4)):
            place = (self.chance.choice(LEVELS), self.chance.randrange(30))
            if place not in group.receiving:
                group.receiving[place] = message = self.message()
                group.log.receive(message, *place)

    def install(self) -> None:
        """Install the snapshot that is being received, of any group."""
        group = self.groups[self.chance.choice(GROUPS)]
        log, received = group.log, group.receiving
        self.unplace(group)
        ends = {
            level: max((position + 1 for at, position in received if at == level), default=0)
            + self.chance.choice([0, 0, 3])
            for level in LEVELS
        }
        settled = {
            (level, position) for level in LEVELS for position in range(ends[level])
            if (level, position) not in received
        }  # fmt: skip
        index = max(log.last, log.hard.commit) + self.chance.choice([1, 2, 9])
        machine = b" ".join(b"%d.%d" % place for place in sorted(settled))
        snapshot = GroupSnapshot(index=index, term=log.hard.term, configuration=b"all", machine=machine)
        held = [(level, log.stored(level, at), message) for (level, at), message in group.held.items()]
        log.install(snapshot, ends, held)
        self.installed.add(log.number)
        group.installed.append((log.ticket, group.settled))
        group.settled = settled
        group.held = dict(received)
        group.bodies = {place: message.body for place, message in received.items()}
        group.receiving = {}
        group.commit = index
        group.note()

    def message(self) -> StoredMessage:
        self.number += 1
        body = b"%d " % self.number + bytes(self.chance.choice(self.body_sizes))
        return StoredMessage(encode_address("", "q"), PROPERTIES, body + BODY_END, 5)

    def append(self) -> None:
        group = self.any_group()
        if group.placed:
            self.propose(group)
            return
        log = group.log
        self.promise_first(group)
        runs, messages = [], []
        for level in self.chance.choice([(), (0,), (0,), LEVELS]):
            count = self.chance.choice([1, 1, 2, 4])
            first = log.end(level)
            runs.append(PositionRun(level, first, count))
            for position in range(first, first + count):
                messages.append(message := self.message())
                group.bodies[level, position] = message.body
                group.held[level, position] = message
                group.settled.discard((level, position))
        log.append(self.entry(group, runs), messages)
        group.note()

    def place(self) -> None:
        """Place a message, which a classic queue may get as well, before or after."""
        group, message = self.any_group(), self.message()
        log = group.log
        self.chance.choice([self.publish, lambda _: None])(message)
        level = self.chance.choice(LEVELS)
        position = log.place(message, level)
        assert position == log.end(level) + sum(each == level for each, _ in group.placed)
        self.chance.choice([self.publish, lambda _: None])(message)
        group.placed.append((level, message))
        assert log.placed_count == len(group.placed)

    def propose_sometimes(self, group: Group) -> None:
        """Propose what was placed, as the next batch is made; or else it waits."""
        if self.chance.random() < 0.8 and not group.receiving:
            self.propose(group)

    def propose(self, group: Group | None = None) -> None:
        """An entry with all messages that were placed, or with the first of them."""
        group = group or self.any_group()
        log = group.log
        self.promise_first(group)
        count = self.chance.choice([len(group.placed)] * 3 + [len(group.placed) // 2])
        taken, group.placed = group.placed[:count], group.placed[count:]
        ends = {level: log.end(level) for level in LEVELS}
        runs = []
        for level, its_messages in groupby(taken, key=lambda each: each[0]):
            messages = [message for _, message in its_messages]
            runs.append(PositionRun(level, ends[level], len(messages)))
            for message in messages:
                place = (level, ends[level])
                ends[level] += 1
                group.bodies[place] = message.body
                group.held[place] = message
                group.settled.discard(place)
        log.append(self.entry(group, runs))
        group.note()

    def unplace(self, group: Group | None = None) -> None:
        group = group or self.any_group()
        group.log.unplace()
        if group.placed:
            group.placed = []
            group.note()

    def entry(self, group: Group, runs: list[PositionRun]) -> GroupEntry:
        log = group.log
        # No two entries have the same commands.
        self.number += 1
        return GroupEntry(
            index=log.last + 1, term=log.hard.term, commit=group.commit, runs=tuple(runs),
            commands=b"%d " % self.number + bytes(self.chance.choice([0, 5, 60])),
        )  # fmt: skip

    def promise_first(self, group: Group) -> None:
        """No entry is appended in term 0."""
        if not group.log.hard.term or self.chance.random() < 0.1:
            self.promise(group)

    def promise(self, group: Group | None = None) -> None:
        """A new term, or the first vote in a term."""
        group = group or self.any_group()
        hard = group.log.hard
        if hard.term and not hard.vote:
            group.log.promise(hard.term, self.chance.randrange(1, 4))
        else:
            group.log.promise(hard.term + self.chance.choice([1, 5]), self.chance.randrange(4))
        group.note()

    def agree(self) -> None:
        """More is committed, which the next entry says."""
        group = self.any_group()
        group.commit = self.chance.randrange(group.commit, group.log.last + 1)

    def cut(self) -> None:
        group = self.any_group()
        committed = max(group.commit, group.log.hard.commit)
        if committed < group.log.last:
            self.unplace(group)
            group.log.cut(self.chance.randrange(committed + 1, group.log.last + 1))
            for level in LEVELS:
                for place in [each for each in group.held if each[0] == level]:
                    if place[1] >= group.log.end(level):
                        del group.held[place]
            group.note()

    def settle(self) -> None:
        """Settle messages that are committed."""
        group = self.any_group()
        ends: dict[int, int] = dict.fromkeys(LEVELS, 1 << 40)
        log = group.log
        if group.commit < log.last:
            for entry in reversed(log.entries(group.commit + 1, log.last, 1 << 40)):
                ends.update((run.level, run.first) for run in reversed(entry.runs))
        known = [(level, position) for level, position in group.held if position < ends[level]]
        for place in self.chance.sample(known, min(len(known), self.chance.choice([1, 3, 9]))):
            message = group.held.pop(place)
            cursor, stored = self.store.cursor(log.number, place[0]), log.stored(*place)
            if isinstance(message, int):
                self.store.release_at(message, cursor, stored)
            else:
                self.store.release(message, cursor, stored)
            group.settled.add(place)

    def drain(self) -> None:
        for group in self.groups.values():
            group.commit = group.log.last
        for _ in range(60):
            self.settle()

    def forget(self) -> None:
        """Forget entries that are committed."""
        group = self.any_group()
        log = group.log
        if log.first <= group.commit:
            index = self.chance.randrange(log.first, group.commit + 1)
            entries = log.entries(log.first, index, 1 << 40)
            log.forget(index)
            # A STATE that is due has them.
            if log.first > index:
                group.forgotten += tuple(entries)

    def compact(self, group: Group) -> None:
        log = group.log
        index = self.chance.randrange(log.first - 1, max(group.commit, log.first - 1) + 1)
        machine = b" ".join(b"%d.%d" % place for place in sorted(group.settled))
        log.compact(GroupSnapshot(index=index, term=log.term(index), configuration=b"all", machine=machine))
        group.note()

    def publish(self, message: StoredMessage | None = None) -> None:
        message = message or self.message()
        self.store.append(message, self.store.cursor(CLASSIC, 0), self.next)
        self.beside[self.next] = message
        self.next += 1

    def consume(self) -> None:
        if self.beside:
            position = self.chance.choice(list(self.beside))
            message = self.beside.pop(position)
            cursor = self.store.cursor(CLASSIC, 0)
            if isinstance(message, int):
                self.store.release_at(message, cursor, position)
            else:
                self.store.release(message, cursor, position)

    def read(self) -> None:
        """Check that entries have their messages."""
        for group in self.groups.values():
            log = group.log
            for index in range(log.first, log.last + 1):
                [entry] = log.entries(index, index, 1)
                places = [
                    (run.level, position)
                    for run in entry.runs
                    for position in range(run.first, run.first + run.count)
                ]
                for place, message in zip(places, log.messages(index), strict=True):
                    if place in group.settled:
                        assert message is None
                    else:
                        assert message is not None
                        assert message.body == group.bodies[place]

    def work(self) -> None:
        self.disk.advance(self.chance.choice([1, 2, 3, None]))

    def settle_all(self) -> None:
        while not self.store.is_idle:
            self.store.commit()
            self.disk.advance()
        for group in self.groups.values():
            assert group.told == group.log.ticket or not group.log.ticket

    def crash(self) -> None:
        is_settled = self.chance.random() < 0.3
        if is_settled:
            self.settle_all()
        self.disk.lose_power()
        recovered = self.open()
        if [error.reason for error in recovered.damage] == ["the head of the segment is damaged"]:
            # Torn within its 24 bytes, in a file that is reused: that cannot be told from rot.
            assert all(log.untrusted for log in recovered.groups.values())
            raise EndedError
        assert not recovered.damage
        for number, group in self.groups.items():
            log = recovered.groups[number]
            assert log.untrusted == ""
            self.check(group, log, recovered, is_settled=is_settled)
        self.store = recovered.store
        levels = recovered.queues.get(CLASSIC)
        self.next = levels[0].end if levels else 0
        self.beside = dict(zip(*pairs_of(recovered, CLASSIC, 0), strict=True))

    def check(self, group: Group, log: GroupLog, recovered: RecoveredStore, *, is_settled: bool) -> None:
        possible = group.possible()
        assert log.replica == REPLICA
        assert (log.hard.term, log.hard.vote) in {seen.hard for seen in possible}
        assert log.hard.commit >= possible[0].commit
        entries = tuple(log.entries(log.first, log.last, 1 << 40)) if log.last >= log.first else ()
        matching = [seen for seen in possible if (seen.snapshot, seen.entries) == (log.snapshot, entries)]
        assert matching, "the log is none that the group had since it was told to be durable"
        assert all(entry.term <= log.hard.term for entry in entries)
        settled = group.settled_as_of(matching[-1])
        gone = {tuple(map(int, place.split(b"."))) for place in log.snapshot.machine.split()}
        held: dict[Place, StoredMessage | int] = {}
        for level in LEVELS:
            found = {
                position: message.body for position, message in messages_in(recovered, log.number, level)
            }
            locations = dict(zip(*pairs_of(recovered, log.number, level), strict=True))
            for position in range(log.end(level)):
                stored, place = log.stored(level, position), (level, position)
                body = found.pop(stored, None)
                if body is None:
                    assert place in settled, f"{place} of an entry is lost"
                else:
                    assert body == matching[-1].bodies[place]
                    assert place not in gone, "what the snapshot has as settled came back"
                    assert not is_settled or place not in settled
                    held[place] = locations[stored]
            assert not found, "there is a message without an entry"
        went_on = Group(log, dict(matching[-1].bodies))
        went_on.held = held
        went_on.settled = {
            (level, position) for level in LEVELS for position in range(log.end(level))
            if (level, position) not in held
        }  # fmt: skip
        went_on.propose, went_on.compact = self.propose_sometimes, self.compact
        went_on.commit = min(group.commit, log.last)
        self.groups[log.number] = went_on


def pairs_of(recovered: RecoveredStore, queue: int, level: int) -> tuple[list[int], list[int]]:
    """The positions of the messages found, and their locations."""
    found = recovered.queues.get(queue, {}).get(level)
    if found is None:
        return [], []
    return list(found.positions.numbers()), list(found.locations.numbers())


@pytest.mark.seeds(SEEDS)
def test_a_group_has_after_a_crash_what_it_was_told_to_be_durable(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed)
    with suppress(EndedError):
        for _ in range(STEPS):
            simulation.step()
        simulation.read()
        simulation.crash()
        simulation.settle_all()
        simulation.crash()


@pytest.mark.seeds(SEEDS)
def test_a_bit_that_rots_makes_the_replicas_untrusted(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed)
    with suppress(EndedError):
        for _ in range(STEPS // 4):
            simulation.step()
    simulation.settle_all()
    disk = simulation.disk
    name = simulation.chance.choice(sorted(name for name in disk.files if name.endswith(".segment")))
    segment = simulation.store.segments[int(name.removesuffix(".segment"))]
    disk.flip_bit(name, simulation.chance.randrange(segment.size))
    disk.die()
    recovered = simulation.open()
    assert recovered.damage
    assert recovered.end is StoreEnd.DAMAGED
    assert {*recovered.groups} == {*GROUPS}
    untrusted = {number for number, log in recovered.groups.items() if log.untrusted}
    # What was written before a snapshot was received does not concern the replica any more.
    assert untrusted >= {*GROUPS} - simulation.installed
    # It stays untrusted, although its records are written anew.
    recovered.store.commit()
    disk.advance()
    disk.die()
    assert all(simulation.open().groups[number].untrusted for number in untrusted)
