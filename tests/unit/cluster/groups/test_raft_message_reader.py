"""What a writer has written is read again; anything else is refused, or is a valid message."""

import random

import pytest
from tests.seeds import SEEDS
from tests.unit.cluster.groups.group_values import any_entry, any_message, any_stored, contents_of, shown

from warren.cluster.groups.group_payloads import VERSION
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.groups.raft_message_writer import (
    ContentWriter,
    EncodedEntry,
    encode_entry,
    encode_message,
)
from warren.cluster.node_link import PayloadError
from warren.limits_raft import QUORUM_PRIORITY_MAX
from warren.model.message import StoredMessage
from warren.queues.quorum.raft_storage import QuorumPayload
from warren.replication.raft.raft_messages import Entry, EntryKind, MessageKind, RaftMessage
from warren.store.group_record import PositionRun

Found = list[tuple[int, RaftMessage]]


def encoded(*messages: RaftMessage) -> bytes:
    """A payload with messages of the groups 1, 2, …"""
    parts = [bytes((VERSION,))]
    for group, message in enumerate(messages, start=1):
        entries = [encode_entry(entry, contents_of(entry)) for entry in message.entries]
        parts += encode_message(group, message, entries)
    return b"".join(parts)


def decoded(payload: bytes) -> Found:
    """The messages of a payload, and their groups."""
    reader = RaftMessageReader(payload)
    found = []
    while not reader.is_at_end:
        found.append(reader.message())
    return found


def refusal(payload: bytes) -> str:
    """Why a payload is refused."""
    with pytest.raises(PayloadError) as caught:
        decoded(payload)
    return str(caught.value)


def an_append(entry: Entry) -> RaftMessage:
    """An append of one entry."""
    return RaftMessage(MessageKind.APPEND, 1, 2, 5, entry.index - 1, 4, (entry,))


@pytest.mark.seeds(SEEDS)
def test_what_was_written_is_read(seed: int) -> None:
    chance = random.Random(seed)
    messages = [any_message(chance) for _ in range(chance.randrange(1, 6))]
    found = decoded(encoded(*messages))
    assert [group for group, _ in found] == list(range(1, len(messages) + 1))
    assert [message for _, message in found] == messages
    for (_, read), written in zip(found, messages, strict=True):
        for entry, other in zip(read.entries, written.entries, strict=True):
            assert entry.size == other.size
            assert list(map(shown, contents_of(entry))) == list(map(shown, contents_of(other)))
            if isinstance(entry.payload, QuorumPayload):
                assert not entry.payload.is_placed


@pytest.mark.seeds(SEEDS)
def test_a_payload_that_is_cut_short_is_refused_or_ends_behind_a_message(seed: int) -> None:
    chance = random.Random(seed)
    messages = [any_message(chance) for _ in range(2)]
    payload = encoded(*messages)
    ends = {1, len(encoded(messages[0]))}
    for size in sorted({chance.randrange(len(payload)) for _ in range(200)}):
        if size in ends:
            assert [message for _, message in decoded(payload[:size])] == messages[: size > 1]
        else:
            refusal(payload[:size])


@pytest.mark.seeds(SEEDS)
def test_a_flipped_bit_is_refused_or_is_a_valid_message(seed: int) -> None:
    chance = random.Random(seed)
    payload = encoded(*(any_message(chance) for _ in range(2)))
    for _ in range(200):
        damaged = bytearray(payload)
        at = chance.randrange(len(damaged))
        damaged[at] ^= 1 << chance.randrange(8)
        try:
            found = decoded(bytes(damaged))
        except PayloadError:
            continue
        # What is decoded can be encoded, and is the same then.
        parts = [bytes((VERSION,))]
        for group, message in found:
            entries = [encode_entry(entry, contents_of(entry)) for entry in message.entries]
            parts += encode_message(group, message, entries)
        assert decoded(b"".join(parts)) == found


@pytest.mark.seeds(SEEDS)
def test_any_bytes_are_refused_or_are_messages(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        try:
            decoded(bytes((VERSION,)) + chance.randbytes(chance.randrange(200)))
        except PayloadError:
            continue


def test_an_entry_is_encoded_once_for_all_members() -> None:
    entry = any_entry(random.Random(3), 8)
    once = encode_entry(entry, contents_of(entry))
    assert once.size == sum(map(len, once.parts))
    for to in (1, 2):
        message = RaftMessage(MessageKind.APPEND, to, 3, 5, 7, 4, (entry,))
        parts = encode_message(9, message, [once])
        assert all(one is other for one, other in zip(parts[1:], once.parts, strict=True))
        assert decoded(bytes((VERSION,)) + b"".join(parts)) == [(9, message)]


def test_an_entry_may_come_behind_one_with_the_same_messages() -> None:
    """Each entry is encoded by itself, so that it can be sent behind any other, or none."""
    stored = any_stored(random.Random(1))
    entries = tuple(
        Entry(5, at, payload=QuorumPayload((PositionRun(0, at, 1),), COMMANDS, [stored]), size=9)
        for at in (1, 2)
    )
    found = decoded(encoded(RaftMessage(MessageKind.APPEND, 1, 2, 5, 0, 0, entries)))
    assert [shown(one) for entry in found[0][1].entries for one in contents_of(entry)] == [shown(stored)] * 2


# One message, numbered 1 by run 1 of node 1.
COMMANDS = bytes.fromhex("03 01 00000001 0001 0000000000000001 0000000000000001 00000001")


def test_other_versions_are_refused() -> None:
    assert refusal(bytes((VERSION + 1,))) == "a payload of groups of version 2"
    assert refusal(b"") == "a payload of groups is cut short at byte 0"


def test_no_message_is_of_nobody() -> None:
    for fields in ((0, 2, 3), (1, 0, 3), (1, 2, 0)):
        group, to, sender = fields
        parts = encode_message(group, RaftMessage(MessageKind.HEARTBEAT, to, sender, 5))
        assert refusal(bytes((VERSION,)) + b"".join(parts)).startswith("a message of replica")


def test_kinds_are_those_that_members_send() -> None:
    payload = bytearray(encoded(RaftMessage(MessageKind.HEARTBEAT, 1, 2, 5)))
    payload[9] = 99
    assert refusal(bytes(payload)) == "a message of the unknown kind 99"
    payload[9] = MessageKind.PROPOSE
    assert refusal(bytes(payload)) == "a proposal, which nobody passes on"
    payload[9] = MessageKind.SNAPSHOT
    assert refusal(bytes(payload)) == "a SNAPSHOT with flags 0x0"


def test_only_an_append_has_entries() -> None:
    message = RaftMessage(MessageKind.HEARTBEAT, 1, 2, 5, entries=(Entry(1, 1),))
    assert refusal(encoded(message)) == "a HEARTBEAT with entries"


def test_a_count_of_entries_is_no_reason_to_make_them() -> None:
    parts = encode_message(1, RaftMessage(MessageKind.APPEND, 1, 2, 5, entries=(Entry(1, 1),)), [EMPTY])
    count = bytes((VERSION,)) + b"".join(parts)[:-4] + bytes.fromhex("ffffffff")
    assert refusal(count) == "4294967295 entries from index 1 on in 0 bytes"


EMPTY = EncodedEntry((), 0)


def test_a_count_of_messages_is_no_reason_to_make_them() -> None:
    payload = QuorumPayload((PositionRun(0, 1, 1),), COMMANDS, [None])
    body = bytearray(encoded(an_append(Entry(5, 1, payload=payload, size=9))))
    count_at = len(body) - 1 - len(COMMANDS) - 4
    body[count_at : count_at + 4] = (2**24).to_bytes(4, "big")
    assert refusal(bytes(body)) == "entry 1 has 16777216 messages in 1 bytes"


def test_numbers_of_messages_must_be_those_of_the_runs() -> None:
    payload = QuorumPayload((PositionRun(0, 1, 2),), COMMANDS, [None, None])
    assert "2 messages, and numbers for another count" in refusal(
        encoded(an_append(Entry(5, 1, payload=payload, size=9)))
    )


def test_a_payload_has_a_size_since_an_entry_without_one_is_empty() -> None:
    payload = QuorumPayload((PositionRun(0, 1, 1),), COMMANDS, [None])
    assert refusal(encoded(an_append(Entry(5, 1, payload=payload)))) == "entry 1 has a payload, and no size"


def test_levels_and_positions_are_bounded() -> None:
    payload = QuorumPayload((PositionRun(QUORUM_PRIORITY_MAX + 1, 1, 1),), COMMANDS, [None])
    assert refusal(encoded(an_append(Entry(5, 1, payload=payload, size=9)))).startswith("a position of 0x20")


def test_a_change_of_members_must_be_one() -> None:
    change = Entry(5, 1, EntryKind.CHANGE, b"?", size=1)
    assert refusal(encoded(an_append(change))).startswith("entry 1: the payload of a change has")


@pytest.mark.parametrize("address", [b"", b"\0", b"\x05e\0", b"\0\x09k"])
def test_addresses_are_checked(address: bytes) -> None:
    like = any_stored(random.Random(1))
    stored = StoredMessage(address, like.property_list, like.content, 0)
    writer = ContentWriter()
    writer.write(stored)
    with pytest.raises(PayloadError, match="an address that is not exchange and routing key"):
        RaftMessageReader(b"".join(writer.parts), is_versioned=False).content()


def test_the_first_message_repeats_nothing() -> None:
    writer = ContentWriter()
    writer.write(any_stored(random.Random(1)))
    first = len(writer.parts)
    writer.write(any_stored(random.Random(1)))
    with pytest.raises(PayloadError, match="the first message is said to be like the one before"):
        RaftMessageReader(b"".join(writer.parts[first:]), is_versioned=False).content()


def test_a_body_has_its_end() -> None:
    like = any_stored(random.Random(1))
    stored = StoredMessage(like.address, like.property_list, b"body", 0)
    writer = ContentWriter()
    writer.write(stored)
    with pytest.raises(PayloadError, match="the body of a message without its end"):
        RaftMessageReader(b"".join(writer.parts), is_versioned=False).content()
