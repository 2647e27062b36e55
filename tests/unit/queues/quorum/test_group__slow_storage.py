"""A leader whose disk takes nothing hands over to a member that has everything."""

from tests.unit.queues.quorum.followers import LEADER, REPLICA, Follower, message

from warren.replication.raft.raft_messages import MessageKind, RaftMessage

# The answer of a member that agrees, by what it is asked.
ANSWERS = {
    MessageKind.PRE_VOTE: MessageKind.PRE_VOTE_RESPONSE,
    MessageKind.VOTE: MessageKind.VOTE_RESPONSE,
    MessageKind.APPEND: MessageKind.APPEND_RESPONSE,
    MessageKind.HEARTBEAT: MessageKind.HEARTBEAT_RESPONSE,
}
TICKS_MAX = 40


def answer(one: Follower) -> list[MessageKind]:
    """Have the other member agree to everything that was sent to it; returns what that was."""
    sent, one.sent[:] = [*one.sent], []
    for each in sent:
        if each.kind in ANSWERS:
            index = each.index + len(each.entries)
            one.group.step(RaftMessage(ANSWERS[each.kind], REPLICA, LEADER, each.term, index=index))
    return [each.kind for each in sent]


def leading() -> Follower:
    """A queue of two members, which leads."""
    one = Follower()
    for _ in range(TICKS_MAX):
        one.group.tick()
        one.write()
        answer(one)
        if one.queue.is_restored:
            return one
    raise AssertionError("it does not lead")


def ticked(one: Follower, count: int, *, writes: bool) -> list[MessageKind]:
    """What is sent during some ticks, of which all is answered."""
    kinds: list[MessageKind] = []
    for _ in range(count):
        one.group.tick()
        if writes:
            one.write()
        kinds += answer(one)
    return kinds


def test_a_leader_hands_over_if_its_disk_takes_nothing_of_what_was_published() -> None:
    one = leading()
    one.queue.publish(message(b"a"), None, 0)
    assert MessageKind.TIMEOUT_NOW not in ticked(one, 9, writes=False)
    assert MessageKind.TIMEOUT_NOW in ticked(one, 1, writes=False)


def test_a_leader_goes_on_while_its_disk_takes_something() -> None:
    one = leading()
    for _ in range(4):
        one.queue.publish(message(b"a"), None, 0)
        assert MessageKind.TIMEOUT_NOW not in ticked(one, 9, writes=False)
        one.write()
        answer(one)
    assert one.queue.message_count == 4


def test_a_leader_that_has_nothing_to_write_goes_on() -> None:
    assert MessageKind.TIMEOUT_NOW not in ticked(leading(), TICKS_MAX, writes=False)
