"""When a snapshot replaces the entries of a quorum queue."""

from collections.abc import Iterator

from tests.unit.queues.quorum.followers import LEADER, REPLICA, Follower
from tests.unit.queues.quorum.test_quorum_queue import got
from tests.unit.queues.samples import sent

from warren.limits_raft import GROUP_COMPACTED_ENTRIES, GROUP_COMPACTED_SIZE_ALONE
from warren.queues.quorum.raft_storage import ALONE
from warren.replication.raft.change import Configuration

WITH_LEARNER = Configuration(voters=(REPLICA,), learners=(LEADER,))
# More than what one entry with one message takes.
ENTRY_SIZE_MAX = 200


def leading(configuration: Configuration = ALONE) -> Follower:
    """A replica that leads."""
    member = Follower(configuration=configuration)
    member.lead()
    return member


def published(member: Follower, count: int) -> Iterator[int]:
    """Publish `count` messages, each in an entry of its own; the index of the snapshot after each of them."""
    for number in range(count):
        member.queue.publish(sent(f"{number}", delivery_mode=2), None, 0)
        member.write()
        yield member.log.snapshot.index


def test_the_only_replica_keeps_few_entries() -> None:
    member = leading()
    for _ in published(member, 300):
        assert member.log.tail_size < GROUP_COMPACTED_SIZE_ALONE + ENTRY_SIZE_MAX
    member.open()
    member.lead()
    assert [got(member.queue, member).message.body for _ in range(300)][-1] == b"299"


def test_the_only_replica_has_no_applied_entry_in_memory() -> None:
    member = leading()
    for snapshot in published(member, 3):
        assert member.log.first == member.log.last + 1 > snapshot + 1
    found = member.group.driver.replica.log.take_snapshot()
    assert found is not None
    assert found.index == member.log.last
    member.write()
    member.open()
    member.lead()
    assert [got(member.queue, member).message.body for _ in range(3)] == [b"0", b"1", b"2"]


def test_a_large_machine_is_not_written_again_before_the_entries_have_its_size() -> None:
    member = leading()
    for number in range(4_000):
        member.queue.publish(sent(f"{number}", delivery_mode=2), None, 0)
    member.write()
    deliveries = [got(member.queue, member) for _ in range(4_000)]
    # A gap behind each of them, so that each is a run of its own.
    for delivery in deliveries[::2]:
        member.queue.requeue(delivery)
    member.write()
    before = member.log.snapshot.index
    size = len(member.group.machine.encode())
    assert size > 3 * GROUP_COMPACTED_SIZE_ALONE
    snapshots = {index for index in published(member, size // 50) if index > before}
    assert 1 <= len(snapshots) <= 2, f"{len(snapshots)} snapshots of {size} bytes"


def test_a_replica_with_another_member_keeps_entries_that_it_may_lack() -> None:
    member = leading(WITH_LEARNER)
    first = member.log.snapshot.index
    assert set(published(member, GROUP_COMPACTED_ENTRIES // 2)) == {first}
    assert member.log.tail_size > 2 * GROUP_COMPACTED_SIZE_ALONE
    assert member.log.first == first + 1
