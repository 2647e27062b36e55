"""The only replica of a queue, if its data may be incomplete: the queue is down until an operator accepts it.

What was read stays in the store as it was found. `accept` has a snapshot stand for it: the queue continues
with all messages that are readable and not settled, and each of them says that it may have been delivered.
"""

from warren.errors import NotFound
from warren.queues.quorum.batch_codec import QuorumBatch, Reach, SettledRun, decode
from warren.queues.quorum.machine import QuorumMachine
from warren.queues.quorum.raft_storage import ALONE, encode_configuration
from warren.queues.replication_status import ReplicationStatus
from warren.replication.raft.raft_messages import EntryKind
from warren.store.group_log import GroupLog
from warren.store.recovered_queue import RecoveredQueue


class UntrustedReplica:
    """The log of such a replica, and what was found of its messages, by priority level."""

    __slots__ = ("found", "log", "reason")

    def __init__(self, log: GroupLog) -> None:
        self.log = log
        # Why it is not trusted: as a rule a file, a byte offset, and what is wrong there.
        self.reason = log.untrusted
        self.found: dict[int, RecoveredQueue] = {}

    def refusal(self, name: str, vhost_name: str) -> NotFound:
        """The error for whoever wants to use the queue `name`."""
        return NotFound(
            f"queue '{name}' in vhost '{vhost_name}' is down until an operator recovers it,"
            f" as its data may be incomplete: {self.reason}"
        )

    def status(self) -> ReplicationStatus:
        """What this replica is, and how far its log is readable."""
        log, hard = self.log, self.log.hard
        return ReplicationStatus(
            role="down",
            is_voter=False,
            term=hard.term,
            last_index=log.last,
            written_index=log.last,
            commit_index=hard.commit,
            applied_index=log.snapshot.index,
            snapshot_index=log.snapshot.index,
            untrusted=self.reason,
            readable_count=sum(each.count for each in self.found.values()),
            readable_bytes=sum(each.byte_count for each in self.found.values()),
        )

    def accept(self) -> list[SettledRun]:
        """Trust the replica with what it has; returns what entries have settled, and the store maybe not.

        What cannot be read may have settled or delivered any message, so all of them count as delivered.
        """
        log = self.log
        machine = QuorumMachine.decode(log.snapshot.machine) if log.snapshot.machine else QuorumMachine()
        settled: list[SettledRun] = []
        for index in range(log.first, log.last + 1):
            [entry] = log.entries(index, index, 0)
            if entry.kind == EntryKind.NORMAL and entry.commands:
                batch = decode(entry.commands, entry.runs)
                machine.apply(batch)
                settled += batch.settled
        tops = {level: each.end for level, each in self.found.items()}
        # The positions of the group are known when the log has taken what is there.
        log.extend(tops)
        reaches = tuple(Reach(level, log.end(level)) for level in log.levels())
        machine.apply(QuorumBatch(reaches=reaches))
        configuration = log.snapshot.configuration or encode_configuration(ALONE)
        log.accept_loss(machine.encode(), configuration)
        return settled
