"""A quorum queue whose replica follows another one, on a simulated disk, and snapshots for it."""

import random

from tests.sim.disk import SimulatedDisk
from tests.unit.queues.samples import Host, sent
from tests.unit.store.test_recovery import Port

from warren.metadata.incarnation import Incarnation
from warren.model.arguments import QueueSettings
from warren.model.message import StoredMessage
from warren.queues.queue import Consumer, QueueHost
from warren.queues.quorum.batch_codec import QuorumBatch, encode
from warren.queues.quorum.group import GroupMembership, QuorumGroup
from warren.queues.quorum.machine import QuorumMachine
from warren.queues.quorum.pending_batch import PendingBatch
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.queues.quorum.raft_storage import ALONE, QuorumSnapshot, encode_configuration
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import MessageKind, RaftMessage, Snapshot
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupEntry
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.stores import Stores

NUMBER, REPLICA, LEADER, TERM = 7, 1, 2, 5
ELECTION_TICKS_MAX = 20
PAIR = Configuration(voters=(REPLICA, LEADER))
# (level, position) -> body.
Bodies = dict[tuple[int, int], bytes]


def message(body: bytes, level: int = 0) -> StoredMessage:
    """A persistent message of a priority level."""
    made = sent(body, delivery_mode=2, priority=level)
    assert isinstance(made, StoredMessage)
    return made


def applied(*batches: QuorumBatch) -> QuorumMachine:
    """A machine with these batches."""
    machine = QuorumMachine()
    for batch in batches:
        machine.apply(batch)
    return machine


class Follower:
    """A queue with a replica of a group of two, which follows the other one, or of a group of its own."""

    def __init__(
        self,
        chance: random.Random | None = None,
        *,
        host: QueueHost | None = None,
        settings: QueueSettings | None = None,
        configuration: Configuration = PAIR,
    ) -> None:
        self.chance = chance or random.Random(1)
        self.disk = SimulatedDisk(self.chance)
        self.host = host or Host()
        self.settings = settings or QueueSettings(priority_max=9)
        self.configuration = configuration
        self.starts = 0
        self.open(is_new=True)

    def recover(self, replica: int = REPLICA) -> None:
        """Read what is on the disk; this node has `replica` by its metadata."""
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=NUMBER.__eq__, progress=lambda *_: None,
            replicas={NUMBER: replica},
        )  # fmt: skip
        self.recovered = open_store(self.disk, Port(), dependencies)
        self.store = self.recovered.store
        found = GroupLog.find(self.store, NUMBER)
        if found is not None:
            self.log = found

    def open(self, *, is_new: bool = False, replica: int = REPLICA) -> None:
        """Start with what is on the disk."""
        self.starts += 1
        self.recover(replica)
        if is_new:
            self.log = GroupLog.create(self.store, NUMBER, REPLICA, encode_configuration(self.configuration))
            self.write()
        self.sent: list[RaftMessage] = []
        incarnation = Incarnation(1, self.starts)
        membership = GroupMembership(replica=replica, send=lambda _, messages: self.sent.extend(messages))
        self.queue = QuorumQueue(
            "q", "v", self.host, self.settings, incarnation=incarnation, membership=membership
        )
        self.queue.ended = self.end
        transient = open_erased(SimulatedDisk(self.chance), Port(), self.chance.randbytes)
        self.queue.attach_store(Stores(self.store, transient), NUMBER)
        for level, recovered in self.recovered.queues.get(NUMBER, {}).items():
            self.queue.restore(level, recovered)

    @property
    def group(self) -> QuorumGroup:
        """The replica."""
        group = self.queue.group
        assert group is not None
        return group

    @property
    def answers(self) -> list[int]:
        """The indexes up to which it has told the other one to have the log."""
        return [each.index for each in self.sent if each.kind is MessageKind.APPEND_RESPONSE]

    def end(self, queue: QuorumQueue, consumers: list[Consumer], unanswered: list[PendingBatch]) -> None:
        """Refuse what was published, and continue with another queue."""
        assert queue is self.queue
        assert not consumers
        for batch in unanswered:
            batch.refuse()
        self.queue = queue.successor()

    def write(self) -> None:
        """Write and sync everything, and what follows from that."""
        while not self.store.is_idle or self.disk.is_busy:
            self.store.commit()
            self.disk.advance()

    def append(self, batch: QuorumBatch, bodies: list[bytes], commit: int = 0) -> None:
        """Have one more entry in the log, as the other one has sent it before; `open` follows."""
        levels = [run.level for run in batch.runs for _ in range(run.count)]
        messages = [message(body, level) for body, level in zip(bodies, levels, strict=True)]
        if not self.log.hard.term:
            self.log.promise(1, LEADER)
        term, index = self.log.hard.term, self.log.last + 1
        commands = encode(batch)
        entry = GroupEntry(index=index, term=term, commit=commit, runs=batch.runs, commands=commands)
        self.log.append(entry, messages)

    def receive(self, bodies: Bodies) -> None:
        """Get messages of a snapshot."""
        for (level, position), body in bodies.items():
            self.group.receive(message(body, level), level, position)

    def step(
        self, index: int, machine: bytes, ends: dict[int, int], configuration: Configuration = ALONE
    ) -> None:
        """Get a snapshot from the other one, which has left the group if nothing else is said."""
        snapshot = Snapshot(index, TERM, configuration, QuorumSnapshot(machine, ends))
        self.group.step(RaftMessage(MessageKind.SNAPSHOT, REPLICA, LEADER, TERM, snapshot=snapshot))

    def lead(self) -> None:
        """Have it lead, which it can since it is alone, and open the queue."""
        for _ in range(ELECTION_TICKS_MAX):
            self.group.tick()
            self.write()
        assert self.queue.is_restored
