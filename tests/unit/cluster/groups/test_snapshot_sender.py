"""A leader sends a snapshot with its messages, in chunks that the receiver asks for."""

from collections import deque
from collections.abc import Callable

import pytest
from tests.unit.cluster.groups.memory_replica import MemoryReplica, Pair
from tests.unit.cluster.groups.test_replica_outbox import a_message

from warren.cluster.groups import snapshot_sender
from warren.cluster.groups.group_payloads import COUNT, GroupPayload
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.groups.raft_message_writer import encode_ends
from warren.cluster.groups.replica_place import ReplicaPlace
from warren.cluster.groups.snapshot_sender import SnapshotSender
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import PayloadError
from warren.limits_raft import (
    GROUP_CHUNK_ROWS_MAX,
    GROUP_CHUNK_SIZE,
    GROUP_CHUNKS_IN_FLIGHT,
    GROUP_TRANSFER_IDLE_TICKS,
    GROUP_TRANSFERS_MAX,
)
from warren.queues.quorum.raft_storage import QuorumSnapshot
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import MessageKind, RaftMessage, Snapshot

ENDS = {0: 1_000_000}


def a_snapshot(ends: dict[int, int] = ENDS, *, term: int = 3) -> RaftMessage:
    snapshot = Snapshot(9, 3, Configuration((1, 2)), QuorumSnapshot(b"machine", ends))
    return RaftMessage(MessageKind.SNAPSHOT, 2, 1, term, snapshot=snapshot)


class Sending:
    """Node 1, which leads groups from number 1 on, and sends snapshots to node 2."""

    def __init__(self, groups: int = 1) -> None:
        self.pair = Pair(LinkPurpose.BULK)
        self.turns: deque[Callable[[int], None]] = deque()
        self.replicas = [MemoryReplica(number) for number in range(1, groups + 1)]
        self.places = {each.number: ReplicaPlace(each, {1: 1, 2: 2}) for each in self.replicas}
        self.reports: list[str] = []
        self.sender = SnapshotSender(
            self.places, lambda _: self.pair.channel, self.turns.append, self.reports.append
        )
        self.seen = 0

    @property
    def replica(self) -> MemoryReplica:
        return self.replicas[0]

    def fill(self, count: int, size: int) -> None:
        """Have `count` messages of `size` bytes."""
        for position in range(count):
            self.replica.rows[position] = position + 1
            self.replica.disk[position + 1] = a_message(size)

    def send(self, message: RaftMessage | None = None) -> None:
        for place in self.places.values():
            self.sender.send(place, 2, message or a_snapshot())
        self.turn()

    def turn(self) -> None:
        """One turn of the loop."""
        for _ in range(len(self.turns)):
            self.turns.popleft()(0)

    def turn_all(self) -> None:
        while self.turns:
            self.turn()

    def arrived(self) -> list[tuple[int, bytes]]:
        """What has arrived since the last call."""
        arrived = self.pair.arrived()
        found, self.seen = arrived[self.seen :], len(arrived)
        return found

    def pull(self, count: int, known: dict[int, int] | None = None, *, transfer: int = 1) -> None:
        body = COUNT.pack(transfer) + COUNT.pack(count) + encode_ends(known or {})
        assert self.sender.received(2, GroupPayload.PULL, body)

    def answer(self, *, is_taken: bool, transfer: int = 1) -> None:
        assert self.sender.received(2, GroupPayload.RESULT, COUNT.pack(transfer) + bytes((is_taken,)))


def items(chunks: list[tuple[int, bytes]]) -> list[tuple[int, int, int | None]]:
    """Position, count of known ones, and size of the body of each item; only whole chunks."""
    found: list[tuple[int, int, int | None]] = []
    for kind, body in chunks:
        assert kind == GroupPayload.CHUNK
        reader = RaftMessageReader(body[COUNT.size :], is_versioned=False)
        while not reader.is_at_end:
            (_, position), count = reader.place(), reader.number(COUNT.size)
            content = None if count else reader.content()
            found.append((position, count, None if content is None else content.body_size))
    return found


def test_nothing_is_read_before_the_receiver_asks() -> None:
    sending = Sending()
    sending.fill(3, 10)
    sending.send()
    [(kind, body)] = sending.arrived()
    assert kind == GroupPayload.BEGIN
    assert RaftMessageReader(body[COUNT.size :]).message() == (1, a_snapshot())
    assert sending.replica.reads == 0
    assert sending.turns == deque()


def test_messages_end_and_the_outcome_is_told() -> None:
    sending = Sending()
    sending.fill(3, 10)
    sending.send()
    sending.arrived()
    sending.pull(GROUP_CHUNKS_IN_FLIGHT)
    sending.turn_all()
    *chunks, (kind, body) = sending.arrived()
    assert (kind, body) == (GroupPayload.END, COUNT.pack(1))
    assert items(chunks) == [(0, 0, 10), (1, 0, 10), (2, 0, 10)]
    # The receiver may ask for more before it knows the end.
    sending.pull(1)
    sending.turn_all()
    assert sending.arrived() == []
    assert sending.replica.calls == []
    sending.answer(is_taken=True)
    assert sending.replica.calls == [("snapshot", 2, True)]
    assert sending.sender.count == 0


def test_a_chunk_of_each_transfer_is_sent_in_a_turn_as_many_as_were_asked_for() -> None:
    sending = Sending()
    sending.fill(20, GROUP_CHUNK_SIZE // 2)
    sending.send()
    sending.arrived()
    sending.pull(3)
    sending.turn()
    assert len(items(sending.arrived())) == 2
    sending.turn_all()
    assert len(items(sending.arrived())) == 4
    assert sending.replica.reads == 6
    sending.pull(1)
    sending.turn_all()
    assert [position for position, _, _ in items(sending.arrived())] == [6, 7]


def test_what_the_receiver_has_is_named_only() -> None:
    sending = Sending()
    sending.fill(20, 10)
    for position in (3, 4, 11):
        del sending.replica.rows[position]
    sending.send()
    sending.arrived()
    sending.pull(GROUP_CHUNKS_IN_FLIGHT, {0: 15})
    sending.turn_all()
    found = items(sending.arrived()[:-1])
    assert found == [(0, 3, None), (5, 6, None), (12, 3, None), *((at, 0, 10) for at in range(15, 20))]
    assert sending.replica.reads == 5


def test_messages_behind_the_snapshot_are_not_sent() -> None:
    sending = Sending()
    sending.fill(20, 10)
    sending.send(a_snapshot({0: 2, 4: 0}))
    sending.arrived()
    sending.pull(GROUP_CHUNKS_IN_FLIGHT)
    sending.turn_all()
    assert [position for position, _, _ in items(sending.arrived()[:-1])] == [0, 1]


def test_one_chunk_looks_at_some_rows() -> None:
    sending = Sending()
    sending.fill(GROUP_CHUNK_ROWS_MAX + 10, 0)
    sending.send()
    sending.arrived()
    sending.pull(1, {0: GROUP_CHUNK_ROWS_MAX + 5})
    sending.turn_all()
    assert sum(count for _, count, _ in items(sending.arrived())) == GROUP_CHUNK_ROWS_MAX


def test_the_rate_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_sender, "GROUP_TRANSFER_SIZE_PER_TICK", GROUP_CHUNK_SIZE)
    sending = Sending()
    sending.fill(20, GROUP_CHUNK_SIZE)
    sending.send()
    sending.arrived()
    sending.sender.tick()
    sending.pull(5)
    sending.turn_all()
    assert len(sending.arrived()) == 1
    sending.sender.tick()
    sending.turn_all()
    assert len(sending.arrived()) == 1


def test_some_are_sent_at_a_time() -> None:
    sending = Sending(GROUP_TRANSFERS_MAX + 2)
    sending.send()
    assert len(sending.arrived()) == GROUP_TRANSFERS_MAX
    assert sending.sender.count == GROUP_TRANSFERS_MAX + 2
    sending.answer(is_taken=False, transfer=3)
    sending.turn_all()
    assert len(sending.arrived()) == 1
    assert sending.replicas[2].calls == [("snapshot", 2, False)]


def test_another_snapshot_for_a_replica_takes_the_place_of_the_first() -> None:
    sending = Sending()
    sending.send()
    sending.send()
    assert sending.sender.count == 1
    sending.answer(is_taken=True, transfer=1)
    assert sending.replica.calls == []
    sending.answer(is_taken=True, transfer=2)
    assert sending.replica.calls == [("snapshot", 2, True)]


def test_a_message_that_cannot_be_read_ends_the_transfer() -> None:
    sending = Sending()
    sending.fill(3, 10)
    del sending.replica.disk[2]
    sending.send()
    sending.pull(1)
    sending.turn_all()
    assert sending.replica.calls == [("snapshot", 2, False)]
    assert sending.reports == ["a message of group 1 cannot be read for a snapshot"]


@pytest.mark.parametrize("reason", ["session", "idle", "term"])
def test_a_transfer_that_will_not_end_is_given_up(reason: str) -> None:
    sending = Sending()
    sending.send(a_snapshot(term=3))
    if reason == "session":
        sending.sender.session_lost(2)
    elif reason == "idle":
        for _ in range(GROUP_TRANSFER_IDLE_TICKS):
            sending.sender.tick()
        assert sending.sender.count == 1
        sending.sender.tick()
    else:
        sending.replica._leader = 2
        sending.sender.tick()
    assert sending.sender.count == 0
    assert sending.replica.calls == [("snapshot", 2, False)]


def test_a_snapshot_is_not_begun_on_a_link_that_takes_nothing() -> None:
    sending = Sending()
    while sending.pair.link.is_writable(LinkPurpose.BULK):
        sending.pair.link.send(LinkPurpose.BULK, GroupPayload.END, bytes(1_000_000))
    sending.send()
    assert sending.replica.calls == [("snapshot", 2, False)]


def test_the_end_waits_for_the_link() -> None:
    sending = Sending()
    sending.send()
    sending.arrived()
    while sending.pair.link.is_writable(LinkPurpose.BULK):
        sending.pair.link.send(LinkPurpose.BULK, GroupPayload.END, bytes(1_000_000))
    sending.pull(1)
    sending.turn_all()
    assert sending.sender.count == 1
    sending.pair.network.run(500)
    sending.sender.writable(2)
    sending.turn_all()
    assert sending.arrived()[-1] == (GroupPayload.END, COUNT.pack(1))


def test_a_group_that_has_ended_is_forgotten() -> None:
    sending = Sending()
    sending.send()
    del sending.places[1]
    sending.sender.forget(1)
    assert sending.sender.count == 0
    assert sending.replica.calls == []


def test_answers_are_of_a_transfer_of_their_node() -> None:
    sending = Sending()
    sending.send()
    assert sending.sender.received(3, GroupPayload.RESULT, COUNT.pack(1) + b"\1")
    assert sending.replica.calls == []
    assert not sending.sender.received(2, GroupPayload.BEGIN, b"")
    with pytest.raises(PayloadError, match="9 chunks of a snapshot are asked for"):
        sending.pull(GROUP_CHUNKS_IN_FLIGHT + 1)


def test_a_replica_that_fails_as_its_messages_are_looked_for_ends_the_transfer() -> None:
    sending = Sending()
    sending.fill(3, 10)
    sending.send()
    sending.replica.has_failed = True
    sending.pull(1)
    sending.turn_all()
    assert sending.replica.calls == [("snapshot", 2, False)]
    assert sending.arrived()[-1][0] == GroupPayload.BEGIN
