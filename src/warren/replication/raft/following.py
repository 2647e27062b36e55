"""What a follower does: it takes what its leader sends."""

from warren.replication.raft.change import Configuration
from warren.replication.raft.election import Campaign, start_election
from warren.replication.raft.membership import switch
from warren.replication.raft.raft_messages import (
    NOBODY,
    EntryId,
    EntryKind,
    MessageKind,
    RaftMessage,
    Snapshot,
)
from warren.replication.raft.raft_settings import ReadMode
from warren.replication.raft.ready import ReadState, Role
from warren.replication.raft.state import RaftState
from warren.replication.raft.trace import TraceEvent

# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_APPEND_RESPONSE = MessageKind.APPEND_RESPONSE
_HEARTBEAT_RESPONSE = MessageKind.HEARTBEAT_RESPONSE
_CHANGE = EntryKind.CHANGE


def handle_append(state: RaftState, message: RaftMessage) -> None:
    """Append a leader's entries, and answer up to where the logs are now known to match.

    The answer is sent when all that was handed to the storage before it is synced, so it never tells more
    than is durable, also if the append was empty.
    """
    log = state.log
    if message.index < log.commit:
        # What is committed matches, and nothing behind it is known to.
        _answer_append(state, message, log.commit)
        return
    last = log.append_after(EntryId(message.log_term, message.index), message.entries, message.commit)
    if last is not None:
        _check_changes_known(state, message)
        _answer_append(state, message, last)
        return
    state.trace.event(TraceEvent.APPEND_REJECTED, log.term(message.index) or 0, message)
    # The leader's log may match at the last entry whose term is not above that of the refused one.
    hint = log.last_not_after(min(message.index, log.last_index()), message.log_term)
    state.send(
        RaftMessage(
            _APPEND_RESPONSE, message.sender, state.id, state.term, message.index, hint.term,
            is_rejected=True, hint=hint.index,
        )
    )  # fmt: skip


def handle_heartbeat(state: RaftState, message: RaftMessage) -> None:
    """Take the commit index, which the leader knows to be in this log."""
    state.log.commit_to(message.commit)
    state.send(
        RaftMessage(_HEARTBEAT_RESPONSE, message.sender, state.id, state.term, context=message.context)
    )


def handle_snapshot(state: RaftState, message: RaftMessage) -> None:
    """Replace the log by a snapshot, if it is ahead of what is committed."""
    snapshot = message.snapshot
    assert snapshot is not None, "a snapshot message without a snapshot"
    commit = state.log.commit
    if _restore(state, snapshot):
        state.trace.event(TraceEvent.SNAPSHOT_RESTORED, state.log.commit, snapshot)
        _answer_append(state, message, state.log.last_index())
    else:
        state.trace.event(TraceEvent.SNAPSHOT_IGNORED, commit, snapshot)
        _answer_append(state, message, state.log.commit)


def handle_timeout_now(state: RaftState, message: RaftMessage) -> None:
    """Start an election at once; no pre-vote, since the leader wants it."""
    state.trace.event(TraceEvent.TIMEOUT_NOW_RECEIVED, state.term, message.sender)
    start_election(state, Campaign.TRANSFER)


def handle_read_response(state: RaftState, message: RaftMessage) -> None:
    """Release a read that was passed on to the leader."""
    state.read_states.append(ReadState(message.index, message.context))


def forget_leader(state: RaftState) -> None:
    """Vote for others again, without a new term; a heartbeat brings the leader back."""
    if state.settings.read_mode is ReadMode.LEASE:
        # The leader answers reads because it trusts that nobody votes for another.
        state.trace.event(TraceEvent.FORGETTING_REFUSED)
    elif state.leader != NOBODY:
        state.trace.event(TraceEvent.LEADER_FORGOTTEN, state.leader, state.term)
        state.leader = NOBODY


def _answer_append(state: RaftState, message: RaftMessage, index: int) -> None:
    state.send(RaftMessage(_APPEND_RESPONSE, message.sender, state.id, state.term, index))


def _check_changes_known(state: RaftState, message: RaftMessage) -> None:
    """Assert that a change of the configuration is appended only by who knows the one before as committed.

    Otherwise a crash could leave a replica that campaigns in a configuration that is two steps old.
    """
    if not state.settings.validate_changes:
        return
    for entry in message.entries:
        if entry.kind is _CHANGE:
            known = state.log.uncommitted_changes()
            assert known <= 1, f"{known} changes of the configuration behind commit index {state.log.commit}"
            return


def _restore(state: RaftState, snapshot: Snapshot) -> bool:
    """Install a snapshot; return False if it is not needed."""
    log = state.log
    if snapshot.index <= log.commit:
        return False
    assert state.role is Role.FOLLOWER, f"a snapshot for a {state.role.value}"
    if state.id not in snapshot.configuration.members:
        state.trace.event(TraceEvent.SNAPSHOT_OF_OTHERS, snapshot)
        return False
    if log.matches(snapshot.index, snapshot.term):
        # The log has it all, and more perhaps: only the commit index is news.
        state.trace.event(TraceEvent.SNAPSHOT_FORWARDED, log.commit, log.last_id(), snapshot)
        log.commit_to(snapshot.index)
        return False
    log.restore(snapshot)
    state.set_progress({})
    state.configuration = Configuration()
    state.configuration_index = snapshot.index
    switch(state, snapshot.configuration)
    state.trace.event(TraceEvent.SNAPSHOT_INSTALLED, log.commit, log.last_id(), snapshot)
    return True
