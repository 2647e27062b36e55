"""How a replica behaves; all replicas of a group have the same settings."""

from enum import Enum

from msgspec import Struct

from warren.limits_raft import (
    APPEND_BYTES_MAX,
    APPLYING_BYTES_MAX,
    IN_FLIGHT_BYTES_MAX,
    IN_FLIGHT_MESSAGES_MAX,
    UNCOMMITTED_BYTES_MAX,
)


class ReadMode(Enum):
    """How a leader makes sure that a read sees everything that was committed before."""

    # A majority answers a round of heartbeats.
    SAFE = "safe"
    # The leader trusts its lease, and so the clocks of all nodes; it needs `check_quorum`.
    LEASE = "lease"


class RaftSettings(Struct, frozen=True):
    """Settings of one replica; ticks are calls of `Replica.tick`."""

    # A follower that has not heard of its leader for this long, or up to twice as long, starts an election.
    election_ticks: int = 10
    heartbeat_ticks: int = 1
    # Ask whether an election could be won before the term is raised, so that a replica that was cut off
    # does not depose a leader when it comes back.
    pre_vote: bool = True
    # A leader that has not heard of a majority for an election's time steps down, and a follower that hears
    # its leader ignores votes.
    check_quorum: bool = True
    read_mode: ReadMode = ReadMode.SAFE
    # The storage is written behind the replica's back; see `Ready`.
    async_storage: bool = True
    # Messages of a term wait until the term and the vote are synced, those of candidates and answers to
    # heartbeats too.
    sync_term_first: bool = True
    # A leader that is no voter any more becomes a follower as it applies that.
    step_down_on_removal: bool = True
    # A leader that a change would remove, or make a learner, hands over instead of proposing it.
    hand_over_before_removal: bool = True
    # A leader hands over if its own storage lacks what was committed this many ticks ago; 0 is never.
    slow_storage_ticks: int = 10
    # Requests for votes, and refusals of them, tell what is known as committed. So a change of the members
    # that is committed is known to whoever needs the vote of a replica that knows it, also if the leader that
    # committed it is gone, and has forgotten that.
    commit_in_votes: bool = True
    # Refuse changes that cannot be applied as they are proposed.
    validate_changes: bool = True
    # A leader sends what was proposed with the next `Ready`: all entries since the last one in one append.
    batch_proposals: bool = True
    # A leader tells what is committed with the next entries or heartbeat, and not at once: half as many
    # messages, for followers that apply what was committed a heartbeat later at most.
    tell_commit_later: bool = False
    # A follower passes proposals on to its leader.
    forward_proposals: bool = False
    append_bytes_max: int = APPEND_BYTES_MAX
    in_flight_messages_max: int = IN_FLIGHT_MESSAGES_MAX
    in_flight_bytes_max: int = IN_FLIGHT_BYTES_MAX
    uncommitted_bytes_max: int = UNCOMMITTED_BYTES_MAX
    applying_bytes_max: int = APPLYING_BYTES_MAX
