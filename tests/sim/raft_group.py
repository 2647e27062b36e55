"""A group of replicas on disks that lose what is not synced, over a network that loses, repeats and reorders.

A run is a list of actions. Each is complete by itself: its numbers choose among what there is when it is
executed, so that any part of the list is a run as well, and a failure shrinks. The replicas are run by the
driver; in half of the runs what it has applied is applied later.

After each action these hold:

- Election safety: a term has at most one leader.
- Log matching: two logs with an entry of the same index and term are the same up to there.
- Leader completeness: a new leader's log has every entry that was committed before.
- State-machine safety: all replicas apply the same entry at an index, and snapshots are of that state.
- Durable quorum: what a leader calls committed is on the disks of a quorum, whatever replicas say, and
  nobody knows more as committed than a leader did.
- Linearizable reads: an index for a read is at least what any replica knew as committed when it was asked
  for, and is applied when the read is answered.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.sim.raft_checks import LogMatching, Reads
from tests.unit.replication.raft.memory_storage import MemoryStorage, ready_of

from warren.replication.driver import RaftDriver
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)
from warren.replication.raft.quorum import VoteResult, joint_vote
from warren.replication.raft.raft_messages import Entry, HardState, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Ready, Role
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies

MEMBERS = Configuration(voters=(1, 2, 3))
REPLICAS = 5
KINDS = (MemberChangeKind.VOTER, MemberChangeKind.LEARNER, MemberChangeKind.REMOVED)


class Action(NamedTuple):
    """What happens, and numbers that choose where."""

    name: str
    one: int
    other: int


class Disk(MemoryStorage):
    """What a replica has on its disk. The commit index is on it only with entries and snapshots."""

    def __init__(self, configuration: Configuration) -> None:
        # Who does not belong to the first configuration needs a snapshot, since it begins behind an entry.
        first = 1 if configuration.voters else 0
        super().__init__(configuration, first, first)
        self.base = Snapshot(first, first, configuration, 0)
        # The state of the machine as of the last applied entry, for members that need a snapshot.
        self.newest = self.base
        # Of each entry, the commit index that was written with it.
        self.commits: dict[int, int] = {}

    def snapshot(self) -> Snapshot | None:
        return self.newest if self.newest.index else None

    def take(self, ready: Ready, entries: tuple[Entry, ...]) -> None:
        """Write a Ready, or as many of its entries as a power cut lets through."""
        hard = ready.hard_state
        if hard is not None:
            self.hard_state = HardState(hard.term, hard.vote, 0)
        self.write(None, entries, ready.snapshot)
        for entry in entries:
            self.commits[entry.index] = ready.commit

    def restart(self) -> None:
        """Know of the commit index what entries and the snapshot say.

        The first entries of a torn write can tell of a commit behind the end of the log.
        """
        carried = max([self.base.index, *(self.commits[entry.index] for entry in self.log)])
        hard = self.hard_state
        self.hard_state = HardState(hard.term, hard.vote, min(carried, self.last_index()))

    def has(self, index: int, term: int) -> bool:
        """Return whether an entry, or a snapshot behind it, is on the disk."""
        return index <= self.base.index or self.term(index) == term


class Node:
    """A replica, its disk, and what has been handed to the disk and to the state machine."""

    def __init__(self, number: int, simulation: "RaftSimulation", chance: random.Random) -> None:
        self.number = number
        self.simulation = simulation
        self.disk = Disk(MEMBERS if MEMBERS.is_voter(number) else Configuration())
        self.dependencies = RaftDependencies(self.disk, chance=chance.randrange)
        self.is_up = False
        self.incarnation = 0
        self.start()

    def start(self) -> None:
        """Start with what the disk has."""
        self.is_up = True
        self.incarnation += 1
        self.disk.restart()
        # What is on its way to the disk, each with its ticket.
        self.writes: deque[tuple[int, Ready]] = deque()
        self.ticket = 0
        self.applying: deque[Entry] = deque()
        self.applied = self.disk.base.index
        self.disk.newest = self.disk.base
        payload = self.disk.base.payload
        assert isinstance(payload, int)
        self.machine = payload
        self.configurations = {self.applied: self.disk.base.configuration}
        simulation = self.simulation
        self.replica = ObservedReplica(
            self.number, self.dependencies, simulation.settings, applied=self.applied
        )  # fmt: skip
        self.replica.reads = simulation.reads
        self.driver = ObservedDriver(self, simulation)
        self.commit = self.replica.hard_state.commit
        self.role = Role.FOLLOWER

    def write(self, ready: Ready) -> int:
        """Take what is written later, or lost; see `RaftSimulation._write`."""
        if ready.entries:
            previous = self.replica.log.term(ready.entries[0].index - 1)
            self.simulation.matching.check(previous, ready.entries)
        self.ticket += 1
        self.writes.append((self.ticket, ready))
        return self.ticket

    def append(self, entries: Sequence[Entry], commit: int) -> int:
        """Take what a Ready with nothing else would have."""
        return self.write(ready_of(entries, commit))

    def apply(self, entries: Sequence[Entry]) -> None:
        """Apply what follows the last applied entry."""
        for entry in entries:
            self.simulation.check_applied(self, entry)
        last, configuration = entries[-1], self.replica.configuration
        self.configurations[last.index] = configuration
        self.disk.newest = Snapshot(last.index, last.term, configuration, self.machine)

    def role_changed(self) -> None:
        """Nobody waits for that."""

    def install(self, snapshot: Snapshot) -> None:
        """Go on with the state of a snapshot that is on the disk."""
        self.simulation.check_installed(self, snapshot)
        assert isinstance(snapshot.payload, int)
        self.applied, self.machine = snapshot.index, snapshot.payload
        # What was handed out before the snapshot arrived is part of it.
        while self.applying and self.applying[0].index <= snapshot.index:
            self.applying.popleft()
        self.configurations = {snapshot.index: snapshot.configuration}
        self.disk.newest = snapshot


class ObservedReplica(Replica):
    """A replica whose answers to reads are checked."""

    reads: Reads

    def ready(self) -> Ready | None:
        ready = super().ready()
        if ready is not None:
            self.reads.check(ready.read_states)
        return ready


class ObservedDriver(RaftDriver):
    """The driver of a node: what is committed is checked before it is applied, at once or later."""

    def __init__(self, node: Node, simulation: "RaftSimulation") -> None:
        super().__init__(
            node.replica, node, node, simulation.network.extend, incarnation=node.incarnation
        )  # fmt: skip
        self.node = node
        self.simulation = simulation

    def _apply(self, entries: Sequence[Entry]) -> None:
        if self.simulation.is_applied_later:
            self.node.applying += entries
        else:
            self.apply_now(entries)

    def apply_now(self, entries: Sequence[Entry]) -> None:
        """Apply entries; another configuration has other quorums, so that a commit is checked before."""
        self.simulation.observe(self.node)
        super()._apply(entries)
        self.simulation.observe(self.node)


class RaftSimulation:
    """The nodes, the network, and what was committed so far."""

    def __init__(self, seed: int, settings: RaftSettings) -> None:
        chance = random.Random(seed)
        self.settings = settings
        self.is_applied_later = seed // 2 % 2 == 1
        self.network: list[RaftMessage] = []
        self.matching = LogMatching()
        self.reads = Reads()
        self.nodes = {number: Node(number, self, chance) for number in range(1, REPLICAS + 1)}
        self.cut: set[tuple[int, int]] = set()
        self.leaders: dict[int, int] = {}
        # What was committed: the term, and the state of the machine behind it, by index.
        self.committed: dict[int, int] = {1: 1}
        self.states: dict[int, int] = {1: 0}
        self.proposals = 0
        self.highest = 0
        self.actions: dict[str, Callable[[Node, int], None]] = {
            "deliver": lambda _, other: self._deliver(other),
            "lose": lambda _, other: self._pick(other) and None,
            "repeat": lambda _, other: self._repeat(other),
            "tick": self._tick,
            "write": self._write,
            "apply": self._apply,
            "propose": self._propose,
            "read": lambda node, _: self._read(node),
            "change": self._change,
            "replace": self._replace,
            "transfer": lambda node, other: node.replica.transfer(1 + other % REPLICAS),
            "hand over": lambda node, _: node.driver.hand_over(),
            "campaign": lambda node, _: node.driver.campaign(),
            "forget": lambda node, _: node.replica.forget_leader(),
            "ended": lambda node, _: node.replica.leader_ended(),
            "cut": lambda node, other: self._cut(node.number, 1 + other % REPLICAS),
            "isolate": lambda node, _: self._isolate(node.number),
            "heal": lambda *_: self.cut.clear(),
            "crash": self._crash,
            "compact": self._compact,
            "lost": lambda node, other: node.replica.unreachable(1 + other % REPLICAS),
            "failed": lambda node, other: node.replica.snapshot_sent(1 + other % REPLICAS, is_done=False),
        }

    def perform(self, action: Action) -> None:
        """Perform an action, and check what must hold."""
        node = self.nodes[1 + action.one % REPLICAS]
        if action.name == "start":
            if not node.is_up:
                node.start()
        elif node.is_up:
            self.actions[action.name](node, action.other)
        for each in self.nodes.values():
            self._work(each)

    # The network.

    def _pick(self, number: int) -> RaftMessage | None:
        return self.network.pop(number % len(self.network)) if self.network else None

    def _deliver(self, number: int) -> None:
        # Mostly in order, and sometimes any.
        message = self._pick(0 if number % 4 else number // 4)
        if message is not None and (message.sender, message.to) not in self.cut:
            node = self.nodes[message.to]
            if node.is_up:
                node.driver.step(message)

    def _repeat(self, number: int) -> None:
        if self.network:
            self.network.append(self.network[number % len(self.network)])

    def _cut(self, one: int, other: int) -> None:
        self.cut.add((one, other))

    def _isolate(self, number: int) -> None:
        for other in self.nodes:
            self.cut |= {(number, other), (other, number)}

    # What a node does.

    def _tick(self, node: Node, other: int) -> None:
        for _ in range(1 + other % 3):
            node.driver.tick()

    def _propose(self, node: Node, other: int) -> None:
        for _ in range(1 + other % 3):
            self.proposals += 1
            node.driver.propose(self.proposals, 8)

    def _read(self, node: Node) -> None:
        committed = self.highest

        def check() -> None:
            assert node.applied >= committed, f"a read sees {node.applied} after {committed} was committed"

        self.reads.ask(node.driver.read(check), committed)

    def _change(self, node: Node, other: int) -> None:
        member = MemberChange(KINDS[other % 3], 1 + other // 3 % REPLICAS)
        node.driver.propose_change(ConfigurationChange((member,)))

    def _replace(self, node: Node, other: int) -> None:
        voters = node.replica.configuration.voters
        others = [number for number in self.nodes if number not in voters]
        if voters and others:
            node.driver.propose_change(
                ConfigurationChange((
                    MemberChange(MemberChangeKind.VOTER, others[other % len(others)]),
                    MemberChange(MemberChangeKind.REMOVED, voters[other // 5 % len(voters)]),
                ))
            )  # fmt: skip

    def _write(self, node: Node, other: int) -> None:
        """Sync the oldest writes, and tell the driver of it."""
        for _ in range(min(1 + other % 3, len(node.writes))):
            ticket, ready = node.writes.popleft()
            self._sync(node, ready)
            node.driver.written(ticket)

    def _sync(self, node: Node, ready: Ready) -> None:
        node.disk.take(ready, ready.entries)
        if ready.snapshot is not None:
            node.disk.commits = {entry.index: ready.commit for entry in ready.entries}

    def _apply(self, node: Node, other: int) -> None:
        """Apply some of what was to be applied later, one by one."""
        for _ in range(min(1 + other % 4, len(node.applying))):
            node.driver.apply_now((node.applying.popleft(),))

    def check_applied(self, node: Node, entry: Entry) -> None:
        """Advance the machine of a node by an entry, as all others do."""
        assert entry.index == node.applied + 1, f"{entry.index} is applied behind {node.applied}"
        node.machine = hash((node.machine, entry.term, entry.kind, entry.payload))
        node.applied = entry.index
        state = self.states.setdefault(entry.index, node.machine)
        assert state == node.machine, f"{node.number} applies another entry {entry.index}"

    def check_installed(self, node: Node, snapshot: Snapshot) -> None:
        """Check that a snapshot is on the disk, and that its state is that of its index."""
        assert node.disk.base == snapshot, f"{node.number} installs a snapshot before it is synced"
        assert self.states[snapshot.index] == snapshot.payload, f"another state at {snapshot.index}"

    def _compact(self, node: Node, other: int) -> None:
        """Keep a snapshot of what is applied, sometimes of less."""
        if not node.writes and node.applied > node.disk.base.index:
            index = node.applied if other % 3 else node.disk.base.index + 1
            if index == node.applied or index in node.configurations:
                configuration = node.configurations[index]
                node.disk.compact(index, configuration)
                node.disk.configuration = configuration
                node.disk.base = Snapshot(
                    index, node.disk.base.term, configuration, self.states[index]
                )  # fmt: skip

    def _crash(self, node: Node, other: int) -> None:
        """Lose what is not synced: some writes are complete, and one may be torn behind any entry."""
        for _ in range(min(other % 3, len(node.writes))):
            self._sync(node, node.writes.popleft()[1])
        if node.writes and other % 2:
            _, ready = node.writes.popleft()
            if ready.snapshot is None:
                node.disk.take(ready, ready.entries[: other // 6 % (len(ready.entries) + 1)])
        node.is_up = False

    def _work(self, node: Node) -> None:
        """Take what is to be done, and check it."""
        if not node.is_up:
            return
        node.driver.flush()
        del self.network[: max(len(self.network) - 200, 0)]
        self.observe(node)

    def observe(self, node: Node) -> None:
        """Check a node; needed before it applies more, since another configuration has other quorums."""
        role, hard = node.replica.soft_state.role, node.replica.hard_state
        if role is Role.LEADER and node.role is not Role.LEADER:
            self._check_leader(node, hard.term)
        node.role = role
        if hard.commit > node.commit:
            self._check_commit(node, hard.commit)

    # What must hold.

    def _check_leader(self, node: Node, term: int) -> None:
        leader = self.leaders.setdefault(term, node.number)
        assert leader == node.number, f"term {term} has the leaders {leader} and {node.number}"
        first = node.replica.log.first_index()
        for index, of_term in self.committed.items():
            assert index < first or node.replica.log.term(index) == of_term, (
                f"leader {node.number} of term {term} lacks entry {index} of term {of_term}"
            )

    def _check_commit(self, node: Node, commit: int) -> None:
        log = node.replica.log
        is_leader = node.role is Role.LEADER
        for index in range(max(node.commit + 1, log.first_index()), commit + 1):
            term = log.term(index)
            assert term is not None
            assert self.committed.setdefault(index, term) == term, f"two entries {index} are committed"
        if is_leader:
            term = log.term(commit)
            assert term == node.replica.hard_state.term, f"entry {commit} of term {term} is counted"
            configuration = node.replica.configuration
            result = joint_vote(
                [self.nodes[voter].disk.has(commit, term) for voter in configuration.voters],
                [self.nodes[voter].disk.has(commit, term) for voter in configuration.outgoing],
            )
            assert result is VoteResult.WON, f"entry {commit} is on no quorum of disks"
        else:
            assert commit <= self.highest, f"{node.number} knows {commit} as committed before a leader does"
        node.commit = commit
        self.highest = max(self.highest, commit)

    # The end.

    def settle(self, rounds: int) -> bool:
        """Let everything work again; return whether a proposal is then applied by every voter."""
        self.cut.clear()
        for node in self.nodes.values():
            if not node.is_up:
                node.start()
            for other in self.nodes:
                # Who sends snapshots says so when one may have been lost.
                node.replica.snapshot_sent(other, is_done=False)
        term = target = 0
        for _ in range(rounds):
            for node in self.nodes.values():
                node.driver.tick()
            self._drain()
            leaders = [node for node in self.nodes.values() if node.replica.soft_state.role is Role.LEADER]
            if not leaders:
                continue
            # One that was deposed may not know it yet.
            leader = max(leaders, key=lambda node: node.replica.hard_state.term)
            if not target or term != leader.replica.hard_state.term:
                self.proposals += 1
                target = leader.driver.propose(self.proposals, 8)
                term = leader.replica.hard_state.term
                self._drain()
            voters = leader.replica.configuration.voters
            if target and all(self.nodes[voter].applied >= target for voter in voters):
                return True
        return False

    def _drain(self) -> None:
        """Deliver, write and apply everything, in order."""
        for _ in range(20):
            messages = list(self.network)
            self.network.clear()
            for message in messages:
                self.nodes[message.to].driver.step(message)
                self.observe(self.nodes[message.to])
            for node in self.nodes.values():
                self._work(node)
                self._write(node, 2)
                self._work(node)
                self._apply(node, 3)
                self._work(node)
