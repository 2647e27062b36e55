"""Changes of configurations: majorities overlap, and what a change says survives its encoding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.limits_raft import CHANGE_MEMBERS_MAX
from warren.replication.raft.change import (
    ChangeRefused,
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
    Transition,
    changed,
    decode_change,
    encode_change,
)

VOTER, LEARNER, REMOVED = MemberChangeKind.VOTER, MemberChangeKind.LEARNER, MemberChangeKind.REMOVED
MEMBERS = st.builds(MemberChange, st.sampled_from(MemberChangeKind), st.integers(0, 6))
CHANGES = st.builds(
    ConfigurationChange,
    st.lists(MEMBERS, max_size=6).map(tuple),
    st.sampled_from(Transition),
    st.binary(max_size=9),
)


def change(*members: tuple[MemberChangeKind, int]) -> ConfigurationChange:
    return ConfigurationChange(tuple(MemberChange(kind, replica) for kind, replica in members))


@given(CHANGES)
def test_a_change_is_decoded_as_it_was_encoded(value: ConfigurationChange) -> None:
    assert decode_change(encode_change(value)) == value


def test_the_format_of_a_change_is_the_one_that_its_module_draws() -> None:
    value = ConfigurationChange(
        (MemberChange(VOTER, 3), MemberChange(REMOVED, 0x0102)), Transition.JOINT_EXPLICIT, b"why"
    )
    assert encode_change(value).hex(" ") == (
        "01 02 02 00 00 03 00 00 00 00 00 00 00 02 02 01 00 00 00 00 00 00 77 68 79"
    )
    assert encode_change(ConfigurationChange()) == b""


@pytest.mark.parametrize(
    "payload",
    [
        b"\x01",
        b"\x02\x00\x00\x00",
        b"\x01\x03\x00\x00",
        b"\x01\x00\x01\x00\x00",
        b"\x01\x00\xff\xff",
        b"\x01\x00\x01\x00\x04" + bytes(8),
    ],
)
def test_a_payload_that_is_no_change_is_refused(payload: bytes) -> None:
    with pytest.raises(ChangeRefused, match="the payload of a change"):
        decode_change(payload)


def test_a_change_has_a_bounded_number_of_members() -> None:
    members = tuple(MemberChange(VOTER, replica) for replica in range(CHANGE_MEMBERS_MAX + 1))
    with pytest.raises(ChangeRefused, match="at most 64 members"):
        encode_change(ConfigurationChange(members))


@given(st.lists(CHANGES, max_size=12))
def test_in_every_configuration_each_replica_has_one_role_and_majorities_of_neighbours_overlap(
    changes: list[ConfigurationChange],
) -> None:
    before = Configuration(voters=(1, 2, 3))
    for each in changes:
        try:
            after = changed(before, each)
        except ChangeRefused:
            continue
        voters = {*after.voters, *after.outgoing}
        assert after.voters
        assert not voters & set(after.learners)
        assert set(after.learners_next) <= set(after.outgoing) - set(after.voters)
        assert after.members == tuple(sorted(voters | set(after.learners)))
        for members in (after.voters, after.outgoing, after.learners, after.learners_next):
            assert members == tuple(sorted(set(members)))
        assert overlap(before, after), (before, after)
        before = after


def overlap(one: Configuration, other: Configuration) -> bool:
    """Return whether each quorum of one configuration shares a voter with each quorum of the other."""
    halves = [half for half in (one.voters, one.outgoing) if half]
    others = [half for half in (other.voters, other.outgoing) if half]
    # Majorities of two sets can only miss each other if the sets differ in more than one voter.
    return any(len(set(half) ^ set(each)) <= 1 for half in halves for each in others)


def test_a_replacement_is_one_joint_change_that_keeps_the_number_of_voters() -> None:
    joint = changed(Configuration(voters=(1, 2, 3)), change((VOTER, 4), (REMOVED, 3)))
    assert joint == Configuration(voters=(1, 2, 4), outgoing=(1, 2, 3), auto_leave=True)
    assert changed(joint, ConfigurationChange()) == Configuration(voters=(1, 2, 4))


def test_a_voter_that_becomes_a_learner_votes_until_the_joint_configuration_is_left() -> None:
    joint = changed(Configuration(voters=(1, 2, 3)), change((LEARNER, 3), (VOTER, 4)))
    assert (joint.learners, joint.learners_next) == ((), (3,))
    assert joint.is_voter(3)
    left = changed(joint, ConfigurationChange())
    assert (left.learners, left.is_voter(3)) == ((3,), False)
