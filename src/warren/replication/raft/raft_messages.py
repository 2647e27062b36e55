"""What replicas of a group tell each other, what they keep, and the snapshot that replaces a log.

Replica numbers begin with 1; 0 is no replica. Terms and indexes begin with 1; 0 is before the first.
"""

from enum import IntEnum

from msgspec import Struct

from warren.model.value import Value
from warren.replication.raft.change import Configuration

# No replica: nobody was voted for, or nobody leads.
NOBODY = 0


class EntryKind(IntEnum):
    """What an entry is for; the numbers are those of the log."""

    # The payload belongs to the state machine; an empty one is that of a new leader.
    NORMAL = 0
    # The payload is a change of the configuration, as `change.encode_change` writes it.
    CHANGE = 1


# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_NORMAL = EntryKind.NORMAL


class Entry(Value):
    """One entry of the log."""

    __slots__ = ("index", "kind", "payload", "size", "term")

    def __init__(
        self,
        term: int,
        index: int,
        kind: EntryKind = EntryKind.NORMAL,
        payload: object = b"",
        *,
        size: int = 0,
    ) -> None:
        self.term = term
        self.index = index
        self.kind = kind
        # The core never looks into what belongs to the state machine; it knows its size only.
        self.payload = payload
        self.size = size

    def fields(self) -> tuple[object, ...]:
        """Term, index, kind, payload and size."""
        return self.term, self.index, self.kind, self.payload, self.size


def new_entry(term: int, index: int, payload: object, size: int) -> Entry:
    """Create an entry of the state machine, without what the constructor costs a compiled caller."""
    entry: Entry = Entry.__new__(Entry)
    entry.term = term
    entry.index = index
    entry.kind = _NORMAL
    entry.payload = payload
    entry.size = size
    return entry


class EntryId(Struct, frozen=True, order=True):
    """The last entry of a log: of two logs the one with the greater id is more up to date."""

    term: int
    index: int


class HardState(Struct, frozen=True):
    """What a replica must not forget."""

    term: int = 0
    vote: int = NOBODY
    commit: int = 0


class Snapshot(Struct, frozen=True):
    """The state machine as of an entry: the core knows where it stands, and the configuration there."""

    index: int
    term: int
    configuration: Configuration
    payload: object = b""


class MessageKind(IntEnum):
    """What a message says; the numbers are those of the wire."""

    APPEND = 1
    APPEND_RESPONSE = 2
    VOTE = 3
    VOTE_RESPONSE = 4
    PRE_VOTE = 5
    PRE_VOTE_RESPONSE = 6
    SNAPSHOT = 7
    HEARTBEAT = 8
    HEARTBEAT_RESPONSE = 9
    # The receiver is to start an election at once, because the leader hands over to it.
    TIMEOUT_NOW = 10
    # A follower passes on a read to the leader.
    READ_INDEX = 11
    READ_INDEX_RESPONSE = 12
    # A follower passes on a request to hand over; `index` is the replica that is to lead.
    TRANSFER = 13
    # A follower passes on entries that have neither term nor index yet.
    PROPOSE = 14


# Answers, which only a member may send.
RESPONSES = frozenset({
    MessageKind.APPEND_RESPONSE, MessageKind.VOTE_RESPONSE, MessageKind.PRE_VOTE_RESPONSE,
    MessageKind.HEARTBEAT_RESPONSE, MessageKind.READ_INDEX_RESPONSE,
})  # fmt: skip


class RaftMessage(Struct, frozen=True, omit_defaults=True, gc=False):
    """One message; which fields have a meaning depends on its kind (docs/internals/raft.md)."""

    kind: MessageKind
    to: int
    # The replica that sends it.
    sender: int
    term: int = 0
    # The entry before `entries`, the last entry of a candidate, or what is acknowledged or refused.
    index: int = 0
    log_term: int = 0
    entries: tuple[Entry, ...] = ()
    commit: int = 0
    snapshot: Snapshot | None = None
    is_rejected: bool = False
    # Of a refused append: the last index at which the logs may agree. Of a vote: the term of the entry at
    # `commit`.
    hint: int = 0
    # Of a vote: True if the leader hands over, so that its lease is no reason to refuse.
    is_forced: bool = False
    # Of a read: its name; it comes back as it was.
    context: bytes = b""
