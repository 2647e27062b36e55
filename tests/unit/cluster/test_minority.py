"""Whether a node is in the minority, by whom it hears and who leads."""

import pytest

from warren.cluster.cluster_member import TICK_MS
from warren.cluster.minority import NOTICED_MS, Minority
from warren.limits_cluster import CLUSTER_LEADERLESS_MS, CLUSTER_MINORITY_MS
from warren.replication.raft.change import Configuration

# The time in ticks from when a silence is noticed.
MINORITY_TICKS = -(-(CLUSTER_MINORITY_MS - NOTICED_MS) // TICK_MS)
LEADERLESS_TICKS = CLUSTER_LEADERLESS_MS // TICK_MS


class Contact:
    """Node 1 of a group, which hears all members, and is led by number 2."""

    def __init__(self, *voters: int, outgoing: tuple[int, ...] = ()) -> None:
        self.configuration = Configuration(voters, outgoing)
        self.heard = {1, *voters, *outgoing}
        self.leader = 2
        self.minority = Minority(
            lambda: self.configuration, lambda: self.leader, lambda node: node in self.heard
        )
        self.tick()

    def tick(self, count: int = 1) -> bool:
        """Let ticks pass; return whether the node is in the minority then."""
        for _ in range(count):
            self.minority.tick(TICK_MS)
        return self.minority.is_in_minority


@pytest.mark.parametrize(
    ("voters", "heard", "is_in_minority"),
    [
        ((1, 2), {1}, True),
        ((1, 2, 3), {1}, True),
        ((1, 2, 3), {1, 2}, False),
        ((1, 2, 3, 4), {1, 2}, True),
        ((1, 2, 3, 4, 5), {1, 2}, True),
        ((1, 2, 3, 4, 5), {1, 2, 5}, False),
        # A member that does not vote does not count.
        ((2, 3, 4), {1, 2}, True),
        ((2, 3, 4), {1, 2, 3}, False),
        ((1,), {1}, False),
    ],
)
def test_a_node_that_reaches_no_majority_of_the_voters_is_in_the_minority(
    voters: tuple[int, ...], heard: set[int], is_in_minority: bool
) -> None:
    contact = Contact(*voters)
    contact.heard = heard
    contact.leader = 2 if 2 in heard else 1
    assert not contact.tick(MINORITY_TICKS - 1)
    assert contact.tick() == is_in_minority


def test_both_majorities_must_be_reached_while_there_are_two() -> None:
    contact = Contact(1, 2, outgoing=(2, 3, 4))
    contact.heard = {1, 2}
    assert contact.tick(MINORITY_TICKS)
    contact.heard = {1, 2, 3}
    assert not contact.tick()


def test_an_election_of_the_majority_is_waited_for() -> None:
    contact = Contact(1, 2, 3)
    contact.leader = 0
    assert not contact.tick(LEADERLESS_TICKS - 1)
    assert contact.tick()
    assert contact.minority.without_contact_ms == CLUSTER_LEADERLESS_MS
    contact.leader = 3
    assert not contact.tick()
    assert contact.minority.without_contact_ms == 0


def test_a_leader_that_is_not_heard_is_none() -> None:
    contact = Contact(1, 2, 3)
    contact.heard = {1, 3}
    assert not contact.tick(LEADERLESS_TICKS - 1)
    assert contact.tick()


def test_the_minority_ends_with_a_leader() -> None:
    contact = Contact(1, 2, 3)
    contact.heard, contact.leader = {1}, 0
    assert contact.tick(MINORITY_TICKS)
    contact.heard = {1, 2}
    assert contact.tick(3)
    contact.leader = 2
    assert not contact.tick()


def test_a_short_silence_is_no_minority() -> None:
    contact = Contact(1, 2, 3)
    for _ in range(5):
        contact.heard = {1}
        assert not contact.tick(MINORITY_TICKS - 1)
        contact.heard = {1, 2, 3}
        assert not contact.tick()


def test_a_member_that_knows_no_voters_yet_has_not_begun() -> None:
    contact = Contact()
    assert not contact.minority.has_begun
    contact.configuration = Configuration((1, 2))
    contact.heard.add(2)
    contact.tick()
    assert contact.minority.has_begun
    assert contact.minority.voters == (1, 2)
