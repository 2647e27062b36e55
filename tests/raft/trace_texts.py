"""Steps of a replica as the log lines that the published vectors expect."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from tests.raft.texts import KINDS, change_text, configuration_text, progress_text

from warren.replication.raft.change import Configuration, ConfigurationChange
from warren.replication.raft.raft_log import RaftLog
from warren.replication.raft.raft_messages import EntryId, HardState, MessageKind, RaftMessage, Snapshot
from warren.replication.raft.trace import ChangeRefusal, Trace, TraceEvent


class Level(IntEnum):
    """How important a line is; below the level that is chosen it is not printed."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    NONE = 5


class TextTrace(Trace):
    """Prints each step of a replica as a line."""

    def __init__(self, replica: int, log: Callable[[Level, str], None]) -> None:
        self._replica = replica
        self._log = log

    def event(self, event: TraceEvent, *values: object) -> None:
        level = LEVELS.get(event, Level.INFO)
        text = TEXTS[event](*values)
        is_of_log = event in OF_LOG
        self._log(level, text if is_of_log else text.replace("$", str(self._replica), 1))


def _id(last: EntryId) -> str:
    return f"[logterm: {last.term}, index: {last.index}]"


def _snapshot(snapshot: Snapshot) -> str:
    return f"[index: {snapshot.index}, term: {snapshot.term}]"


def _started(configuration: Configuration, hard: HardState, applied: int, last: EntryId) -> str:
    peers = ",".join(str(each) for each in sorted({*configuration.voters, *configuration.outgoing}))
    return (
        f"newRaft $ [peers: [{peers}], term: {hard.term}, commit: {hard.commit}, applied: {applied}, "
        f"lastindex: {last.index}, lastterm: {last.term}]"
    )


def _vote(verb: str) -> Callable[..., str]:
    def text(message: RaftMessage, last: EntryId, vote: int, term: int, *remaining: int) -> str:
        lease = "".join(f": lease is not expired (remaining ticks: {ticks})" for ticks in remaining)
        kind = KINDS[message.kind]
        return (
            f"$ [logterm: {last.term}, index: {last.index}, vote: {vote}] {verb.format(kind)} "
            f"{message.sender} [logterm: {message.log_term}, index: {message.index}] at term {term}{lease}"
        )

    return text


def _vote_received(kind: MessageKind, sender: int, term: int, is_rejected: bool) -> str:
    rejection = " rejection" if is_rejected else ""
    return f"$ received {KINDS[kind]}{rejection} from {sender} at term {term}"


def _change_ignored(
    change: ConfigurationChange, configuration: Configuration, refusal: ChangeRefusal, *indexes: int
) -> str:
    reasons = {
        ChangeRefusal.UNAPPLIED: "possible unapplied conf change at index {} (applied to {})",
        ChangeRefusal.JOINT: "must transition out of joint config first",
        ChangeRefusal.NOT_JOINT: "not in joint state; refusing empty conf change",
        ChangeRefusal.IMPOSSIBLE: "it cannot be applied",
        ChangeRefusal.MALFORMED: "malformed conf change",
    }
    reason = reasons[refusal].format(*indexes)
    at = f"at config {configuration_text(configuration)}: {reason}"
    return f"$ ignoring conf change {change_text(change)} {at}"


def _rejection_received(message: RaftMessage) -> str:
    return (
        f"$ received MsgAppResp(rejected, hint: (index {message.hint}, term {message.log_term})) "
        f"from {message.sender} for index {message.index}"
    )


def _snapshot_sent(first: int, commit: int, snapshot: Snapshot, *member: Any) -> str:
    peer, progress = member
    return (
        f"$ [firstindex: {first}, commit: {commit}] sent snapshot{_snapshot(snapshot)} "
        f"to {peer} [{progress_text(progress)}]"
    )


def _with_progress(before: str, after: str = "") -> Callable[..., str]:
    return lambda peer, progress: f"$ {before} {peer}{after} [{progress_text(progress)}]"


def _restoring(log: RaftLog, snapshot: Snapshot) -> str:
    return (
        f"log [committed={log.commit}, applied={log.applied}, applying={log.applying}, "
        f"unstable.offset={log.offset}, unstable.offsetInProgress={log.in_progress}, "
        f"len(unstable.Entries)={log.last_index() + 1 - log.offset}] "
        f"starts to restore snapshot {_snapshot(snapshot)}"
    )


def _snapshot_taken(verb: str) -> Callable[..., str]:
    return lambda commit, last, snapshot: (
        f"$ [commit: {commit}, lastindex: {last.index}, lastterm: {last.term}] {verb} {_snapshot(snapshot)}"
    )


OF_LOG = frozenset({
    TraceEvent.CONFLICT_FOUND, TraceEvent.UNSTABLE_REPLACED, TraceEvent.UNSTABLE_TRUNCATED,
    TraceEvent.WRITTEN_MISSING, TraceEvent.WRITTEN_IN_SNAPSHOT, TraceEvent.WRITTEN_MISMATCHED,
    TraceEvent.SNAPSHOT_RESTORING,
})  # fmt: skip
LEVELS = {
    TraceEvent.QUORUM_LOST: Level.WARN,
    TraceEvent.ALREADY_LEADER: Level.DEBUG,
    TraceEvent.UNPROMOTABLE: Level.WARN,
    TraceEvent.CHANGES_UNAPPLIED: Level.WARN,
    TraceEvent.FORGETTING_REFUSED: Level.ERROR,
    TraceEvent.PROPOSAL_DURING_TRANSFER: Level.DEBUG,
    TraceEvent.PROPOSAL_TOO_MUCH: Level.DEBUG,
    TraceEvent.APPEND_REJECTED: Level.DEBUG,
    TraceEvent.REJECTION_RECEIVED: Level.DEBUG,
    TraceEvent.PROGRESS_DECREASED: Level.DEBUG,
    TraceEvent.SNAPSHOT_WITHHELD: Level.DEBUG,
    TraceEvent.SNAPSHOT_SENT: Level.DEBUG,
    TraceEvent.REPLICATION_PAUSED: Level.DEBUG,
    TraceEvent.REPLICATION_RESUMED: Level.DEBUG,
    TraceEvent.SNAPSHOT_SUCCEEDED: Level.DEBUG,
    TraceEvent.SNAPSHOT_FAILED: Level.DEBUG,
    TraceEvent.UNREACHABLE: Level.DEBUG,
    TraceEvent.SNAPSHOT_OF_OTHERS: Level.WARN,
}
# `$` is the replica.
TEXTS: dict[TraceEvent, Callable[..., Any]] = {
    TraceEvent.STARTED: _started,
    TraceEvent.CONFIGURATION_SWITCHED: lambda configuration: (
        f"$ switched to configuration {configuration_text(configuration)}"
    ),
    TraceEvent.BECAME_FOLLOWER: "$ became follower at term {}".format,
    TraceEvent.BECAME_PRE_CANDIDATE: "$ became pre-candidate at term {}".format,
    TraceEvent.BECAME_CANDIDATE: "$ became candidate at term {}".format,
    TraceEvent.BECAME_LEADER: "$ became leader at term {}".format,
    TraceEvent.QUORUM_LOST: "$ stepped down to follower since quorum is not active".format,
    TraceEvent.ELECTION_STARTED: "$ is starting a new election at term {}".format,
    TraceEvent.ALREADY_LEADER: "$ ignoring MsgHup because already leader".format,
    TraceEvent.UNPROMOTABLE: "$ is unpromotable and can not campaign".format,
    TraceEvent.CHANGES_UNAPPLIED: (
        "$ cannot campaign at term {} since there are still pending configuration changes to apply".format
    ),
    TraceEvent.VOTE_REQUESTED: lambda last, kind, to, term: (
        f"$ {_id(last)} sent {KINDS[kind]} request to {to} at term {term}"
    ),
    TraceEvent.VOTE_RECEIVED: _vote_received,
    TraceEvent.VOTES_COUNTED: lambda granted, kind, rejected: (
        f"$ has received {granted} {KINDS[kind]} votes and {rejected} vote rejections"
    ),
    TraceEvent.VOTE_CAST: _vote("cast {} for"),
    TraceEvent.VOTE_REJECTED: _vote("rejected {} from"),
    TraceEvent.VOTE_IGNORED: _vote("ignored {} from"),
    TraceEvent.HIGHER_TERM: lambda message, term: (
        f"$ [term: {term}] received a {KINDS[message.kind]} message with higher term "
        f"from {message.sender} [term: {message.term}]"
    ),
    TraceEvent.LOWER_TERM: lambda message, term: (
        f"$ [term: {term}] ignored a {KINDS[message.kind]} message with lower term "
        f"from {message.sender} [term: {message.term}]"
    ),
    TraceEvent.LEADER_FORGOTTEN: "$ forgetting leader {} at term {}".format,
    TraceEvent.FORGETTING_REFUSED: "ignoring MsgForgetLeader due to ReadOnlyLeaseBased".format,
    TraceEvent.TIMEOUT_NOW_RECEIVED: (
        "$ [term {}] received MsgTimeoutNow from {} and starts an election to get leadership.".format
    ),
    TraceEvent.PROPOSAL_WITHOUT_LEADER: "$ no leader at term {}; dropping proposal".format,
    TraceEvent.PROPOSAL_DURING_TRANSFER: (
        "$ [term {}] transfer leadership to {} is in progress; dropping proposal".format
    ),
    TraceEvent.PROPOSAL_TOO_MUCH: (
        "$ appending new entries to log would exceed uncommitted entry size limit; dropping proposal".format
    ),
    TraceEvent.CHANGE_IGNORED: _change_ignored,
    TraceEvent.JOINT_LEFT: lambda configuration: (
        f"initiating automatic transition out of joint configuration {configuration_text(configuration)}"
    ),
    TraceEvent.STORAGE_SLOW: "$ has written up to {} of what was committed, up to {}, long ago".format,
    TraceEvent.TRANSFER_STARTED: "$ [term {}] starts to transfer leadership to {}".format,
    TraceEvent.TRANSFER_ABORTED: "$ [term {}] abort previous transferring leadership to {}".format,
    TraceEvent.TRANSFER_REPEATED: (
        "$ [term {0}] transfer leadership to {1} is in progress, ignores request to same node {1}".format
    ),
    TraceEvent.TRANSFER_IMMEDIATE: (
        "$ sends MsgTimeoutNow to {0} immediately as {0} already has up-to-date log".format
    ),
    TraceEvent.TRANSFER_CAUGHT_UP: "$ sent MsgTimeoutNow to {} after received MsgAppResp".format,
    TraceEvent.APPEND_REJECTED: lambda term, message: (
        f"$ [logterm: {term}, index: {message.index}] rejected MsgApp "
        f"[logterm: {message.log_term}, index: {message.index}] from {message.sender}"
    ),
    TraceEvent.REJECTION_RECEIVED: _rejection_received,
    TraceEvent.PROGRESS_DECREASED: lambda peer, progress: (
        f"$ decreased progress of {peer} to [{progress_text(progress)}]"
    ),
    TraceEvent.SNAPSHOT_WITHHELD: "$ ignore sending snapshot to {} since it is not recently active".format,
    TraceEvent.SNAPSHOT_SENT: _snapshot_sent,
    TraceEvent.REPLICATION_PAUSED: _with_progress("paused sending replication messages to"),
    TraceEvent.REPLICATION_RESUMED: _with_progress(
        "recovered from needing snapshot, resumed sending replication messages to"
    ),
    TraceEvent.SNAPSHOT_SUCCEEDED: _with_progress(
        "snapshot succeeded, resumed sending replication messages to"
    ),
    TraceEvent.SNAPSHOT_FAILED: _with_progress("snapshot failed, resumed sending replication messages to"),
    TraceEvent.UNREACHABLE: _with_progress("failed to send message to", " because it is unreachable"),
    TraceEvent.CONFLICT_FOUND: (
        "found conflict at index {} [existing term: {}, conflicting term: {}]".format
    ),
    TraceEvent.UNSTABLE_REPLACED: "replace the unstable entries from index {}".format,
    TraceEvent.UNSTABLE_TRUNCATED: "truncate the unstable entries before index {}".format,
    TraceEvent.WRITTEN_MISSING: "entry at index {} missing from unstable log; ignoring".format,
    TraceEvent.WRITTEN_IN_SNAPSHOT: "entry at index {} matched unstable snapshot; ignoring".format,
    TraceEvent.WRITTEN_MISMATCHED: (
        "entry at (index,term)=({0},{1}) mismatched with entry at ({0},{2}) in unstable log; ignoring".format
    ),
    TraceEvent.WRITTEN_OF_LOWER_TERM: (
        "$ [term: {}] ignored entry appends from a MsgStorageAppendResp message "
        "with lower term [term: {}]".format
    ),
    TraceEvent.SNAPSHOT_RESTORING: _restoring,
    TraceEvent.SNAPSHOT_INSTALLED: _snapshot_taken("restored snapshot"),
    TraceEvent.SNAPSHOT_RESTORED: lambda commit, snapshot: (
        f"$ [commit: {commit}] restored snapshot {_snapshot(snapshot)}"
    ),
    TraceEvent.SNAPSHOT_FORWARDED: _snapshot_taken("fast-forwarded commit to snapshot"),
    TraceEvent.SNAPSHOT_IGNORED: lambda commit, snapshot: (
        f"$ [commit: {commit}] ignored snapshot {_snapshot(snapshot)}"
    ),
    TraceEvent.SNAPSHOT_OF_OTHERS: lambda snapshot: (
        f"$ attempted to restore snapshot but it is not in the ConfState "
        f"{configuration_text(snapshot.configuration)}; should never happen"
    ),
}
