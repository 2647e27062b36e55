"""Replicas agree on a log with asynchronous storage."""

import pytest
from tests.unit.replication.raft.group import SETTINGS, Group

from warren.replication.raft.change import Configuration
from warren.replication.raft.ready import Role


@pytest.mark.parametrize("voters", [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4, 5)])
def test_what_a_leader_proposes_is_applied_by_all(voters: tuple[int, ...]) -> None:
    group = Group(Configuration(voters))
    group.elect(1)
    assert group[1].propose(b"hello", 5) == 12
    group.settle()
    for member in group.members.values():
        assert [(entry.index, entry.payload) for entry in member.applied] == [(11, b""), (12, b"hello")]
        assert member.replica.hard_state.commit == 12


def test_a_follower_refuses_proposals() -> None:
    group = Group(Configuration((1, 2, 3)), SETTINGS)
    group.elect(1)
    assert group[2].propose(b"hello", 5) == 0
    assert group[2].soft_state.role is Role.FOLLOWER
