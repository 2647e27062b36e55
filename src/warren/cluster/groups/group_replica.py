"""The port to a replica of a group on this node, as its traffic with other nodes needs it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from warren.model.message import StoredMessage
from warren.replication.raft.raft_messages import Entry, RaftMessage


class GroupReplica(Protocol):
    """Port: one replica. What it sends goes to `GroupTraffic.send`, also while it is called."""

    @property
    def number(self) -> int:
        """The number of the group, which is that of its queue."""

    @property
    def replica(self) -> int:
        """The number of the replica in its group."""

    @property
    def term(self) -> int:
        """The term that it is in."""

    @property
    def leader(self) -> int:
        """The replica that leads as far as this one knows; 0 if it knows none."""

    def step(self, message: RaftMessage) -> None:
        """Take a message. ValueError if it has a snapshot that this version cannot read."""

    def tick(self) -> None:
        """Note that GROUP_TICK_MS have passed."""

    def resume_ticks(self) -> None:
        """Note that ticks follow again, after some were left out."""

    def unreachable(self, replica: int) -> None:
        """Note that messages to another replica may have been lost."""

    def forget_leader(self) -> None:
        """Vote for others at once, since the leader has ended."""

    def leader_ended(self) -> None:
        """Campaign with the next tick, since the leader has ended."""

    def snapshot_sent(self, replica: int, *, is_done: bool) -> None:
        """Note whether another replica has got the snapshot that was sent to it."""

    # --- sleep ----------------------------------------------------------------------------------------

    def quiet_commit(self) -> int:
        """The commit index if this leader has nothing to do and all members know that; else 0."""

    def agrees(self, term: int, commit: int) -> bool:
        """True if this replica follows in `term`, and has and knows as committed all up to `commit`."""

    def members(self) -> Sequence[int]:
        """All replicas that belong to the group, as far as this one knows."""

    # --- messages of the queue ------------------------------------------------------------------------

    def contents(self, entry: Entry) -> Sequence[StoredMessage | int | None] | None:
        """The messages of an entry, or their locations; 0 or None for one that is settled.

        None if the entry is not in the log any more.
        """

    def read(self, location: int) -> StoredMessage | None:
        """The message at `location`, from the disk; None if it cannot be read."""

    def live(self, level: int, position: int, count: int) -> list[tuple[int, int]] | None:
        """Position in the group and location of up to `count` messages of `level` from `position` on.

        None if the replica has failed.
        """

    def location(self, level: int, position: int) -> int:
        """The location of the message at `position` of `level` in the group; 0 if there is none."""

    # --- snapshots of another replica -----------------------------------------------------------------

    def is_behind(self, message: RaftMessage) -> bool:
        """True if the snapshot of `message` has what this replica does not know as committed."""

    def ends(self) -> dict[int, int]:
        """Priority level -> the position behind the last message that is applied."""

    def receive(self, message: StoredMessage, level: int, position: int) -> None:
        """Store a message of a snapshot that `step` gets later."""

    def when_received(self, callback: Callable[[], None]) -> None:
        """Call `callback` when everything that was received before is synced."""

    def discard_received(self) -> None:
        """Make the messages void that were received for a snapshot that will not come."""
