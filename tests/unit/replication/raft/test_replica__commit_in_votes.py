"""Votes tell what is committed, so that a committed change of the members is known to whoever needs it."""

from msgspec.structs import replace
from tests.unit.replication.raft.group import SETTINGS, Group

from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)
from warren.replication.raft.raft_messages import HardState, MessageKind, RaftMessage
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Role

TWO = Configuration((1, 2))
DEMOTION = ConfigurationChange((MemberChange(MemberChangeKind.LEARNER, 2),))


def forgotten(settings: RaftSettings = SETTINGS) -> Group:
    """A group of two in which 2 became a learner, which 1 has forgotten, and 2 has more in its log."""
    group = Group(TWO, settings)
    group.elect(1)
    group[1].propose_change(DEMOTION)
    group.settle()
    assert group[2].configuration == Configuration((1,), learners=(2,))
    leader = group.members[1]
    # 2 writes an entry that a power cut takes from 1, with the knowledge of what is committed.
    group[1].propose(b"x", 1)
    leader.handle_ready()
    group.deliver(leader)
    group.settle([2])
    leader.storage.configuration = TWO
    leader.storage.hard_state = HardState(term=1, vote=1, commit=11)
    leader.restart()
    assert group[2].log.last_index() > group[1].log.last_index()
    return group


def test_a_refused_candidate_learns_that_who_refuses_is_no_voter_any_more() -> None:
    group = forgotten()
    group[1].campaign()
    group.settle()
    assert group[1].soft_state.role is Role.FOLLOWER
    assert group[1].configuration == Configuration((1,), learners=(2,))
    group.elect(1)
    assert group[2].log.last_id() == group[1].log.last_id()


def test_without_it_the_group_would_have_no_leader_again() -> None:
    group = forgotten(replace(SETTINGS, commit_in_votes=False))
    for _ in range(3):
        group[1].campaign()
        group[2].campaign()
        group.settle()
    assert group[1].soft_state.role is not Role.LEADER
    assert group[1].configuration == TWO


def promoted() -> Group:
    """A group in which 2 became a voter, which only 2 knows, and 1 has more in its log."""
    group = Group(Configuration((1,), learners=(2,)))
    group.elect(1)
    group[1].propose_change(ConfigurationChange((MemberChange(MemberChangeKind.VOTER, 2),)))
    group.settle()
    assert group[2].configuration == TWO
    return group


def test_who_is_asked_for_a_vote_learns_what_the_candidate_knows() -> None:
    group = promoted()
    other = group.members[1]
    other.storage.configuration = Configuration((1,), learners=(2,))
    other.storage.hard_state = HardState(term=1, vote=1, commit=11)
    other.restart()
    assert group[1].commit_index() == 11
    group[2].campaign()
    group.settle()
    assert group[1].configuration == TWO


def test_an_election_ends_when_a_request_tells_of_a_committed_change() -> None:
    group = Group(Configuration((1, 2, 3)))
    group.elect(1)
    # 2 has the change, and does not know that it is committed.
    group[1].propose_change(ConfigurationChange((MemberChange(MemberChangeKind.REMOVED, 3),)))
    group.isolate(3)
    leader = group.members[1]
    leader.handle_ready()
    leader.write()
    group.deliver(leader)
    two = group.members[2]
    two.handle_ready()
    two.write()
    two.outbox.clear()
    group[2].campaign()
    assert group[2].soft_state.role is Role.CANDIDATE
    two.handle_ready()
    request = RaftMessage(MessageKind.VOTE, 2, 1, 2, 12, 1, commit=12, hint=1)
    group[2].step(request)
    assert (group[2].soft_state.role, group[2].commit_index()) == (Role.FOLLOWER, 12)


def test_a_commit_index_is_believed_only_for_an_entry_that_is_in_the_own_log() -> None:
    group = Group(Configuration((1, 2, 3)))
    group.elect(1)
    before = group[2].commit_index()
    for index, term in ((before + 1, 1), (before, 7), (before, 0)):
        group[2].step(RaftMessage(MessageKind.VOTE, 2, 3, 5, 1, 1, commit=index, hint=term))
        assert group[2].commit_index() == before


def test_votes_of_a_group_that_does_not_share_it_tell_nothing() -> None:
    group = Group(Configuration((1, 2, 3)), replace(SETTINGS, commit_in_votes=False))
    group[1].campaign()
    member = group.members[1]
    member.handle_ready()
    member.write()
    assert {(message.commit, message.hint) for message in member.outbox} == {(0, 0)}
