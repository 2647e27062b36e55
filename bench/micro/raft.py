"""Measures the Raft core in microseconds of CPU time per entry, from proposal to applied; prints the build.

Storage and network are lists in memory, so that nothing but the core and a minimal driver is measured.
"""

import argparse
import json
import time
from collections.abc import Sequence

import warren.replication.raft.replica
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, HardState, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Role
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies

# Members of the group, and entries that are proposed before the driver looks at what is to be done.
SHAPES = ((1, 1), (1, 64), (3, 1), (3, 64), (5, 1))
# Entries after which a storage forgets all that is applied.
KEPT_MAX = 10_000
SIZE = 100


class Storage:
    """What was written; everything is durable at once."""

    def __init__(self, members: Sequence[int]) -> None:
        """Begin behind entry 1, whose configuration has these voters."""
        self.base = Snapshot(1, 1, Configuration(voters=tuple(members)))
        self.log: list[Entry] = []

    def initial(self) -> tuple[HardState, Configuration]:
        """Return what a replica starts with."""
        return HardState(1, 0, 1), self.base.configuration

    def first_index(self) -> int:
        """Return the index behind the base."""
        return self.base.index + 1

    def last_index(self) -> int:
        """Return the index of the last entry."""
        return self.base.index + len(self.log)

    def term(self, index: int) -> int | None:
        """Return the term of an entry."""
        place = index - self.base.index - 1
        if place < 0:
            return self.base.term if place == -1 else None
        return self.log[place].term if place < len(self.log) else None

    def entries(self, first: int, last: int, _: int) -> Sequence[Entry]:
        """Return entries, without a bound on their bytes."""
        begin = self.base.index + 1
        return self.log[first - begin : last - begin + 1]

    def snapshot(self) -> Snapshot | None:
        """Return the base."""
        return self.base

    def compact(self, index: int) -> None:
        """Forget entries that are applied."""
        last = self.log[index - self.base.index - 1]
        del self.log[: index - self.base.index]
        self.base = Snapshot(index, last.term, self.base.configuration)


class Group:
    """Replicas that are driven in turn, each with all that waits for it."""

    def __init__(self, count: int) -> None:
        """Elect replica 1."""
        members = range(1, count + 1)
        self.storages = {number: Storage(members) for number in members}
        self.replicas = {
            number: Replica(number, RaftDependencies(storage, lambda _: 0), RaftSettings(), applied=1)
            for number, storage in self.storages.items()
        }
        self.leader = self.replicas[1]
        self.leader.campaign()
        self.work()
        assert self.leader.soft_state.role is Role.LEADER

    def work(self) -> None:
        """Write, send and apply until nothing is to be done."""
        replicas = self.replicas
        is_busy = True
        while is_busy:
            is_busy = False
            for number, replica in replicas.items():
                while (ready := replica.ready()) is not None:
                    # What was sent is to be answered by replicas that had nothing to do.
                    is_busy = is_busy or len(replicas) > 1
                    for message in ready.messages:
                        replicas[message.to].step(message)
                    self._write(number, ready.entries)
                    self._send(ready.messages_after)
                    if ready.written is not None:
                        replica.written(ready.written)
                    if ready.committed:
                        self._apply(number, ready.committed[-1].index)

    def _write(self, number: int, entries: tuple[Entry, ...]) -> None:
        if entries:
            self.storages[number].log += entries

    def _send(self, messages: tuple[RaftMessage, ...]) -> None:
        for message in messages:
            self.replicas[message.to].step(message)

    def _apply(self, number: int, index: int) -> None:
        self.replicas[number].applied(index)
        storage = self.storages[number]
        if len(storage.log) >= KEPT_MAX:
            storage.compact(index)


def cpu_us(members: int, batch: int, entries: int) -> float:
    """Return the CPU time per entry in µs."""
    group = Group(members)
    payload = bytes(SIZE)
    started = time.process_time()
    for _ in range(entries // batch):
        for _ in range(batch):
            assert group.leader.propose(payload, SIZE)
        group.work()
    cost = (time.process_time() - started) * 1e6 / (entries // batch * batch)
    assert all(replica.log.applied == group.leader.log.commit for replica in group.replicas.values())
    return cost


def main() -> None:
    """Print a line of JSON for each shape: the best of some runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    is_compiled = not str(warren.replication.raft.replica.__file__).endswith(".py")
    print(json.dumps({"build": "compiled" if is_compiled else "interpreted"}))
    for members, batch in SHAPES:
        costs = [cpu_us(members, batch, options.entries) for _ in range(options.runs)]
        print(json.dumps({"members": members, "batch": batch, "us": round(min(costs), 2)}), flush=True)


if __name__ == "__main__":
    main()
