"""A quorum decides an index and a vote."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from warren.replication.raft.quorum import (
    EVERYTHING,
    VoteResult,
    joint_index,
    joint_vote,
    majority_index,
    majority_vote,
)

INDEXES = st.lists(st.integers(0, EVERYTHING), max_size=8)


@given(INDEXES)
def test_a_majority_has_the_index_and_no_higher_one(matches: list[int]) -> None:
    index = majority_index(matches)
    assert 2 * sum(match >= index for match in matches) > len(matches) or not matches
    assert 2 * sum(match > index for match in matches) <= len(matches)


@given(INDEXES, INDEXES)
def test_a_joint_index_is_had_by_both_majorities(matches: list[int], outgoing: list[int]) -> None:
    assert joint_index(matches, outgoing) == min(majority_index(matches), majority_index(outgoing))
    assert joint_index(matches, []) == majority_index(matches)


def test_a_majority_without_members_has_everything_and_has_granted_every_vote() -> None:
    assert majority_index([]) == EVERYTHING
    assert majority_vote([]) is VoteResult.WON


def test_a_vote_is_won_or_lost_as_soon_as_the_missing_votes_cannot_change_it() -> None:
    for count in range(1, 7):
        for votes in product((True, False, None), repeat=count):
            missing = votes.count(None)
            results = {
                2 * (votes.count(True) + granted) > count
                for granted in range(missing + 1)
            }  # fmt: skip
            expected = VoteResult.PENDING
            if len(results) == 1:
                expected = VoteResult.WON if results.pop() else VoteResult.LOST
            assert majority_vote(votes) is expected, votes


def test_a_joint_vote_needs_both_majorities() -> None:
    won, lost, pending = [True], [False], [None]
    assert joint_vote(won, won) is VoteResult.WON
    assert joint_vote(won, pending) is joint_vote(pending, won) is VoteResult.PENDING
    assert joint_vote(pending, lost) is joint_vote(lost, pending) is joint_vote(won, lost) is VoteResult.LOST
