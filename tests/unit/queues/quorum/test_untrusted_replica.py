"""A quorum queue whose only replica is not trusted, until an operator accepts what is missing."""

import pytest
from tests.unit.queues.quorum.followers import Follower
from tests.unit.queues.quorum.test_quorum_queue import got
from tests.unit.queues.samples import Reader, sent
from tests.unit.store.test_group_log import FIRST
from tests.unit.store.test_recovery import segments_that_are_quickly_read as segments_that_are_quickly_read

from warren.errors import NotFound
from warren.queues.queue import REFUSED
from warren.queues.quorum.raft_storage import ALONE


def used() -> Follower:
    """A queue with the messages b, c and d; a was settled, which the store does not know yet."""
    replica = Follower(configuration=ALONE)
    replica.write()
    for letter in "abcd":
        replica.queue.publish(sent(letter * 9, delivery_mode=2), None, 0)
        replica.write()
    replica.queue.acknowledge(got(replica.queue, replica))
    replica.store.commit()
    replica.disk.advance()
    return replica


def damaged(*, of: bytes) -> Follower:
    """That queue after a start that has found a damaged record, with `of` in it."""
    replica = used()
    replica.disk.flip_bit(FIRST, replica.disk.files[FIRST].current.index(of))
    replica.disk.die()
    replica.open()
    assert replica.queue.is_down
    return replica


def recover(replica: Follower) -> None:
    replica.queue.recover()
    replica.write()
    assert replica.queue.is_restored


def ready(replica: Follower) -> list[tuple[bytes, int]]:
    """The ready messages by their first byte, and their attempts."""
    return [(peeked.message.body[:1], peeked.attempts) for peeked in replica.queue.peek(0, 9)]


def test_what_is_settled_in_the_log_is_not_there_though_the_store_does_not_know_it() -> None:
    replica = used()
    replica.disk.die()
    replica.open()
    replica.write()
    assert ready(replica) == [(b"b", 1), (b"c", 1), (b"d", 1)]


def test_a_message_that_is_published_after_a_start_was_never_delivered() -> None:
    replica = used()
    replica.disk.die()
    replica.open()
    replica.write()
    replica.queue.publish(sent("e", delivery_mode=2), None, 0)
    replica.write()
    assert ready(replica)[-1] == (b"e", 0)


def test_a_queue_that_is_down_accepts_and_delivers_nothing() -> None:
    replica = damaged(of=b"ccccccccc")
    assert replica.queue.publish(sent("x", delivery_mode=2), None, 0) == REFUSED
    for use in (replica.queue.fetch(True), replica.queue.inspect(), replica.queue.purge()):
        with pytest.raises(NotFound, match=f"{FIRST}, byte [0-9]+"):
            use.send(None)
    with pytest.raises(NotFound, match="is down until an operator recovers it"):
        replica.queue.check_consumer(Reader())
    assert replica.queue.message_count == 0


def test_a_recovered_queue_has_what_is_readable_and_not_settled_as_delivered_before() -> None:
    replica = damaged(of=b"ccccccccc")
    recover(replica)
    assert ready(replica) == [(b"b", 1), (b"d", 1)]
    # A message that comes then was never delivered.
    replica.queue.publish(sent("e", delivery_mode=2), None, 0)
    replica.write()
    assert ready(replica) == [(b"b", 1), (b"d", 1), (b"e", 0)]


def test_a_message_whose_entry_is_not_readable_is_recovered() -> None:
    replica = used()
    data = replica.disk.files[FIRST].current
    # The first entry behind the last message.
    replica.disk.flip_bit(FIRST, data.index(b"ddddddddd") + 60)
    replica.disk.die()
    replica.open()
    assert replica.queue.is_down
    recover(replica)
    assert [body for body, _ in ready(replica)][-1] == b"d"
    assert all(attempts for _, attempts in ready(replica))


def test_damage_that_was_accepted_does_not_take_a_queue_down_again() -> None:
    replica = damaged(of=b"ccccccccc")
    recover(replica)
    before = ready(replica)
    replica.disk.lose_power()
    replica.open()
    assert not replica.queue.is_down
    assert replica.recovered.damage
    replica.write()
    assert ready(replica) == before


def test_damage_in_the_same_file_that_was_not_accepted_takes_a_queue_down() -> None:
    replica = damaged(of=b"ccccccccc")
    recover(replica)
    replica.disk.flip_bit(FIRST, replica.disk.files[FIRST].current.index(b"ddddddddd"))
    replica.disk.die()
    replica.open()
    assert replica.queue.is_down
    recover(replica)
    assert [body for body, _ in ready(replica)] == [b"b"]
    replica.disk.die()
    replica.open()
    assert not replica.queue.is_down
