"""The replica of the metadata group on this node: the group of number 0, in which every node is.

    begin ─▶ the vote for itself in the next term ─ synced ─▶ leads: the empty entry of its term ─▶ applied
    propose ─▶ hand_over: records for the next batch ─ synced ─▶ written ─▶ applied

While this node is the only member, nobody else knows what it has not synced, and what a crash takes from the
log it takes with everything behind it. So the core is told at once that an entry is written which changes
nothing that survives a restart: `append_alone`, and the empty entry of a new leader. From the moment that
there is another member, a learner too, all entries wait for the sync.
"""

from collections.abc import Callable, Sequence

from warren.journal.metadata_log import LoggedProposal, MetadataLog
from warren.replication.driver import RaftDriver
from warren.replication.raft.raft_messages import Entry, EntryKind, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies

_SETTINGS = RaftSettings()


class MetadataGroup:
    """One replica, elected in a term of its own; entries go to `apply` in order."""

    __slots__ = ("_apply", "_chance", "_driver", "_node", "log")

    def __init__(
        self, node: int, log: MetadataLog, apply: Callable[[Entry], None], chance: Callable[[int], int]
    ) -> None:
        """Begin with what is in `log`; `written` must be told when its records are synced."""
        assert log.configuration.voters == (node,), f"{log.configuration} has other voters than {node}"
        assert not log.configuration.is_joint
        self.log = log
        self._node = node
        self._apply = apply
        self._chance = chance
        self._driver = self._started()

    @property
    def is_leader(self) -> bool:
        """True if it can take proposals."""
        return self._driver.is_leader

    @property
    def next_index(self) -> int:
        """The index of the next entry."""
        return self._driver.replica.log.last_index() + 1

    def append_alone(self, record: bytes, *, is_written: bool) -> bool:
        """Append an entry that needs no sync, and that the caller applies; False if it has to be proposed.

        `is_written` is false if a snapshot that has it is written before any record.
        """
        appended = self._driver.replica.append_alone()
        if appended is None:
            return False
        self.log.append_applied(appended, record if is_written else None)
        return True

    def propose(self, proposal: LoggedProposal) -> bool:
        """Append an entry; False if too much is uncommitted, or if this replica does not lead."""
        return self._driver.propose(proposal, len(proposal.record)) > 0

    def hand_over(self) -> int:
        """Put everything that was appended into the records of the log; returns what to tell `written`."""
        self._driver.flush()
        return self.log.ticket

    def written(self, ticket: int) -> None:
        """Apply what is committed now that everything up to `ticket` is synced."""
        self._driver.written(ticket)
        if self.log.is_alone and self.log.has_only_empty_entries:
            self._driver.written(self.log.ticket)

    def fail(self) -> None:
        """Go back to what is applied, because what was handed over could not be written.

        To the group this is a crash of the replica, which begins another term. The only member leads that
        before its vote is synced: nothing that survives a restart is applied before a snapshot is written,
        which has the vote.
        """
        if self.log.has_unapplied:
            self.log.forget_unapplied()
            self._driver = self._started()
        if self.log.is_alone:
            self.written(self.log.ticket)

    # The machine of the driver.

    def apply(self, entries: Sequence[Entry]) -> None:
        """Have committed entries applied."""
        for entry in entries:
            if entry.kind is EntryKind.CHANGE:
                self.log.configuration = self._driver.replica.configuration
            self._apply(entry)
        self.log.applied(entries[-1].index)

    def install(self, snapshot: Snapshot) -> None:
        """Refuse: this node is sent no snapshot."""
        raise AssertionError(f"a snapshot at {snapshot.index}")

    def _started(self) -> RaftDriver:
        """A replica that has asked for its own vote in the next term."""
        dependencies = RaftDependencies(storage=self.log, chance=self._chance)
        replica = Replica(self._node, dependencies, _SETTINGS, applied=self.log.base.index)
        driver = RaftDriver(replica, self.log, self, _lose)
        driver.campaign()
        driver.flush()
        return driver


def _lose(messages: Sequence[RaftMessage]) -> None:
    """Lose what is for other members, to whom there is no way."""
