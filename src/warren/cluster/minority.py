"""Whether this node is in the minority: it does not reach the others with which the metadata are agreed on.

    reaches a majority of the voters, and knows a leader that it hears   │ in contact
    reaches no majority for CLUSTER_MINORITY_MS                          │ in the minority
    reaches one, and has no leader for CLUSTER_LEADERLESS_MS             │ in the minority

A voter is reached whose link is not silent. That is noticed in the same time on both sides of a cut, while a
leader that was cut off needs up to two terms of its lease to step down, and its followers an election more.
Without a leader alone a node is patient: an election may have to be repeated, and the majority, which has
just lost its leader, must not be taken for the minority. A node that hears some of the voters, but not enough
of them, is in the minority also if it hears the leader, as in RabbitMQ.

It ends as soon as the node is in contact again.
"""

from collections.abc import Callable, Collection

from warren.limits_cluster import (
    CLUSTER_LEADERLESS_MS,
    CLUSTER_MINORITY_MS,
    CLUSTER_PING_MS,
    CLUSTER_SILENT_MS,
)
from warren.replication.raft.change import Configuration
from warren.replication.raft.quorum import VoteResult, joint_vote
from warren.replication.raft.raft_messages import NOBODY

# A link is silent for so long when that is noticed, at the latest.
NOTICED_MS = CLUSTER_SILENT_MS + CLUSTER_PING_MS


class Minority:
    """What one node knows of its contact to the majority."""

    def __init__(
        self,
        configuration: Callable[[], Configuration],
        leader: Callable[[], int],
        is_heard: Callable[[int], bool],
    ) -> None:
        """`configuration` and `leader` are those of the metadata group; `is_heard` is true of this node."""
        self._configuration = configuration
        self._leader = leader
        self._is_heard = is_heard
        # True if it was in contact since its start: before that it serves nobody.
        self.has_begun = False
        self.is_in_minority = False
        # Since when it is not in contact, and since when it reaches no majority (ms, of the ticks).
        self.without_contact_ms = 0
        self._unreached_ms = 0

    def tick(self, elapsed_ms: int) -> None:
        """Note that some time has passed."""
        reaches = self.reaches_majority()
        self._unreached_ms = 0 if reaches else self._unreached_ms + elapsed_ms
        if reaches and self._is_heard(self._leader()):
            self.has_begun = True
            self.is_in_minority = False
            self.without_contact_ms = 0
            return
        self.without_contact_ms += elapsed_ms
        if (
            self._unreached_ms + NOTICED_MS >= CLUSTER_MINORITY_MS
            or self.without_contact_ms >= CLUSTER_LEADERLESS_MS
        ):
            self.is_in_minority = True

    @property
    def voters(self) -> tuple[int, ...]:
        """The members that vote, this one among them if it does."""
        return self._configuration().voters

    def reached(self, nodes: Collection[int]) -> list[int]:
        """Return those of `nodes` that are heard at present, this one among them."""
        return [node for node in nodes if self._is_heard(node)]

    def reaches_majority(self, *, without: int = NOBODY) -> bool:
        """True if a majority of the voters is heard at present, also if `without` does not count."""
        configuration = self._configuration()
        # As long as a new member has not been sent the configuration, it knows no voters.
        return bool(configuration.voters) and (
            joint_vote(
                [voter != without and self._is_heard(voter) for voter in configuration.voters],
                [voter != without and self._is_heard(voter) for voter in configuration.outgoing],
            )
            is VoteResult.WON
        )
