"""A replica receives a snapshot with its messages: all of it, or nothing."""

from collections import deque
from collections.abc import Callable

import pytest
from tests.unit.cluster.groups.memory_replica import Pair
from tests.unit.queues.quorum.followers import LEADER, NUMBER, PAIR, REPLICA, TERM, Bodies, Follower, applied
from tests.unit.queues.quorum.test_group__following import append

from warren.cluster.groups import snapshot_receiver
from warren.cluster.groups.group_payloads import COUNT, LEVEL_SHIFT, RUN, VERSION, GroupPayload
from warren.cluster.groups.quorum_replica import QuorumReplica
from warren.cluster.groups.raft_message_writer import ContentWriter, encode_message
from warren.cluster.groups.replica_place import ReplicaPlace
from warren.cluster.groups.snapshot_receiver import SnapshotReceiver
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import PayloadError
from warren.limits_raft import GROUP_CHUNKS_IN_FLIGHT, GROUP_READ_SIZE
from warren.model.message import PERSISTENT, StoredMessage
from warren.queues.quorum.batch_codec import QuorumBatch, Reach
from warren.queues.quorum.raft_storage import QuorumSnapshot
from warren.replication.raft.raft_messages import MessageKind, RaftMessage, Snapshot

MACHINE = applied(QuorumBatch(reaches=(Reach(0, 64),))).encode()
TRANSFER = COUNT.pack(5)


def a_snapshot(
    ends: dict[int, int], *, index: int = 20, term: int = TERM, machine: bytes = MACHINE
) -> RaftMessage:
    snapshot = Snapshot(index, term, PAIR, QuorumSnapshot(machine, ends))
    return RaftMessage(MessageKind.SNAPSHOT, REPLICA, LEADER, term, snapshot=snapshot)


def a_chunk(*items: tuple[int, bytes | int]) -> bytes:
    """Positions of level 0, with the body of a message, or how many the receiver has."""
    writer = ContentWriter()
    for position, what in items:
        if isinstance(what, int):
            writer.add(RUN.pack(position, what))
            continue
        writer.add(RUN.pack(position, 0))
        message = StoredMessage(b"\0\x01q", b"\0\0", what + b"\xce", 7)
        message.flags = PERSISTENT
        writer.write(message)
    return TRANSFER + b"".join(writer.parts)


class Receiving:
    """Replica 1 on node 1, which gets a snapshot from replica 2 on node 2."""

    def __init__(self) -> None:
        self.follower = Follower()
        self.pair = Pair(LinkPurpose.BULK)
        self.turns: deque[Callable[[int], None]] = deque()
        self.replica = QuorumReplica(self.follower.group, self.follower.store)
        self.place = ReplicaPlace(self.replica, {REPLICA: 1, LEADER: 2})
        self.reports: list[str] = []
        self.receiver = SnapshotReceiver(
            {NUMBER: self.place}, lambda _: self.pair.channel, self.turns.append, self.reports.append
        )
        self.seen = 0

    def begin(
        self, message: RaftMessage, *, group: int = NUMBER, node: int = 2, transfer: bytes = TRANSFER
    ) -> None:
        body = transfer + bytes((VERSION,)) + b"".join(encode_message(group, message))
        self.receiver.received(node, GroupPayload.BEGIN, body)

    def chunk(self, *items: tuple[int, bytes | int]) -> None:
        self.receiver.received(2, GroupPayload.CHUNK, a_chunk(*items))

    def end(self) -> None:
        self.receiver.received(2, GroupPayload.END, TRANSFER)

    def turn_all(self) -> None:
        while self.turns:
            self.turns.popleft()(0)

    def answers(self) -> list[tuple[int, bytes]]:
        """What was answered since the last call: kinds, and bodies without the transfer."""
        arrived = self.pair.arrived()
        found, self.seen = arrived[self.seen :], len(arrived)
        assert all(body.startswith(TRANSFER) for _, body in found)
        return [(kind, body[COUNT.size :]) for kind, body in found]

    def bodies(self) -> Bodies:
        found = {}
        for position, location in self.follower.group.messages.rows(0):
            message = self.follower.store.reader().read(location)
            assert message is not None
            found[0, position] = message.body
        return found

    def heartbeat(self, *, term: int, sender: int = LEADER) -> None:
        self.receiver.step(self.place, RaftMessage(MessageKind.HEARTBEAT, REPLICA, sender, term))


def pull(count: int, ends: dict[int, int] | None = None) -> tuple[int, bytes]:
    rows = b"".join((level << LEVEL_SHIFT | end).to_bytes(8, "big") for level, end in (ends or {}).items())
    return GroupPayload.PULL, COUNT.pack(count) + len(ends or {}).to_bytes(2, "big") + rows


TAKEN, REFUSED = (GroupPayload.RESULT, b"\1"), (GroupPayload.RESULT, b"\0")


def test_a_snapshot_is_installed_behind_its_messages() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    assert receiving.answers() == [pull(GROUP_CHUNKS_IN_FLIGHT)]
    receiving.chunk((1, b"one"), (2, b"two"))
    receiving.chunk((5, b"five"))
    assert receiving.answers() == []
    receiving.follower.write()
    # As they are synced.
    assert receiving.answers() == [pull(1), pull(1)]
    assert receiving.bodies() == {}
    receiving.end()
    assert receiving.answers() == [TAKEN]
    receiving.follower.write()
    assert receiving.bodies() == {(0, 1): b"one", (0, 2): b"two", (0, 5): b"five"}
    assert receiving.follower.answers == [20]
    assert receiving.receiver.count == 0


def test_what_the_replica_has_is_not_sent_again() -> None:
    receiving = Receiving()
    append(receiving.follower, 1, [b"a", b"b", b"c"], first=0, commit=1)
    receiving.begin(a_snapshot({0: 6}))
    assert receiving.answers() == [pull(GROUP_CHUNKS_IN_FLIGHT, {0: 3})]
    receiving.chunk((1, 2), (4, b"e"))
    receiving.end()
    receiving.follower.write()
    assert receiving.bodies() == {(0, 1): b"b", (0, 2): b"c", (0, 4): b"e"}


def test_what_the_replica_has_is_read_a_piece_in_a_turn() -> None:
    receiving = Receiving()
    append(receiving.follower, 1, [bytes(GROUP_READ_SIZE)] * 3, first=0, commit=1)
    receiving.begin(a_snapshot({0: 6}))
    receiving.chunk((0, 3))
    receiving.end()
    assert len(receiving.turns) == 1
    assert receiving.receiver.count == 1
    receiving.turn_all()
    receiving.follower.write()
    assert len(receiving.bodies()) == 3


def test_all_is_asked_for_if_something_is_missing_that_should_be_there() -> None:
    receiving = Receiving()
    append(receiving.follower, 1, [b"a", None, b"c"], first=0, commit=1)
    receiving.begin(a_snapshot({0: 6}))
    receiving.chunk((0, 3))
    assert receiving.answers() == [pull(GROUP_CHUNKS_IN_FLIGHT, {0: 3}), REFUSED]
    receiving.follower.write()
    receiving.begin(a_snapshot({0: 6}))
    assert receiving.answers() == [pull(GROUP_CHUNKS_IN_FLIGHT)]
    receiving.chunk((0, b"a"), (1, b"b"), (2, b"c"))
    receiving.end()
    receiving.follower.write()
    assert receiving.bodies() == {(0, 0): b"a", (0, 1): b"b", (0, 2): b"c"}


def test_a_snapshot_that_is_not_needed_is_answered_at_once() -> None:
    receiving = Receiving()
    append(receiving.follower, 1, [b"a"], first=0, commit=1)
    receiving.begin(a_snapshot({0: 1}, index=1))
    assert receiving.answers() == [TAKEN]
    assert receiving.follower.answers[-1] == 1


@pytest.mark.parametrize(("group", "node"), [(NUMBER + 1, 2), (NUMBER, 3)])
def test_a_snapshot_for_nobody_is_refused(group: int, node: int) -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}), group=group, node=node)
    assert receiving.answers() == [REFUSED]


def test_a_snapshot_of_a_former_term_is_refused() -> None:
    receiving = Receiving()
    receiving.heartbeat(term=TERM + 1)
    receiving.begin(a_snapshot({0: 6}))
    assert receiving.receiver.count == 0
    assert receiving.answers() == [REFUSED]


def test_appends_of_the_leader_wait_and_those_of_another_one_make_it_void() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    receiving.chunk((1, b"one"))
    receiving.follower.write()
    receiving.answers()
    receiving.follower.sent.clear()
    old = RaftMessage(MessageKind.APPEND, REPLICA, LEADER, TERM)
    receiving.receiver.step(receiving.place, old)
    receiving.follower.write()
    assert receiving.follower.sent == []
    receiving.receiver.step(receiving.place, RaftMessage(MessageKind.APPEND, REPLICA, LEADER, TERM + 1))
    receiving.follower.write()
    assert receiving.answers() == [REFUSED]
    assert receiving.follower.answers == [0]
    # What follows of it is ignored.
    receiving.chunk((2, b"two"))
    receiving.end()
    assert receiving.receiver.count == 0
    assert receiving.bodies() == {}


def test_a_higher_term_makes_it_void() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    receiving.heartbeat(term=TERM)
    assert receiving.receiver.count == 1
    receiving.heartbeat(term=TERM + 1)
    assert receiving.receiver.count == 0


def test_a_replica_that_loses_its_leader_makes_it_void_before_it_leads() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    receiving.chunk((1, b"one"))
    for _ in range(20):
        receiving.replica.tick()
        receiving.receiver.tick()
    assert receiving.receiver.count == 0
    receiving.follower.write()
    assert receiving.replica.leader == 0


def test_a_lost_session_makes_it_void() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    receiving.answers()
    receiving.chunk((1, b"one"))
    receiving.receiver.session_lost(3)
    assert receiving.receiver.count == 1
    receiving.receiver.session_lost(2)
    receiving.follower.write()
    assert receiving.receiver.count == 0
    assert receiving.answers() == []
    append(receiving.follower, 1, [b"a"], first=0, commit=1)
    assert receiving.bodies() == {(0, 0): b"a"}


def test_another_snapshot_takes_the_place_of_the_first() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    receiving.chunk((1, b"one"))
    receiving.begin(a_snapshot({0: 9}, index=21))
    receiving.chunk((7, b"seven"))
    receiving.end()
    receiving.follower.write()
    assert receiving.bodies() == {(0, 7): b"seven"}


def test_a_snapshot_of_a_newer_version_is_refused_and_reported() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}, machine=b"\xff?"))
    receiving.chunk((1, b"one"))
    receiving.end()
    assert receiving.answers()[-1] == REFUSED
    [report] = receiving.reports
    assert report.startswith("the snapshot of group 7 cannot be used: byte 0:")
    receiving.follower.write()
    append(receiving.follower, 1, [b"a"], first=0, commit=1)
    assert receiving.bodies() == {(0, 0): b"a"}


def test_a_group_that_has_ended_is_forgotten() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    receiving.receiver.forget(NUMBER)
    assert receiving.receiver.count == 0


@pytest.mark.parametrize(
    "items", [((6, b"six"),), ((2, b"two"), (2, b"two")), ((3, b"three"), (1, b"one")), ((4, 3),)]
)
def test_positions_rise_and_are_those_of_the_snapshot(items: tuple[tuple[int, bytes | int], ...]) -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    with pytest.raises(PayloadError, match="in a snapshot"):
        receiving.chunk(*items)


def test_chunks_are_those_that_were_asked_for() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 99}))
    for position in range(GROUP_CHUNKS_IN_FLIGHT):
        receiving.chunk((position, b"body"))
    with pytest.raises(PayloadError, match="a chunk of a snapshot that was not asked for"):
        receiving.chunk((50, b"body"))


def test_nothing_comes_behind_the_end() -> None:
    receiving = Receiving()
    append(receiving.follower, 1, [bytes(GROUP_READ_SIZE)] * 3, first=0, commit=1)
    receiving.begin(a_snapshot({0: 6}))
    receiving.chunk((0, 3))
    receiving.end()
    with pytest.raises(PayloadError, match="a chunk of a snapshot that was not asked for"):
        receiving.chunk((5, b"body"))


def test_a_snapshot_has_no_settled_messages() -> None:
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    with pytest.raises(PayloadError, match="a snapshot with a message that was settled"):
        receiving.receiver.received(2, GroupPayload.CHUNK, TRANSFER + RUN.pack(1, 0) + b"\1")


def test_what_begins_is_a_snapshot() -> None:
    with pytest.raises(PayloadError, match="a HEARTBEAT in place of a snapshot"):
        Receiving().begin(RaftMessage(MessageKind.HEARTBEAT, REPLICA, LEADER, TERM))
    with pytest.raises(PayloadError, match="payload of the unknown kind 32"):
        Receiving().receiver.received(2, GroupPayload.MESSAGES, TRANSFER)


def test_the_snapshots_of_one_node_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_receiver, "GROUP_TRANSFERS_MAX", 0)
    receiving = Receiving()
    receiving.begin(a_snapshot({0: 6}))
    assert receiving.answers() == [REFUSED]
