"""What a replica tells about its steps, for logs and tests: values, no text."""

from enum import Enum


class TraceEvent(Enum):
    """One step; the comment lists the values that come with it."""

    STARTED = "started"  # configuration, hard state, applied index, last entry id
    CONFIGURATION_SWITCHED = "configuration switched"  # configuration
    BECAME_FOLLOWER = "became follower"  # term
    BECAME_PRE_CANDIDATE = "became pre-candidate"  # term
    BECAME_CANDIDATE = "became candidate"  # term
    BECAME_LEADER = "became leader"  # term
    QUORUM_LOST = "quorum lost"
    ELECTION_STARTED = "election started"  # term
    ALREADY_LEADER = "already leader"
    UNPROMOTABLE = "unpromotable"
    CHANGES_UNAPPLIED = "changes unapplied"  # term
    VOTE_REQUESTED = "vote requested"  # last entry id, message kind, to, own term
    VOTE_RECEIVED = "vote received"  # message kind, from, term, is rejected
    VOTES_COUNTED = "votes counted"  # granted, message kind, rejected
    VOTE_CAST = "vote cast"  # message, last entry id, vote, term
    VOTE_REJECTED = "vote rejected"  # message, last entry id, vote, term
    VOTE_IGNORED = "vote ignored"  # message, last entry id, vote, term, remaining ticks of the lease
    HIGHER_TERM = "higher term"  # message, term before
    LOWER_TERM = "lower term"  # message, term
    LEADER_FORGOTTEN = "leader forgotten"  # leader, term
    FORGETTING_REFUSED = "forgetting refused"
    TIMEOUT_NOW_RECEIVED = "timeout now received"  # term, from
    PROPOSAL_WITHOUT_LEADER = "proposal without leader"  # term
    PROPOSAL_DURING_TRANSFER = "proposal during transfer"  # term, to
    PROPOSAL_TOO_MUCH = "proposal too much"
    CHANGE_IGNORED = "change ignored"  # change, configuration, refusal, pending index, applied index
    JOINT_LEFT = "joint left"  # configuration
    STORAGE_SLOW = "storage slow"  # own index that is written, commit
    TRANSFER_STARTED = "transfer started"  # term, to
    TRANSFER_ABORTED = "transfer aborted"  # term, to
    TRANSFER_REPEATED = "transfer repeated"  # term, to
    TRANSFER_IMMEDIATE = "transfer immediate"  # to
    TRANSFER_CAUGHT_UP = "transfer caught up"  # to
    APPEND_REJECTED = "append rejected"  # own term at the index, message
    REJECTION_RECEIVED = "rejection received"  # message
    PROGRESS_DECREASED = "progress decreased"  # peer, progress
    SNAPSHOT_WITHHELD = "snapshot withheld"  # peer, which was not heard of lately
    SNAPSHOT_SENT = "snapshot sent"  # first index, commit, snapshot, peer, progress
    REPLICATION_PAUSED = "replication paused"  # peer, progress
    REPLICATION_RESUMED = "replication resumed"  # peer, progress
    SNAPSHOT_SUCCEEDED = "snapshot succeeded"  # peer, progress
    SNAPSHOT_FAILED = "snapshot failed"  # peer, progress
    UNREACHABLE = "unreachable"  # peer, progress
    CONFLICT_FOUND = "conflict found"  # index, existing term, conflicting term
    UNSTABLE_REPLACED = "unstable replaced"  # first index
    UNSTABLE_TRUNCATED = "unstable truncated"  # first index
    WRITTEN_MISSING = "written missing"  # index
    WRITTEN_IN_SNAPSHOT = "written in snapshot"  # index
    WRITTEN_MISMATCHED = "written mismatched"  # index, term, term in the log
    WRITTEN_OF_LOWER_TERM = "written of lower term"  # term, term of the write
    SNAPSHOT_RESTORING = "snapshot restoring"  # log, snapshot
    SNAPSHOT_INSTALLED = "snapshot installed"  # commit, last entry id, snapshot
    SNAPSHOT_RESTORED = "snapshot restored"  # commit, snapshot
    SNAPSHOT_FORWARDED = "snapshot forwarded"  # commit, last entry id, snapshot
    SNAPSHOT_IGNORED = "snapshot ignored"  # commit, snapshot
    SNAPSHOT_OF_OTHERS = "snapshot of others"  # snapshot


class ChangeRefusal(Enum):
    """Why a change of the configuration cannot be proposed."""

    # The one before may not be applied yet.
    UNAPPLIED = "unapplied"
    # A joint configuration must be left first.
    JOINT = "joint"
    # There is no joint configuration to leave.
    NOT_JOINT = "not joint"
    # It leaves no voter, or changes several voters without a joint configuration.
    IMPOSSIBLE = "impossible"
    # The payload is no change.
    MALFORMED = "malformed"


class Trace:
    """Port: is told of each step of one replica; this one forgets it."""

    __slots__ = ()

    def event(self, event: TraceEvent, *values: object) -> None:
        """Note a step, with the values that the event lists; they may change after the call."""
