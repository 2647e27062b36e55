"""Random messages of the Raft core with the messages of a queue, from a seed."""

import random

from warren.model.message import DIED, HAS_EXPIRATION, HAS_HEADERS, PERSISTENT, StoredMessage, encode_address
from warren.queues.quorum.batch_codec import Enqueue, Enqueuer, QuorumBatch, Reach, SettledRun, encode
from warren.queues.quorum.raft_storage import QuorumPayload, QuorumSnapshot
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
    encode_change,
)
from warren.replication.raft.raft_messages import Entry, EntryKind, MessageKind, RaftMessage, Snapshot
from warren.store.group_record import PositionRun
from warren.wire.properties import BasicProperties

BIG = (1, 2**31, 2**62)
KINDS = tuple(kind for kind in MessageKind if kind is not MessageKind.PROPOSE)


def any_stored(chance: random.Random) -> StoredMessage:
    """A message of a queue."""
    headers = {"x": chance.choice(["y", 1, None])} if chance.random() < 0.3 else None
    expiration = chance.choice([None, None, "100"])
    properties = BasicProperties(delivery_mode=2, headers=headers, expiration=expiration)
    body = chance.randbytes(chance.choice((0, 1, 16, 300))) + b"\xce"
    address = encode_address(chance.choice(("", "e")), chance.choice(("q", "ä", "")))
    made = StoredMessage(address, properties.encode_list(), body, chance.choice((0, 1_700_000_000_000)))
    made.flags = PERSISTENT | (HAS_HEADERS if headers else 0) | (HAS_EXPIRATION if expiration else 0)
    if headers and chance.random() < 0.3:
        made.flags |= DIED
    made.priority = chance.choice((0, 0, 5, 255))
    return made


def any_entry(chance: random.Random, index: int) -> Entry:
    """An entry, with its messages."""
    term = chance.choice(BIG)
    kind = chance.randrange(6)
    if kind == 0:
        return Entry(term, index)
    if kind == 1:
        members = (MemberChange(chance.choice(list(MemberChangeKind)), chance.randrange(1, 2**32)),)
        change = encode_change(ConfigurationChange(members, context=chance.randbytes(3)))
        return Entry(term, index, EntryKind.CHANGE, change, size=len(change))
    runs, count = [], 0
    for _ in range(chance.randrange(3)):
        run = PositionRun(chance.choice((0, 31)), chance.choice((0, 7, 2**47)), chance.choice((1, 2, 30)))
        runs.append(run)
        count += run.count
    batch = QuorumBatch(
        runs=tuple(runs),
        enqueued=(Enqueue(Enqueuer(1, 2**40), 5, count),) if count else (),
        reaches=(Reach(3, 2**40),),
        settled=(SettledRun(0, 7, 1), SettledRun(2, 9, 4)),
    )
    contents = [any_stored(chance) if chance.random() < 0.8 else None for _ in range(count)]
    payload = QuorumPayload(batch.runs, encode(batch), contents)
    return Entry(term, index, payload=payload, size=chance.choice((1, 2**32 - 1)))


def any_message(chance: random.Random) -> RaftMessage:
    """A message of any kind, with all fields that it may have."""
    kind = chance.choice(KINDS)
    index, entries, snapshot = chance.choice((0, *BIG)), (), None
    if kind is MessageKind.APPEND:
        count = chance.randrange(4)
        entries = tuple(any_entry(chance, at) for at in range(index + 1, index + 1 + count))
    elif kind is MessageKind.SNAPSHOT:
        ends = {level: chance.randrange(2**47) for level in (0, 4, 31) if chance.random() < 0.5}
        configuration = Configuration((1, 2, 9), (1, 3), (4,), (2**32 - 1,), auto_leave=True)
        payload = QuorumSnapshot(chance.randbytes(20), ends)
        snapshot = Snapshot(chance.choice(BIG), chance.choice(BIG), configuration, payload)
    return RaftMessage(
        kind, chance.randrange(1, 2**32), chance.randrange(1, 2**32), chance.choice((0, *BIG)), index,
        chance.choice((0, *BIG)), entries, chance.choice((0, *BIG)), snapshot, chance.random() < 0.5,
        chance.choice((0, *BIG)), chance.random() < 0.5, chance.choice((b"", bytes(24), bytes(255))),
    )  # fmt: skip


def contents_of(entry: Entry) -> list[StoredMessage | None]:
    """The messages of an entry."""
    payload = entry.payload
    return list(payload.messages or ()) if isinstance(payload, QuorumPayload) else []


def shown(message: StoredMessage | None) -> tuple[object, ...] | None:
    """All that a message of a queue has."""
    if message is None:
        return None
    return (
        message.address, message.property_list, message.content, message.flags, message.priority,
        message.published_at,
    )  # fmt: skip
