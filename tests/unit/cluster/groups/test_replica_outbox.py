"""What waits for a link, and where the messages of entries come from."""

import pytest
from tests.unit.cluster.groups.group_values import contents_of
from tests.unit.cluster.groups.memory_replica import MemoryReplica, Pair

from warren.cluster.groups import replica_outbox
from warren.cluster.groups.group_payloads import GroupPayload
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.groups.replica_outbox import ReplicaOutbox
from warren.cluster.hello import LinkPurpose
from warren.limits_raft import GROUP_PAYLOAD_SIZE, GROUP_READ_SIZE
from warren.model.message import PERSISTENT, StoredMessage
from warren.queues.quorum.raft_storage import QuorumPayload
from warren.replication.raft.raft_messages import Entry, MessageKind, RaftMessage
from warren.store.group_record import PositionRun

# One message, numbered 1 by run 1 of node 1.
COMMANDS = bytes.fromhex("03 01 00000001 0001 0000000000000001 0000000000000001 00000001")


def a_message(size: int) -> StoredMessage:
    made = StoredMessage(b"\0\x01q", b"\0\0", bytes(size) + b"\xce", 7)
    made.flags = PERSISTENT
    return made


def an_append(index: int) -> RaftMessage:
    """An append of one entry with one message."""
    entry = Entry(3, index, payload=QuorumPayload((PositionRun(0, index, 1),), COMMANDS), size=9)
    return RaftMessage(MessageKind.APPEND, 2, 1, 3, index - 1, 3, (entry,))


def messages_in(arrived: list[tuple[int, bytes]]) -> list[list[tuple[int, RaftMessage]]]:
    """The messages of each payload, and their groups."""
    found = []
    for kind, body in arrived:
        assert kind == GroupPayload.MESSAGES
        reader, messages = RaftMessageReader(body), []
        while not reader.is_at_end:
            messages.append(reader.message())
        found.append(messages)
    return found


def test_what_belongs_to_one_turn_is_one_payload() -> None:
    pair = Pair(LinkPurpose.DATA)
    outbox = ReplicaOutbox(pair.find)
    for number in (7, 8, 9):
        replica = MemoryReplica(number)
        replica.entries[1] = [a_message(10)]
        outbox.add(replica, an_append(1))
        outbox.add(replica, RaftMessage(MessageKind.HEARTBEAT, 2, 1, 3))
    assert not outbox.flush({})
    [payload] = messages_in(pair.arrived())
    assert [(group, message.kind) for group, message in payload] == [
        (number, MessageKind.APPEND) for number in (7, 8, 9)
    ]
    pair.purpose = LinkPurpose.CONTROL
    [payload] = messages_in(pair.arrived())
    assert [group for group, _ in payload] == [7, 8, 9]


def test_payloads_have_a_size() -> None:
    pair = Pair(LinkPurpose.DATA)
    outbox, replica = ReplicaOutbox(pair.find), MemoryReplica(7)
    for index in range(1, 10):
        replica.entries[index] = [a_message(100_000)]
        outbox.add(replica, an_append(index))
    outbox.flush({})
    arrived = pair.arrived()
    assert [len(messages) for messages in messages_in(arrived)] == [2, 2, 2, 2, 1]
    assert all(len(body) <= GROUP_PAYLOAD_SIZE for _, body in arrived)


def test_an_entry_is_encoded_for_the_first_node_and_shared_with_others() -> None:
    pairs = Pair(LinkPurpose.DATA), Pair(LinkPurpose.DATA)
    replica, encoded = MemoryReplica(7), {}  # type: ignore[var-annotated]
    replica.entries[1] = [a_message(10)]
    for pair in pairs:
        outbox = ReplicaOutbox(pair.find)
        outbox.add(replica, an_append(1))
        outbox.flush(encoded)
        # The second one finds it encoded.
        replica.entries.clear()
        assert len(messages_in(pair.arrived())[0]) == 1


def test_messages_on_the_disk_are_read_a_piece_in_a_turn_and_others_pass() -> None:
    pair = Pair(LinkPurpose.DATA)
    outbox, behind, other = ReplicaOutbox(pair.find), MemoryReplica(7), MemoryReplica(8)
    for index in range(1, 11):
        behind.disk[index] = a_message(100_000)
        behind.entries[index] = [index]
        outbox.add(behind, an_append(index))
    other.entries[1] = [a_message(10)]
    outbox.add(other, an_append(1))
    assert outbox.flush({})
    found = [each for payload in messages_in(pair.arrived()) for each in payload]
    assert behind.reads == 1 + GROUP_READ_SIZE // 100_000
    assert [group for group, _ in found] == [8, 7, 7, 7]
    # Behind what waits, in order, also what is in memory.
    behind.entries[11] = [a_message(10)]
    outbox.add(behind, an_append(11))
    while outbox.flush({}):
        pass
    found = [each for payload in messages_in(pair.arrived()) for each in payload]
    assert [message.index + 1 for group, message in found if group == 7] == list(range(1, 12))
    assert [len(contents_of(message.entries[0])) for _, message in found] == [1] * 12
    assert outbox.waiting_count == 0


def test_what_is_settled_is_not_sent() -> None:
    pair = Pair(LinkPurpose.DATA)
    outbox, replica = ReplicaOutbox(pair.find), MemoryReplica(7)
    replica.entries[1] = [0]
    outbox.add(replica, an_append(1))
    outbox.flush({})
    [[(_, message)]] = messages_in(pair.arrived())
    assert contents_of(message.entries[0]) == [None]
    assert replica.reads == 0


@pytest.mark.parametrize("contents", [None, [5]])
def test_an_append_that_cannot_be_read_is_lost(contents: list[StoredMessage | int | None] | None) -> None:
    pair = Pair(LinkPurpose.DATA)
    outbox, replica = ReplicaOutbox(pair.find), MemoryReplica(7)
    if contents is not None:
        replica.entries[1] = contents
    outbox.add(replica, an_append(1))
    outbox.flush({})
    assert outbox.take_lost() == [(replica, 2)]
    assert outbox.take_lost() == []
    assert pair.arrived() == []


def test_appends_wait_for_a_link_that_is_full_and_votes_are_lost() -> None:
    pair = Pair(LinkPurpose.DATA)
    outbox, replica = ReplicaOutbox(pair.find), MemoryReplica(7)
    for purpose in (LinkPurpose.DATA, LinkPurpose.CONTROL):
        while pair.link.is_writable(purpose):
            pair.link.send(purpose, GroupPayload.WAKE, bytes(1_000_000))
    replica.entries[1] = [a_message(10)]
    outbox.add(replica, an_append(1))
    outbox.add(replica, RaftMessage(MessageKind.VOTE, 3, 1, 3))
    assert not outbox.flush({})
    assert outbox.waiting_count == 1
    assert outbox.take_lost() == [(replica, 3)]
    pair.network.run(500)
    outbox.flush({})
    assert outbox.waiting_count == 0
    assert [kind for kind, _ in pair.arrived()][-1] == GroupPayload.MESSAGES


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_outbox, "GROUP_HELD_MESSAGES_MAX", 3)
    outbox, replica = ReplicaOutbox(lambda: None), MemoryReplica(7)
    for index in range(1, 6):
        outbox.add(replica, an_append(index))
    assert outbox.waiting_count == 3
    assert outbox.take_lost() == [(replica, 2)]


def test_what_waits_is_dropped_with_its_session_or_its_group() -> None:
    outbox, one, other = ReplicaOutbox(lambda: None), MemoryReplica(7), MemoryReplica(8)
    outbox.add(one, an_append(1))
    outbox.add(other, an_append(1))
    outbox.forget(7)
    assert outbox.waiting_count == 1
    outbox.drop()
    assert outbox.waiting_count == 0
    assert outbox.take_lost() == [(other, 2)]
