"""What a replicated queue says of its replica on this node: its place in the log of its group."""

from msgspec import Struct


class ReplicationStatus(Struct, frozen=True, kw_only=True):
    """The replica of a queue on this node, and what the group keeps beside the ready messages.

    Indexes are those of the group's log; 0 is before the first entry.
    """

    # `leader`, `follower`, `candidate`, `pre_candidate`, or `down`.
    role: str
    is_voter: bool
    term: int
    # The last entry, and the last one that is synced here.
    last_index: int
    written_index: int
    commit_index: int
    applied_index: int
    # The entry up to which the log was replaced by a snapshot; 0 if it was not.
    snapshot_index: int
    # Why the data of this replica on disk may not be complete; empty if it is known to be.
    untrusted: str = ""
    # Its messages, held ones too, as far as they are applied or readable, and the size of their bodies.
    readable_count: int = 0
    readable_bytes: int = 0
    # Messages that exceeded the delivery limit without a dead-letter exchange, and the size of their bodies:
    # they wait for an operator.
    quarantined_count: int = 0
    quarantined_bytes: int = 0
    # Messages that came back and wait until they are ready, and the size of their bodies.
    delayed_count: int = 0
    delayed_bytes: int = 0
    # Messages that died and are kept until all targets have confirmed them, and the size of their bodies.
    dead_letter_count: int = 0
    dead_letter_bytes: int = 0


def in_memory() -> ReplicationStatus:
    """The status of a queue that is only in memory: a leader without a log."""
    return ReplicationStatus(
        role="leader",
        is_voter=True,
        term=0,
        last_index=0,
        written_index=0,
        commit_index=0,
        applied_index=0,
        snapshot_index=0,
    )
