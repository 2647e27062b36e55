"""A leader may tell what is committed with the next entries or heartbeat, and not by messages of its own."""

from msgspec.structs import replace
from tests.unit.replication.raft.group import SETTINGS, Group, Member
from tests.unit.replication.raft.test_replica import removal_of

from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import MessageKind, RaftMessage

THREE = Configuration((1, 2, 3))
LATER = replace(SETTINGS, tell_commit_later=True)


class Counted(Group):
    """A group of three that member 1 leads, and the messages that were delivered since."""

    def __init__(self, *, later: bool) -> None:
        Group.__init__(self, THREE, LATER if later else SETTINGS)
        self.delivered: list[RaftMessage] = []
        self.elect(1)
        self[1].send_heartbeats()
        self.settle()
        self.delivered.clear()

    def deliver(self, member: Member) -> bool:
        self.delivered += member.outbox
        return Group.deliver(self, member)


def test_an_entry_is_committed_by_one_append_to_each_member() -> None:
    group = Counted(later=True)
    group[1].propose(b"x", 1)
    group.settle()
    assert group[1].commit_index() == group[1].log.last_index()
    appends = [(each.to, len(each.entries)) for each in group.delivered if each.kind is MessageKind.APPEND]
    assert appends == [(2, 1), (3, 1)]
    assert len(group.delivered) == 4


def test_others_hear_of_the_commit_with_the_next_heartbeat() -> None:
    group = Counted(later=True)
    group[1].propose(b"x", 1)
    group.settle()
    last = group[1].log.last_index()
    assert (group[1].commit_index(), group[2].commit_index()) == (last, last - 1)
    group[1].send_heartbeats()
    group.settle()
    assert group[2].commit_index() == last


def test_others_hear_of_the_commit_with_the_next_entry() -> None:
    group = Counted(later=True)
    group[1].propose(b"x", 1)
    group.settle()
    group[1].propose(b"y", 1)
    group.settle()
    assert group[2].commit_index() == group[1].commit_index() - 1


def test_without_that_others_hear_of_it_at_once() -> None:
    group = Counted(later=False)
    group[1].propose(b"x", 1)
    group.settle()
    assert group[2].commit_index() == group[1].commit_index() == group[1].log.last_index()


def test_a_member_that_is_removed_hears_of_it() -> None:
    """Nothing is sent to it later, and without that it would ask for votes."""
    group = Counted(later=True)
    group[1].propose_change(removal_of(3))
    group.settle()
    assert group[1].configuration == Configuration((1, 2))
    assert group[3].configuration == Configuration((1, 2))
