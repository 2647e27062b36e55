"""What a replica wants to have done."""

from enum import Enum

from msgspec import Struct

from warren.replication.raft.raft_messages import NOBODY, Entry, HardState, RaftMessage, Snapshot


class Role(Enum):
    """What a replica is in its term."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class SoftState(Struct, frozen=True):
    """What others may want to know and nobody has to keep."""

    leader: int = NOBODY
    role: Role = Role.FOLLOWER


class ReadState(Struct, frozen=True):
    """A read may be answered as soon as the state machine has applied `index`."""

    index: int
    context: bytes


class Written(Struct, frozen=True):
    """What `Replica.written` is told when all of a Ready is synced; it must not be made up.

    The term tells an acknowledgement of entries that have been replaced since from a true one, also if the
    same index was written again and again.
    """

    # The replica's term when it asked for the write.
    term: int
    # The last entry that was being written then, 0 if none was.
    index: int = 0
    log_term: int = 0
    # Index of the snapshot, 0 without one.
    snapshot: int = 0


class Ready(Struct, frozen=True, gc=False):
    """What is to be done; a driver with asynchronous storage does it in this order.

    1. Send `messages`.
    2. Hand `hard_state`, `snapshot` and `entries` to the storage, in this order, behind what earlier ones
       asked for. A snapshot replaces the whole log, and entries all entries from the first of them on; both
       may come together.
       `commit` is written with the entries, so that knowing them is knowing that.
    3. When that is synced, and all that was handed over before: send `messages_after` (those to the replica
       itself go to `step`), then pass `written` to `Replica.written`. That also holds if there is nothing
       to write, or if `must_sync` is false: then it is enough that what was handed over before is synced.
    4. Apply `committed`: `Replica.apply_change` for each change of the configuration, then
       `Replica.applied`.

    A driver with synchronous storage writes and syncs first, then sends `messages` and those of
    `messages_after` that are not to the replica itself, applies, and calls `Replica.advance`.
    """

    hard_state: HardState | None
    entries: tuple[Entry, ...]
    snapshot: Snapshot | None
    # False if what is written may be lost by a crash: a commit index only. A snapshot is always synced before
    # it is acknowledged, whatever this says.
    must_sync: bool
    # The commit index that is known as the entries are handed out.
    commit: int
    messages: tuple[RaftMessage, ...]
    messages_after: tuple[RaftMessage, ...]
    # None if there is nothing that the core wants to hear of.
    written: Written | None
    committed: tuple[Entry, ...]
    soft_state: SoftState | None
    read_states: tuple[ReadState, ...]
