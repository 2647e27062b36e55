"""Decisions of a quorum: the index that is committed, and the result of a vote.

A configuration is joint while two majorities must agree: that of the voters, and that of the voters that
are leaving. A majority without members agrees with everything, so that a configuration that is not joint
is a joint one whose second majority is empty.
"""

from collections.abc import Collection
from enum import Enum

# What a majority without members has committed; indexes are u64.
EVERYTHING = (1 << 64) - 1


class VoteResult(Enum):
    """Whether a vote is decided."""

    PENDING = "pending"
    LOST = "lost"
    WON = "won"


def majority_index(matches: Collection[int]) -> int:
    """Return the highest index that a majority has, by the index that each voter has, 0 if unknown."""
    if not matches:
        return EVERYTHING
    # With 3 voters the second highest, with 4 the third: those above it alone are no majority.
    return sorted(matches)[(len(matches) - 1) // 2]


def joint_index(matches: Collection[int], outgoing: Collection[int]) -> int:
    """Return the highest index that both majorities have."""
    return min(majority_index(matches), majority_index(outgoing))


def majority_vote(votes: Collection[bool | None]) -> VoteResult:
    """Return the result of a vote, by the vote of each voter, None if it has not voted."""
    needed = len(votes) // 2 + 1 if votes else 0
    granted = sum(vote is True for vote in votes)
    if granted >= needed:
        return VoteResult.WON
    return VoteResult.LOST if granted + sum(vote is None for vote in votes) < needed else VoteResult.PENDING


def joint_vote(votes: Collection[bool | None], outgoing: Collection[bool | None]) -> VoteResult:
    """Return the result of a vote in which both majorities must be won; one that is lost decides."""
    results = (majority_vote(votes), majority_vote(outgoing))
    if VoteResult.LOST in results:
        return VoteResult.LOST
    return VoteResult.PENDING if VoteResult.PENDING in results else VoteResult.WON
