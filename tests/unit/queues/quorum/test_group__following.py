"""A replica that follows: entries of a leader that come with their messages."""

import pytest
from tests.unit.queues.quorum.followers import LEADER, NUMBER, REPLICA, TERM, Follower, message
from tests.unit.queues.quorum.test_kept_dead_letters import KeepingPlace

from warren.model.message_position import RANK_SHIFT
from warren.queues.quorum.batch_codec import Enqueue, Enqueuer, QuorumBatch, encode
from warren.queues.quorum.raft_storage import NO_MEMBERS, QuorumPayload
from warren.queues.quorum.replica_messages import begin_again
from warren.replication.raft.raft_messages import Entry, MessageKind, RaftMessage
from warren.store.group_record import PositionRun

NEW_REPLICA = 3


def append(follower: Follower, index: int, bodies: list[bytes | None], *, first: int, commit: int) -> None:
    """Have the leader append an entry with messages from position `first` on; None is one that is settled."""
    batch = QuorumBatch(
        runs=(PositionRun(0, first, len(bodies)),),
        enqueued=(Enqueue(Enqueuer(LEADER, 1), first + 1, len(bodies)),),
    )
    messages = [None if body is None else message(body) for body in bodies]
    payload = QuorumPayload(batch.runs, encode(batch), messages)
    entry = Entry(TERM, index, payload=payload, size=100)
    log_term = TERM if index > 1 else 0
    follower.group.step(
        RaftMessage(
            MessageKind.APPEND, REPLICA, LEADER, TERM, index - 1, log_term, entries=(entry,), commit=commit
        )
    )
    follower.write()


def test_an_entry_that_is_synced_is_answered_and_applied_when_it_is_committed() -> None:
    follower = Follower()
    append(follower, 1, [b"a", b"bc"], first=0, commit=0)
    assert follower.answers == [1]
    assert list(follower.group.messages.rows(0)) == []
    append(follower, 2, [b"d"], first=2, commit=1)
    assert [position for position, _ in follower.group.messages.rows(0)] == [0, 1]
    assert follower.group.found(0).byte_count == 3
    append(follower, 3, [b"e"], first=3, commit=3)
    assert follower.group.found(0).byte_count == 5


def test_an_entry_may_come_without_messages_that_are_settled() -> None:
    follower = Follower()
    append(follower, 1, [b"a", None, b"c"], first=0, commit=1)
    assert [position for position, _ in follower.group.messages.rows(0)] == [0, 2]
    follower.disk.lose_power()
    follower.open()
    assert follower.log.untrusted == ""
    follower.write()
    assert [position for position, _ in follower.group.messages.rows(0)] == [0, 2]
    assert follower.group.found(0).byte_count == 2


def test_a_replica_that_begins_again_has_nothing_and_releases_what_it_had() -> None:
    follower = Follower()
    append(follower, 1, [b"a", b"b"], first=0, commit=1)
    append(follower, 2, [b"c"], first=2, commit=1)
    follower.queue.begin_again(NEW_REPLICA)
    follower.write()
    assert sum(segment.live for segment in follower.store.segments.values()) == 0
    log = follower.log
    assert (log.replica, log.hard.term, log.last, log.hard.commit, log.untrusted) == (
        NEW_REPLICA,
        0,
        0,
        0,
        "",
    )
    # Positions in the store are never used again.
    assert log.stored(0, 0) == 3
    follower.disk.lose_power()
    follower.open(replica=NEW_REPLICA)
    assert (follower.log.replica, follower.log.untrusted, follower.log.last) == (NEW_REPLICA, "", 0)
    assert list(follower.group.messages.rows(0)) == []


@pytest.mark.parametrize("level", [0, 4])
def test_a_message_has_one_lasting_place_wherever_the_store_of_a_replica_has_it(level: int) -> None:
    queue = Follower().queue
    other = Follower()
    append(other, 1, [b"a", b"b", b"c"], first=0, commit=1)
    other.queue.begin_again(NEW_REPLICA)
    other.write()
    other.disk.lose_power()
    other.open(replica=NEW_REPLICA)
    rank = 9 - level << RANK_SHIFT
    place = other.queue.place_here(rank + 2)
    assert place == rank + (5 if level == 0 else 2)
    assert other.queue.lasting_place(place) == rank + 2
    assert (queue.place_here(rank + 2), queue.lasting_place(rank + 2)) == (rank + 2, rank + 2)


@pytest.mark.parametrize("commit", [0, 1, 2])
def test_a_replica_of_a_deleted_queue_releases_what_it_had(commit: int) -> None:
    follower = Follower(host=KeepingPlace().vhost)
    append(follower, 1, [b"a", b"b"], first=0, commit=min(commit, 1))
    append(follower, 2, [b"c"], first=2, commit=commit)
    follower.queue.delete()
    follower.write()
    assert sum(segment.live for segment in follower.store.segments.values()) == 0


def test_a_replica_that_has_left_while_its_node_was_down_releases_what_it_had() -> None:
    follower = Follower()
    append(follower, 1, [b"a", b"b"], first=0, commit=1)
    append(follower, 2, [b"c"], first=2, commit=1)
    follower.disk.lose_power()
    follower.recover()
    begin_again(follower.log, follower.recovered.queues[NUMBER], 0, NO_MEMBERS)
    follower.write()
    assert sum(segment.live for segment in follower.store.segments.values()) == 0
    follower.open(replica=NEW_REPLICA)
    follower.write()
    assert (follower.log.replica, follower.log.untrusted, follower.log.stored(0, 0)) == (NEW_REPLICA, "", 3)
