"""Replicas in one process, over a network and storages that a test lets work or not."""

from collections import deque
from collections.abc import Iterable

from tests.unit.replication.raft.memory_storage import MemoryStorage

from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, EntryKind, RaftMessage
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Ready, Role
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies

SETTINGS = RaftSettings(election_ticks=3, pre_vote=False, check_quorum=False)


class Member:
    """A replica, its storage, and what it has handed to it; a driver as `Ready` describes it."""

    def __init__(self, replica: int, storage: MemoryStorage, settings: RaftSettings = SETTINGS) -> None:
        self.storage = storage
        self.settings = settings
        self.dependencies = RaftDependencies(storage, chance=lambda _: 0)
        self.replica = Replica(replica, self.dependencies, settings)
        self.outbox: list[RaftMessage] = []
        self.writes: deque[Ready] = deque()
        self.applied: list[Entry] = []

    def handle_ready(self) -> Ready | None:
        """Take what is to be done; send what may be sent, and queue the rest behind the storage."""
        ready = self.replica.ready()
        if ready is None:
            return None
        self.outbox.extend(ready.messages)
        self.writes.append(ready)
        return ready

    def write(self) -> None:
        """Write and sync the oldest Ready, and do what waited for that."""
        ready = self.writes.popleft()
        self.storage.write(ready.hard_state, ready.entries, ready.snapshot)
        for message in ready.messages_after:
            if message.to == self.replica.id:
                self.replica.step(message)
            else:
                self.outbox.append(message)
        if ready.written is not None:
            self.replica.written(ready.written)
        for entry in ready.committed:
            self.applied.append(entry)
            if entry.kind is EntryKind.CHANGE:
                self.storage.configuration = self.replica.apply_change(entry)
        if ready.committed:
            self.replica.applied(ready.committed[-1].index)

    def restart(self) -> None:
        """Crash: what was not written is lost."""
        self.outbox, self.applied = [], []
        self.writes.clear()
        self.replica = Replica(self.replica.id, self.dependencies, self.settings)


class Group:
    """Members that all begin with the same log up to index 10, of term 1."""

    def __init__(self, configuration: Configuration, settings: RaftSettings = SETTINGS) -> None:
        self.members = {
            replica: Member(replica, MemoryStorage(configuration, 10, 1), settings)
            for replica in configuration.members
        }
        # What arrives nowhere: pairs of sender and receiver.
        self.cut: set[tuple[int, int]] = set()

    def __getitem__(self, replica: int) -> Replica:
        return self.members[replica].replica

    def add(self, replica: int) -> None:
        """Add a replica that knows nothing."""
        self.members[replica] = Member(replica, MemoryStorage(Configuration()), self.members[1].settings)

    def settle(self, only: Iterable[int] | None = None) -> None:
        """Let everybody, or some, work until nothing is left to be done."""
        members = [self.members[replica] for replica in (only or list(self.members))]
        while sum(self._work(member) for member in members):
            pass

    def _work(self, member: Member) -> bool:
        is_busy = member.handle_ready() is not None
        while member.writes:
            member.write()
            is_busy = True
        return self.deliver(member) or is_busy

    def deliver(self, member: Member) -> bool:
        """Deliver what a member has sent; return whether it has sent anything."""
        outbox, member.outbox = member.outbox, []
        for message in outbox:
            if (message.sender, message.to) not in self.cut and message.to in self.members:
                self[message.to].step(message)
        return bool(outbox)

    def isolate(self, replica: int) -> None:
        """Cut one off from all others."""
        self.cut |= {pair for other in self.members for pair in ((replica, other), (other, replica))}

    def elect(self, replica: int) -> None:
        """Have one lead."""
        self[replica].campaign()
        self.settle()
        assert self[replica].soft_state.role is Role.LEADER
