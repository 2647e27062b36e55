"""A leader hands over: before its own removal, when its storage is slow, and before it stops."""

import pytest
from msgspec.structs import replace
from tests.unit.replication.raft.group import SETTINGS, Group

from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)
from warren.replication.raft.raft_messages import NOBODY
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Role

SLOW = replace(SETTINGS, slow_storage_ticks=4)
REMOVED, VOTER, LEARNER = MemberChangeKind.REMOVED, MemberChangeKind.VOTER, MemberChangeKind.LEARNER


def group_of(voters: tuple[int, ...] = (1, 2, 3), settings: RaftSettings = SETTINGS) -> Group:
    """Return a group that 1 leads in term 1, with index 11 committed everywhere."""
    group = Group(Configuration(voters), settings)
    group.elect(1)
    return group


def change(*members: tuple[MemberChangeKind, int]) -> ConfigurationChange:
    return ConfigurationChange(tuple(MemberChange(*member) for member in members))


def leader_of(group: Group) -> int:
    [leader] = [each for each in group.members if group[each].soft_state.role is Role.LEADER]
    return leader


@pytest.mark.parametrize("kind", [REMOVED, LEARNER])
def test_a_leader_that_would_step_down_hands_over_and_the_next_one_proposes_the_change(
    kind: MemberChangeKind,
) -> None:
    group = group_of()
    assert group[1].propose_change(change((kind, 1))) == 0
    assert group[1].log.last_index() == 11
    group.settle()
    assert leader_of(group) == 2
    assert group[2].propose_change(change((kind, 1)))
    group.settle()
    assert leader_of(group) == 2
    assert group[2].configuration.voters == (2, 3)


def test_a_leader_that_is_replaced_hands_over_to_a_voter_that_stays() -> None:
    group = group_of()
    group.add(4)
    replacement = change((REMOVED, 1), (REMOVED, 2), (VOTER, 4))
    assert group[1].propose_change(replacement) == 0
    group.settle()
    assert leader_of(group) == 3


def test_a_change_after_which_no_voter_stays_one_is_proposed_all_the_same() -> None:
    group = group_of((1,))
    assert group[1].propose_change(change((REMOVED, 1), (VOTER, 2))) == 12
    group.settle()
    assert group[1].configuration == Configuration(voters=(2,), outgoing=(1,), auto_leave=True)


def test_a_removal_that_is_refused_is_no_reason_to_hand_over() -> None:
    group = group_of((1,))
    assert group[1].propose_change(change((REMOVED, 1))) == 12
    assert group[1].transfer_to == NOBODY


def test_a_joint_configuration_is_left_by_a_leader_that_stays() -> None:
    group = Group(Configuration(voters=(2, 3), outgoing=(1, 2, 3), auto_leave=True))
    group[1].campaign()
    group.settle()
    assert leader_of(group) == 2
    assert group[2].configuration == Configuration(voters=(2, 3))
    assert group[1].log.last_index() == 13, "the empty entries of two leaders, and one change"


def test_who_hands_over_chooses_a_voter_that_answers_and_has_most_of_the_log() -> None:
    group = group_of((1, 2, 3, 4))
    group.isolate(2)
    group[1].propose(b"a", 1)
    group.settle()
    assert group[1].hand_over() == 3
    assert group[1].hand_over() == 3, "it goes on"
    group.settle()
    assert leader_of(group) == 3
    assert group[1].hand_over() == NOBODY, "it leads no more"


def test_nobody_hands_over_to_a_learner_or_to_who_does_not_answer() -> None:
    group = Group(Configuration((1, 2, 3), learners=(4,)), SETTINGS)
    group.isolate(2)
    group.elect(1)
    group.isolate(3)
    assert group[1].propose(b"a", 1) == 12
    group.settle()
    assert group[1].hand_over() == 3
    assert Group(Configuration((1, 2)), SETTINGS)[1].hand_over() == NOBODY, "it does not lead"


def test_a_leader_that_nobody_answers_hands_over_to_nobody() -> None:
    group = Group(Configuration((1, 2, 3)), replace(SETTINGS, check_quorum=True))
    group.elect(1)
    for replica in (2, 3):
        group.isolate(replica)
    for _ in range(3):
        group[1].tick()
    assert group[1].soft_state.role is Role.LEADER
    assert group[1].hand_over() == NOBODY


def test_the_only_voter_hands_over_to_nobody() -> None:
    assert group_of((1,))[1].hand_over() == NOBODY


def test_a_leader_whose_storage_lacks_what_was_committed_long_ago_hands_over() -> None:
    group = group_of(settings=SLOW)
    stalled = group.members[1]
    assert group[1].propose(b"a", 1) == 12
    stalled.handle_ready()
    while group.deliver(stalled):
        group.settle([2, 3])
    assert group[1].hard_state.commit == 12
    assert group[1].log.applied == 11
    for _ in range(4):
        group[1].tick()
    assert group[1].transfer_to == NOBODY, "the first tick notes what is to be written"
    group[1].tick()
    assert group[1].transfer_to == 2
    stalled.handle_ready()
    group.deliver(stalled)
    group.settle([2, 3])
    assert group[2].soft_state.role is Role.LEADER


def test_a_leader_whose_storage_follows_does_not_hand_over() -> None:
    group = group_of(settings=SLOW)
    for _ in range(20):
        group[1].propose(b"a", 1)
        group.members[1].handle_ready()
        group.deliver(group.members[1])
        group.settle([2, 3])
        group[1].tick()
        group.settle()
    assert leader_of(group) == 1
