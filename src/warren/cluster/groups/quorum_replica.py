"""The replica of a quorum queue behind the port `GroupReplica`.

What the group raises ends its queue: neither the link that has called it, nor the ticks and messages of other
groups. The caller then gets what it gets of a replica that has nothing.
"""

from collections.abc import Callable, Sequence

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import StoredMessage
from warren.queues.quorum.batch_codec import QuorumFormatError
from warren.queues.quorum.group import QuorumGroup
from warren.queues.quorum.raft_storage import QuorumPayload
from warren.replication.raft.raft_messages import NOBODY, Entry, RaftMessage
from warren.replication.raft.replica import Replica
from warren.store.message_store import MessageStore


class QuorumReplica:
    """What the other members of a quorum queue have to do with its replica on this node."""

    __slots__ = ("_group", "_replica", "_store")

    def __init__(self, group: QuorumGroup, store: MessageStore) -> None:
        """`store` has the messages of `group`."""
        self._group = group
        self._store = store
        self._replica: Replica = group.driver.replica

    @property
    def number(self) -> int:
        """The number of the group, which is that of its queue."""
        return self._group.number

    @property
    def replica(self) -> int:
        """The number of the replica in its group."""
        return self._replica.id

    @property
    def term(self) -> int:
        """The term that it is in."""
        return self._replica.hard_state.term

    @property
    def leader(self) -> int:
        """The replica that leads as far as this one knows; 0 if it knows none."""
        return self._group.leader

    def step(self, message: RaftMessage) -> None:
        """Take a message. QuorumFormatError if it has a snapshot that this version cannot read.

        Any other error ends the replica: neither the link that has brought the message nor other groups.
        """
        try:
            self._group.step(message)
        except QuorumFormatError:
            raise
        except Exception as error:
            self._group.failed(error)

    def tick(self) -> None:
        """Note that GROUP_TICK_MS have passed; an error ends the replica, and not the ticks of others."""
        try:
            self._group.tick()
        except Exception as error:
            self._group.failed(error)

    def resume_ticks(self) -> None:
        """Note that ticks follow again, after some were left out."""
        self._replica.resume_ticks()

    def unreachable(self, replica: int) -> None:
        """Note that messages to another replica may have been lost."""
        self._replica.unreachable(replica)

    def forget_leader(self) -> None:
        """Vote for others at once, since the leader has ended."""
        self._replica.forget_leader()

    def leader_ended(self) -> None:
        """Campaign with the next tick, since the leader has ended."""
        self._replica.leader_ended()

    def snapshot_sent(self, replica: int, *, is_done: bool) -> None:
        """Note whether another replica has got the snapshot that was sent to it."""
        try:
            self._group.snapshot_sent(replica, is_done=is_done)
        except Exception as error:
            self._group.failed(error)

    # --- sleep ----------------------------------------------------------------------------------------

    def quiet_commit(self) -> int:
        """The commit index if this leader has nothing to do and all members know that; else 0."""
        try:
            return self._quiet_commit()
        except Exception as error:
            self._group.failed(error)
            return 0

    def _quiet_commit(self) -> int:
        replica = self._replica
        if not self._group.is_open or replica.transfer_to != NOBODY or replica.configuration.is_joint:
            return 0
        commit = replica.commit_index()
        if not commit == replica.log.last_index() == replica.log.applied or not self._group.proposals.is_idle:
            return 0
        for member, progress in replica.progress.items():
            if progress.match != commit or (member != replica.id and progress.sent_commit < commit):
                return 0
        return commit

    def agrees(self, term: int, commit: int) -> bool:
        """True if this replica follows in `term`, and has and knows as committed all up to `commit`."""
        replica = self._replica
        log = replica.log
        return (
            self.term == term
            and not replica.leads()
            and self.leader != NOBODY
            and commit == replica.commit_index() == log.last_index() == log.applied
        )

    def members(self) -> Sequence[int]:
        """All replicas that belong to the group, as far as this one knows."""
        return self._replica.configuration.members

    # --- messages of the queue ------------------------------------------------------------------------

    def contents(self, entry: Entry) -> Sequence[StoredMessage | int | None] | None:
        """The messages of an entry, or their locations; 0 or None for one that is settled.

        None if the entry is not in the log any more.
        """
        payload = entry.payload
        if not isinstance(payload, QuorumPayload) or not payload.runs:
            return ()
        try:
            return self._group.entry_contents(entry)
        except Exception as error:
            self._group.failed(error)
            return None

    def read(self, location: int) -> StoredMessage | None:
        """The message at `location`, from the disk; None if it cannot be read."""
        return self._store.reader().read(location)

    def live(self, level: int, position: int, count: int) -> list[tuple[int, int]] | None:
        """Position in the group and location of up to `count` messages of `level` from `position` on.

        None if the replica has failed.
        """
        try:
            return self._live(level, position, count)
        except Exception as error:
            self._group.failed(error)
            return None

    def _live(self, level: int, position: int, count: int) -> list[tuple[int, int]]:
        log = self._group.log
        rows = self._group.messages.peek(level, log.stored(level, position), count)
        return [(log.logical(level, stored), location) for stored, location in rows]

    def location(self, level: int, position: int) -> int:
        """The location of the message at `position` of `level` in the group; 0 if there is none."""
        stored = self._group.log.stored(level, position)
        for found, location in self._group.messages.peek(level, stored, 1):
            if found == stored:
                return location
        return 0

    # --- snapshots of another replica -----------------------------------------------------------------

    def is_behind(self, message: RaftMessage) -> bool:
        """True if the snapshot of `message` has what this replica does not know as committed."""
        return self._group.is_behind(message)

    def ends(self) -> dict[int, int]:
        """Priority level -> the position behind the last message that is applied."""
        return self._group.messages.ends()

    def receive(self, message: StoredMessage, level: int, position: int) -> None:
        """Store a message of a snapshot that `step` gets later."""
        try:
            self._group.receive(message, level, position)
        except Exception as error:
            self._group.failed(error)

    def when_received(self, callback: Callable[[], None]) -> None:
        """Call `callback` when everything that was received before is synced."""
        self._store.confirm(_Synced(callback), 1)

    def discard_received(self) -> None:
        """Make the messages void that were received for a snapshot that will not come."""
        try:
            self._group.discard_received()
        except Exception as error:
            self._group.failed(error)


class _Synced(ConfirmListener):
    """Waits for what was received to be synced."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def expect(self, sequence: int) -> None:
        """Nothing to do."""

    def done(self, first: int, last: int) -> None:
        """It is synced."""
        self._callback()

    def refused(self, sequence: int) -> None:
        """Never called: a store that fails is closed."""
        raise AssertionError(sequence)
