"""The replica of the metadata group on this node: the group of number 0, in which every node is.

    begin ─▶ the vote for itself in the next term ─ synced ─▶ leads: the empty entry of its term ─▶ applied
    propose ─▶ hand_over: records for the next batch ─ synced ─▶ written ─▶ committed ─▶ applied
    step, tick ─▶ hand_over ─▶ as above

While this node is the only member, nobody else knows what it has not synced, and what a crash takes from the
log it takes with everything behind it. So the core is told at once that an entry is written which changes
nothing that survives a restart: `append_alone`, and the empty entry of a new leader. From the moment that
there is another member, a learner too, all entries wait for the sync.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from warren.journal.metadata_log import LoggedProposal, MetadataLog
from warren.limits_metadata import METADATA_ELECTION_TICKS
from warren.metadata.incarnation import Incarnation
from warren.replication.driver import RaftDriver
from warren.replication.raft.change import ConfigurationChange
from warren.replication.raft.raft_messages import NOBODY, Entry, EntryKind, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies

_SETTINGS = RaftSettings(election_ticks=METADATA_ELECTION_TICKS, slow_storage_ticks=METADATA_ELECTION_TICKS)
# A node alone starts its replica again with each failed write, one in a second at most: 12 days of failures.
_START_BITS = 20


class GroupMachine(Protocol):
    """Port: what the entries of the group are for."""

    def apply(self, entry: Entry) -> None:
        """Apply the next committed entry."""

    def install(self, snapshot: Snapshot) -> None:
        """Replace everything by `snapshot`, which is synced."""


class MetadataGroup:
    """One replica; committed entries go to its machine in order."""

    __slots__ = ("_chance", "_driver", "_incarnation", "_machine", "_send", "_start_count", "log")

    def __init__(
        self,
        incarnation: Incarnation,
        log: MetadataLog,
        machine: GroupMachine,
        *,
        chance: Callable[[int], int],
        send: Callable[[Sequence[RaftMessage]], None],
    ) -> None:
        """Begin with what is in `log`; `written` must be told when its records are synced."""
        self.log = log
        self._incarnation = incarnation
        self._start_count = 0
        self._machine = machine
        self._chance = chance
        self._send = send
        self._driver = self._started()

    @property
    def is_leader(self) -> bool:
        """True if it can take proposals."""
        return self._driver.is_leader

    @property
    def leader(self) -> tuple[int, int]:
        """The term, and the member that leads in it as far as this one knows, 0 if it knows none."""
        replica = self._driver.replica
        return replica.hard_state.term, replica.soft_state.leader

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

    def propose_change(self, change: ConfigurationChange) -> bool:
        """Append a change of the members; False if this replica does not lead, or one is under way."""
        return self._driver.propose_change(change) > 0

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
        """Go back to what is applied, because what the only voter has handed over could not be written.

        To the group this is a crash of the replica, which begins another term. The only member leads that
        before its vote is synced: nothing that survives a restart is applied before a snapshot is written,
        which has the vote.
        """
        if self.log.unapplied_count:
            self.log.forget_unapplied()
            self._driver = self._started()
        if self.log.is_alone:
            self.written(self.log.ticket)

    # With other members.

    def step(self, message: RaftMessage) -> None:
        """Take a message of another member; `hand_over` follows."""
        self._driver.step(message)

    def tick(self) -> None:
        """Note that METADATA_TICK_MS have passed; `hand_over` follows."""
        self._driver.tick()

    def read(self, then: Callable[[], None]) -> bytes:
        """Call `then` when all is applied that was committed before; `hand_over` follows.

        Returns a name for `forget_read`.
        """
        return self._driver.read(then)

    def forget_read(self, name: bytes) -> None:
        """Do not call what waits for a read."""
        self._driver.forget_read(name)

    def process_ended(self, member: int) -> None:
        """Elect another leader if the process of this member has ended, and it leads."""
        if self.leader[1] == member:
            self._driver.replica.leader_ended()

    def give_up_leadership(self) -> bool:
        """Have the best other voter lead, before this node stops; False if there is none to wait for."""
        return self._driver.hand_over() != NOBODY

    def snapshot_sent(self, member: int, *, is_done: bool) -> None:
        """Note whether a member has got the snapshot that was sent to it; `hand_over` follows."""
        self._driver.replica.snapshot_sent(member, is_done=is_done)

    @property
    def replica(self) -> Replica:
        """The replica, for reading."""
        return self._driver.replica

    # The machine of the driver.

    def apply(self, entries: Sequence[Entry]) -> None:
        """Have committed entries applied."""
        for entry in entries:
            if entry.kind is EntryKind.CHANGE:
                self.log.configuration = self._driver.replica.configuration
            self._machine.apply(entry)
        self.log.applied(entries[-1].index)

    def role_changed(self) -> None:
        """Nothing to do: whoever proposes asks who leads."""

    def install(self, snapshot: Snapshot) -> None:
        """Have everything replaced by a snapshot of another member."""
        self._machine.install(snapshot)

    def _started(self) -> RaftDriver:
        """A replica, which has asked for its own vote in the next term if there is nobody else."""
        dependencies = RaftDependencies(storage=self.log, chance=self._chance)
        node, number = self._incarnation
        replica = Replica(node, dependencies, _SETTINGS, applied=self.log.applied_id.index)
        # An answer to a read of an earlier replica is not taken for one of this.
        self._start_count += 1
        reads = (number << _START_BITS) + self._start_count
        driver = RaftDriver(replica, self.log, self, self._send, incarnation=reads)
        if self.log.decides_alone:
            driver.campaign()
        driver.flush()
        return driver
