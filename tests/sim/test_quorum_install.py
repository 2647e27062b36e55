"""The replica of a quorum queue receives snapshots on a disk that loses power at any step, driven by seeds.

After each crash it has all that it had before, or the snapshot with its machine and its messages; and the
snapshot for certain if it was answered. The last one is installed, and the queue has what it says: messages
in order, attempts, quarantine, and dead letters.
"""

import random
from collections.abc import Callable
from copy import deepcopy

import pytest
from msgspec import Struct
from tests.seeds import SEEDS
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small
from tests.unit.queues.quorum.batches import LEVELS, BatchSource
from tests.unit.queues.quorum.followers import NUMBER, PAIR, TERM, Bodies, Follower, message
from tests.unit.queues.samples import Host

from warren.model.arguments import QueueSettings
from warren.queues.quorum.batch_codec import HoldReason, QuorumBatch, decode
from warren.queues.quorum.machine import QuorumMachine
from warren.queues.quorum.raft_storage import ALONE

SEGMENT_SIZES = (8_192, 900)
ROUNDS = 3
SETTINGS = QueueSettings(priority_max=255, dead_letter_exchange="dlx")


class Expected(Struct):
    """What a replica has that has applied everything in its log."""

    machine: bytes
    bodies: Bodies
    source: BatchSource


class Simulation:
    """One replica, and what it may have."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.follower = Follower(self.chance, host=Host(), settings=SETTINGS)
        self.follower.log.promise(TERM, 0)
        self.follower.write()
        source = BatchSource(seed)
        source.ends = dict.fromkeys(LEVELS, 0)
        self.has = Expected(QuorumMachine().encode(), {}, source)
        self.number = 0

    def after(self, expected: Expected, batch: QuorumBatch) -> Expected:
        """What is there after `batch`, which the source of `expected` has made."""
        machine, bodies = QuorumMachine.decode(expected.machine), dict(expected.bodies)
        repeats = machine.apply(batch).repeats
        for run in batch.runs:
            for position in range(run.first, run.first + run.count):
                self.number += 1
                bodies[run.level, position] = b"%d" % self.number + bytes(self.chance.choice([0, 5, 200]))
        for gone in (*repeats, *batch.settled):
            for position in range(gone.first, gone.first + gone.count):
                bodies.pop((gone.level, position), None)
        return Expected(machine.encode(), bodies, expected.source)

    def append(self) -> None:
        """Have a few more entries from the leader, and start again."""
        follower = self.follower
        for _ in range(self.chance.randrange(4)):
            batch = self.has.source.batch()
            before, self.has = self.has, self.after(self.has, batch)
            places = [
                (run.level, position)
                for run in batch.runs
                for position in range(run.first, run.first + run.count)
            ]
            # What the same entry settles has a body too.
            bodies = [self.has.bodies.get(place, before.bodies.get(place, b"gone")) for place in places]
            log = follower.log
            follower.append(batch, bodies, commit=self.chance.choice([log.hard.commit, log.last]))
        follower.write()
        self.crash(self.has, is_power_lost=False)

    def work(self) -> None:
        if self.chance.random() < 0.5:
            self.follower.store.commit()
        self.follower.disk.advance(self.chance.choice([0, 1, 2, None]))

    def receive(self) -> None:
        """Receive a snapshot, which is installed if power does not fail before."""
        follower = self.follower
        then = Expected(self.has.machine, self.has.bodies, deepcopy(self.has.source))
        for _ in range(self.chance.randrange(1, 4)):
            then = self.after(then, then.source.batch())
        index = follower.log.last + self.chance.choice([1, 2, 50])
        ends = {level: end for level, end in then.source.ends.items() if end}
        places = list(then.bodies)
        self.chance.shuffle(places)
        steps: list[Callable[[], None]] = [
            lambda place=place: follower.group.receive(message(then.bodies[place], place[0]), *place)  # type: ignore[misc]
            for place in places
        ]
        steps += [lambda: follower.step(index, then.machine, ends, PAIR)]
        steps += [self.work] * self.chance.randrange(8)
        # Half of them are interrupted before all is there.
        count = self.chance.choice([len(steps), self.chance.randrange(len(steps))])
        for step in steps[:count]:
            step()
            if self.chance.random() < 0.2:
                self.work()
        assert set(follower.answers) <= {index}
        is_certain = index in follower.answers
        self.crash(*([] if is_certain else [self.has]), then, is_power_lost=self.chance.random() < 0.7)

    def crash(self, *possible: Expected, is_power_lost: bool) -> None:
        """Crash, and look which of these is there."""
        follower = self.follower
        (follower.disk.lose_power if is_power_lost else follower.disk.die)()
        follower.open()
        assert follower.log.untrusted == ""
        assert not follower.recovered.damage
        found = self.found()
        matching = [each for each in possible if (each.machine, each.bodies) == found]
        assert matching, "the replica has neither what it had nor the snapshot"
        self.has = matching[0]

    def found(self) -> tuple[bytes, Bodies]:
        """The machine with all entries, and the messages that they have not settled."""
        log, recovered = self.follower.log, self.follower.recovered
        data = log.snapshot.machine
        machine = QuorumMachine.decode(data) if data else QuorumMachine()
        bodies = {
            (level, log.logical(level, stored)): each.body
            for level in LEVELS
            for stored, each in messages_in(recovered, NUMBER, level)
        }
        for index in range(log.first, log.last + 1):
            [entry] = log.entries(index, index, 0)
            batch = decode(entry.commands, entry.runs)
            for run in (*machine.apply(batch).repeats, *batch.settled):
                for position in range(run.first, run.first + run.count):
                    bodies.pop((run.level, position), None)
        return machine.encode(), bodies

    def lead(self) -> None:
        """Install a last snapshot; the queue is that of it."""
        follower, has = self.follower, self.has
        follower.receive(has.bodies)
        ends = {level: end for level, end in has.source.ends.items() if end}
        follower.step(follower.log.last + 1, has.machine, ends, ALONE)
        follower.write()
        assert follower.group.machine.encode() == has.machine
        assert sum(segment.live for segment in follower.store.segments.values()) == len(has.bodies)
        if self.chance.random() < 0.5:
            follower.disk.lose_power()
            follower.open()
        follower.lead()
        machine = QuorumMachine.decode(has.machine)
        queue, host = follower.queue, follower.host
        assert isinstance(host, Host)
        expected, quarantined, dead, delayed_count = [], [], set(), 0
        for level, position in sorted(has.bodies, key=lambda place: (-place[0], place[1])):
            body, state = has.bodies[level, position], machine.returned(level, position)
            attempts = state.total or int(position < machine.reach(level))
            if state.hold is HoldReason.NONE and state.ready_at > host.turn.now():
                delayed_count += 1
            elif state.hold is HoldReason.NONE:
                expected.append((body, attempts))
            elif state.hold is HoldReason.QUARANTINED:
                quarantined.append((body, attempts))
            else:
                dead.add(body)
        count = len(has.bodies)
        assert [(each.message.body, each.attempts) for each in queue.peek(0, count)] == expected
        assert [(each.message.body, each.attempts) for each in queue.quarantined(0, count)] == quarantined
        status = queue.replication_status()
        assert status is not None
        assert status.delayed_count == delayed_count
        # Without the strategy at-least-once they are published at most once.
        assert {body for body, _ in host.dead} == dead


@pytest.mark.seeds(SEEDS)
def test_a_replica_has_the_old_state_or_the_snapshot_after_a_crash(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed)
    for _ in range(ROUNDS):
        simulation.append()
        simulation.receive()
    simulation.lead()
