"""The replica of a quorum queue, as its traffic sees it."""

from collections.abc import Callable
from typing import NoReturn

import pytest
from tests.sim.group_nodes import FIRST_GROUP, REPLICA, GroupNodes, Member
from tests.unit.queues.quorum.followers import Follower, message
from tests.unit.queues.quorum.test_group__following import append
from tests.unit.queues.samples import Host

from warren.cluster.groups.quorum_replica import QuorumReplica
from warren.metadata.incarnation import Incarnation
from warren.queues.queue import Queue
from warren.queues.quorum import group
from warren.queues.quorum.group import GroupMembership, QuorumGroup
from warren.queues.quorum.raft_storage import QuorumPayload
from warren.replication.raft.raft_messages import Entry, MessageKind, RaftMessage
from warren.store.group_record import PositionRun


def led() -> tuple[GroupNodes, Member, QuorumReplica]:
    """A group of three whose members have everything, and the replica that leads."""
    nodes = GroupNodes(1, 3, 1)
    nodes.settle()
    nodes.publish(FIRST_GROUP)
    nodes.run_for(1_000)
    leader = nodes.leader(FIRST_GROUP)
    return nodes, leader, QuorumReplica(leader.group, leader.node.store)


def test_a_leader_is_quiet_when_all_members_have_and_know_everything() -> None:
    nodes, leader, replica = led()
    commit = leader.group.driver.commit
    assert replica.quiet_commit() == commit
    others = [node.members[FIRST_GROUP] for node in nodes.running() if node is not leader.node]
    for member in others:
        follower = QuorumReplica(member.group, member.node.store)
        assert follower.quiet_commit() == 0
        assert follower.agrees(replica.term, commit)
        assert not follower.agrees(replica.term + 1, commit)
        assert not follower.agrees(replica.term, commit - 1)
    assert not replica.agrees(replica.term, commit)
    progress = leader.group.driver.replica.progress[REPLICA + others[0].node.id]
    progress.sent_commit -= 1
    assert replica.quiet_commit() == 0
    progress.sent_commit += 1
    progress.match -= 1
    assert replica.quiet_commit() == 0


def test_a_leader_is_not_quiet_while_something_is_proposed_or_it_hands_over() -> None:
    nodes, leader, replica = led()
    leader.publish(99, 0)
    assert replica.quiet_commit() == 0
    nodes.run_for(1_000)
    assert replica.quiet_commit() > 0
    other = next(node for node in nodes.running() if node is not leader.node)
    nodes.crash(other, is_power_lost=False)
    nodes.publish(FIRST_GROUP)
    nodes.run_for(1_000)
    # One member lacks the last entry, which is committed.
    assert leader.group.driver.applied == leader.group.driver.replica.log.last_index()
    assert replica.quiet_commit() == 0
    leader.group.driver.replica.transfer(REPLICA + other.id)
    assert leader.group.driver.replica.transfer_to == REPLICA + other.id
    assert replica.quiet_commit() == 0


def test_messages_of_an_entry_are_those_that_it_brings_or_those_of_the_log() -> None:
    follower = Follower()
    replica = QuorumReplica(follower.group, follower.store)
    assert replica.contents(Entry(1, 1)) == ()
    payload = QuorumPayload((PositionRun(0, 0, 1),), b"", [None])
    assert replica.contents(Entry(5, 1, payload=payload, size=1)) == [None]
    append(follower, 1, [b"a", None], first=0, commit=1)
    in_log = QuorumPayload((PositionRun(0, 0, 2),), b"")
    found = replica.contents(Entry(5, 1, payload=in_log, size=1))
    assert found is not None
    location, settled = found
    assert isinstance(location, int)
    message = replica.read(location)
    assert message is not None
    assert (message.body, settled) == (b"a", 0)
    assert replica.contents(Entry(4, 1, payload=in_log, size=1)) is None
    assert replica.contents(Entry(5, 2, payload=in_log, size=1)) is None


def test_messages_of_an_entry_are_there_while_a_member_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "GROUP_COMPACTED_ENTRIES", 2)
    monkeypatch.setattr(group, "GROUP_COMPACTED_SIZE_ALONE", 0)
    nodes, leader, replica = led()
    other = next(node for node in nodes.running() if node is not leader.node)
    nodes.crash(other, is_power_lost=False)
    for _ in range(6):
        nodes.publish(FIRST_GROUP)
        nodes.run_for(100)
    core = leader.group.driver.replica
    lacking = core.progress[REPLICA + other.id].match + 1
    assert lacking < leader.group.log.first
    entries = core.log.entries(lacking, 1)
    assert isinstance(entries, list)
    found = replica.contents(entries[0])
    assert found is not None
    [location] = found
    assert isinstance(location, int)
    message = replica.read(location)
    assert message is not None
    assert message.body == b"2."
    # As it is sent when the member is back, without a snapshot.
    other.start()
    nodes.run_for(4_000)
    assert other.members[FIRST_GROUP].group.driver.applied == leader.group.driver.applied


def test_live_messages_are_found_by_position() -> None:
    follower = Follower()
    replica = QuorumReplica(follower.group, follower.store)
    append(follower, 1, [b"a", None, b"c"], first=0, commit=1)
    assert replica.ends() == {0: 3}
    rows = replica.live(0, 0, 10)
    assert [position for position, _ in rows] == [0, 2]
    assert replica.live(0, 1, 1) == rows[1:]
    assert replica.live(3, 0, 10) == []
    assert replica.location(0, 2) == rows[1][1]
    assert replica.location(0, 1) == replica.location(0, 9) == replica.location(3, 0) == 0


def test_what_was_received_is_told_when_it_is_synced() -> None:
    follower = Follower()
    replica = QuorumReplica(follower.group, follower.store)
    synced: list[int] = []
    replica.when_received(lambda: synced.append(1))
    replica.when_received(lambda: synced.append(2))
    assert synced == []
    follower.write()
    assert synced == [1, 2]


class NotedHost(Host):
    """A queue host that notes which queue has failed, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[tuple[Queue, str]] = []

    def end_failed(self, queue: Queue, error: Exception) -> None:
        self.failures.append((queue, str(error)))


class BrokenGroup(QuorumGroup):
    """A group that raises an error whatever is done with it."""

    def _break(self, *_: object, **__: object) -> NoReturn:
        raise IndexError("planted")

    step = tick = snapshot_sent = entry_contents = receive = discard_received = _break
    is_open = log = property(_break)  # type: ignore[assignment]


HEARTBEAT = RaftMessage(MessageKind.HEARTBEAT, REPLICA, 2, 5)
ENTRY = Entry(1, 1, payload=QuorumPayload((PositionRun(0, 0, 1),), b"", None), size=1)
# What is done with a replica, and what comes of it when the group is broken.
CALLS: dict[str, tuple[Callable[[QuorumReplica], object], object]] = {
    "step": (lambda replica: replica.step(HEARTBEAT), None),
    "tick": (lambda replica: replica.tick(), None),
    "snapshot_sent": (lambda replica: replica.snapshot_sent(2, is_done=True), None),
    "quiet_commit": (lambda replica: replica.quiet_commit(), 0),
    "contents": (lambda replica: replica.contents(ENTRY), None),
    "live": (lambda replica: replica.live(0, 0, 10), None),
    "receive": (lambda replica: replica.receive(message(b"a"), 0, 0), None),
    "discard_received": (lambda replica: replica.discard_received(), None),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_the_group_ends_its_queue_and_not_who_has_called(call: str) -> None:
    host = NotedHost()
    follower = Follower(host=host)
    membership = GroupMembership(send=lambda *_: None)
    broken = BrokenGroup(
        follower.log, follower.store, follower.queue, Incarnation(1, 2), membership=membership
    )
    do, answer = CALLS[call]
    assert do(QuorumReplica(broken, follower.store)) == answer
    assert host.failures == [(follower.queue, "planted")]
