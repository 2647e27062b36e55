"""Values of the Raft core as the published vectors print them."""

from collections.abc import Iterable

from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChangeKind,
    Transition,
    decode_change,
)
from warren.replication.raft.member_progress import Progress, ProgressState
from warren.replication.raft.raft_messages import (
    NOBODY,
    Entry,
    EntryKind,
    HardState,
    MessageKind,
    RaftMessage,
    Snapshot,
)
from warren.replication.raft.ready import Ready, Role, SoftState, Written

# The context that marks a change as of the vectors' older kind, which names one member only.
OLDER_CHANGE = b"v1"
# Bytes that are written with a letter or a sign behind a backslash.
ESCAPES = dict(zip(b'\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True))

KINDS = {
    MessageKind.APPEND: "MsgApp",
    MessageKind.APPEND_RESPONSE: "MsgAppResp",
    MessageKind.VOTE: "MsgVote",
    MessageKind.VOTE_RESPONSE: "MsgVoteResp",
    MessageKind.PRE_VOTE: "MsgPreVote",
    MessageKind.PRE_VOTE_RESPONSE: "MsgPreVoteResp",
    MessageKind.SNAPSHOT: "MsgSnap",
    MessageKind.HEARTBEAT: "MsgHeartbeat",
    MessageKind.HEARTBEAT_RESPONSE: "MsgHeartbeatResp",
    MessageKind.TIMEOUT_NOW: "MsgTimeoutNow",
    MessageKind.READ_INDEX: "MsgReadIndex",
    MessageKind.READ_INDEX_RESPONSE: "MsgReadIndexResp",
    MessageKind.TRANSFER: "MsgTransferLeader",
    MessageKind.PROPOSE: "MsgProp",
}
ROLES = {
    Role.FOLLOWER: "StateFollower",
    Role.PRE_CANDIDATE: "StatePreCandidate",
    Role.CANDIDATE: "StateCandidate",
    Role.LEADER: "StateLeader",
}
PROGRESS = {
    ProgressState.PROBE: "StateProbe",
    ProgressState.REPLICATE: "StateReplicate",
    ProgressState.SNAPSHOT: "StateSnapshot",
}
LETTERS = {
    MemberChangeKind.VOTER: "v",
    MemberChangeKind.LEARNER: "l",
    MemberChangeKind.REMOVED: "r",
    MemberChangeKind.UPDATED: "u",
}
MEMBER_CHANGES = {
    MemberChangeKind.VOTER: "ConfChangeAddNode",
    MemberChangeKind.LEARNER: "ConfChangeAddLearnerNode",
    MemberChangeKind.REMOVED: "ConfChangeRemoveNode",
    MemberChangeKind.UPDATED: "ConfChangeUpdateNode",
}
TRANSITIONS = {
    Transition.AUTO: "ConfChangeTransitionAuto",
    Transition.JOINT_AUTO_LEAVE: "ConfChangeTransitionJointImplicit",
    Transition.JOINT_EXPLICIT: "ConfChangeTransitionJointExplicit",
}


def configuration_text(configuration: Configuration) -> str:
    """Return a configuration as text."""
    text = f"voters={_group(configuration.voters)}"
    if configuration.outgoing:
        text += f"&&{_group(configuration.outgoing)}"
    if configuration.learners:
        text += f" learners={_group(configuration.learners)}"
    if configuration.learners_next:
        text += f" learners_next={_group(configuration.learners_next)}"
    return text + " autoleave" * configuration.auto_leave


def change_text(change: ConfigurationChange) -> str:
    """Return a change as a log line has it."""
    members = (
        f" changes:{{type:{MEMBER_CHANGES[member.kind]} node_id:{member.replica}}}"
        for member in change.members
    )
    return f"transition:{TRANSITIONS[change.transition]}" + "".join(members)


def entry_text(entry: Entry) -> str:
    """Return an entry as text."""
    assert isinstance(entry.payload, bytes)
    head = f"{entry.term}/{entry.index} "
    if entry.kind is EntryKind.NORMAL:
        return f"{head}EntryNormal {quoted(entry.payload)}"
    change = decode_change(entry.payload)
    kind = "EntryConfChange" if change.context == OLDER_CHANGE else "EntryConfChangeV2"
    members = "".join(f" {LETTERS[member.kind]}{member.replica}" for member in change.members)
    return f"{head}{kind}{members}"


def quoted(data: bytes) -> str:
    """Return bytes in quotation marks, escaped where they cannot be printed."""
    return f'"{"".join(map(_escaped, data))}"'


def _escaped(each: int) -> str:
    if each in ESCAPES:
        return "\\" + ESCAPES[each]
    return chr(each) if 32 <= each < 127 else f"\\x{each:02x}"


def lines(texts: Iterable[str]) -> str:
    """Return each text with a line end."""
    return "".join(text + "\n" for text in texts)


def snapshot_text(snapshot: Snapshot) -> str:
    """Return a snapshot as text."""
    members = snapshot.configuration
    return (
        f"Index:{snapshot.index} Term:{snapshot.term} ConfState:"
        f"Voters:{_list(members.voters)} VotersOutgoing:{_list(members.outgoing)} "
        f"Learners:{_list(members.learners)} LearnersNext:{_list(members.learners_next)} "
        f"AutoLeave:{_bool(members.auto_leave)}"
    )


def message_text(message: RaftMessage) -> str:
    """Return a message of a replica as text."""
    text = f"{message.sender}->{message.to} {KINDS[message.kind]}"
    text += f" Term:{message.term} Log:{message.log_term}/{message.index}"
    if message.is_rejected:
        text += f" Rejected (Hint: {message.hint})"
    if message.commit:
        text += f" Commit:{message.commit}"
    return text + entries_text(message.entries) + _snapshot_line(message.snapshot)


def entries_text(entries: tuple[Entry, ...]) -> str:
    """Return the entries of a message as text: one in its line, several below it."""
    if not entries:
        return ""
    if len(entries) == 1:
        return f" Entries:[{entry_text(entries[0])}]"
    return " Entries:[" + "".join(f"\n  {entry_text(entry)}" for entry in entries) + "\n]"


def append_head(replica: int, ready: Ready) -> str:
    """Return the message that hands the writes of a Ready to the storage, without its responses."""
    hard = ready.hard_state or HardState()
    text = f"{replica}->AppendThread MsgStorageAppend Term:{hard.term} Log:0/0"
    if hard.commit:
        text += f" Commit:{hard.commit}"
    if hard.vote:
        text += f" Vote:{hard.vote}"
    return text + entries_text(ready.entries) + _snapshot_line(ready.snapshot)


def written_text(replica: int, written: Written, snapshot: Snapshot | None) -> str:
    """Return what the storage answers as a message."""
    text = (
        f"AppendThread->{replica} MsgStorageAppendResp "
        f"Term:{written.term} Log:{written.log_term}/{written.index}"
    )
    return text + _snapshot_line(snapshot)


def apply_head(replica: int, entries: tuple[Entry, ...]) -> str:
    """Return the message that hands entries to the state machine, without its response."""
    return f"{replica}->ApplyThread MsgStorageApply Term:0 Log:0/0{entries_text(entries)}"


def applied_text(replica: int, entries: tuple[Entry, ...]) -> str:
    """Return what the state machine answers as a message."""
    return f"ApplyThread->{replica} MsgStorageApplyResp Term:0 Log:0/0{entries_text(entries)}"


def with_responses(head: str, responses: list[str]) -> str:
    """Return a message to the storage or the state machine, with what is sent when it is done."""
    if not responses:
        return head
    indented = "".join(f"\n{indent(response)}" for response in responses)
    return f"{head} Responses:[{indented}\n]"


def indent(text: str) -> str:
    """Return a text with each of its lines indented."""
    return "\n".join(f"  {line}" if line else line for line in text.split("\n"))


def ready_text(ready: Ready, messages: list[str]) -> str:
    """Return a Ready as text; `messages` are those that it is to send, as text."""
    text = ""
    if ready.soft_state is not None:
        text += f"{soft_text(ready.soft_state)}\n"
    if ready.hard_state is not None and ready.hard_state != HardState():
        text += f"HardState {hard_text(ready.hard_state)}\n"
    if ready.read_states:
        states = (f"{{{state.index} {_list(tuple(state.context))}}}" for state in ready.read_states)
        text += f"ReadStates [{' '.join(states)}]\n"
    if ready.entries:
        text += "Entries:\n" + lines(map(entry_text, ready.entries))
    if ready.snapshot is not None:
        text += f"Snapshot {snapshot_text(ready.snapshot)}\n"
    if ready.committed:
        text += "CommittedEntries:\n" + lines(map(entry_text, ready.committed))
    if messages:
        text += "Messages:\n" + lines(messages)
    return f"Ready MustSync={_bool(ready.must_sync)}:\n{text}" if text else "<empty Ready>\n"


def hard_text(hard: HardState) -> str:
    """Return a hard state as text."""
    vote = f" Vote:{hard.vote}" if hard.vote != NOBODY else ""
    return f"Term:{hard.term}{vote} Commit:{hard.commit}"


def soft_text(soft: SoftState) -> str:
    """Return a soft state as text."""
    return f"Lead:{soft.leader} State:{ROLES[soft.role]}"


def progress_text(progress: Progress) -> str:
    """Return what a leader knows of a member."""
    text = f"{PROGRESS[progress.state]} match={progress.match} next={progress.next}"
    text += " learner" * progress.is_learner + " paused" * progress.is_paused
    if progress.pending_snapshot:
        text += f" pendingSnap={progress.pending_snapshot}"
    text += " inactive" * (not progress.is_active)
    if len(progress.in_flight):
        text += f" inflight={len(progress.in_flight)}" + "[full]" * progress.in_flight.is_full
    return text


def _snapshot_line(snapshot: Snapshot | None) -> str:
    return "" if snapshot is None else f"\n  Snapshot: {snapshot_text(snapshot)}"


def _group(replicas: tuple[int, ...]) -> str:
    return f"({' '.join(map(str, replicas))})"


def _list(values: tuple[int, ...]) -> str:
    return f"[{' '.join(map(str, values))}]"


def _bool(value: bool) -> str:
    return "true" if value else "false"
