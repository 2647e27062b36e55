"""What a leader does: it appends, sends, counts who has what, commits, and answers reads."""

from collections.abc import Collection, Sequence

from warren.replication.raft.change import (
    ChangeRefused,
    ConfigurationChange,
    changed,
    decode_change,
    encode_change,
)
from warren.replication.raft.member_progress import Progress, ProgressState
from warren.replication.raft.quorum import VoteResult
from warren.replication.raft.raft_log import NOT_NOW, payload_bytes
from warren.replication.raft.raft_messages import (
    NOBODY,
    Entry,
    EntryKind,
    MessageKind,
    RaftMessage,
    new_entry,
)
from warren.replication.raft.raft_settings import ReadMode
from warren.replication.raft.ready import ReadState, Role
from warren.replication.raft.state import RaftState
from warren.replication.raft.trace import ChangeRefusal, TraceEvent

# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_LEADER = Role.LEADER
_CHANGE = EntryKind.CHANGE
_PROBE = ProgressState.PROBE
_REPLICATE = ProgressState.REPLICATE
_APPEND = MessageKind.APPEND
_HEARTBEAT = MessageKind.HEARTBEAT


def become_leader(state: RaftState) -> None:
    """Lead the term: append an empty entry, since only entries of the own term may be counted."""
    assert state.role is Role.CANDIDATE, f"a {state.role.value} becomes leader"
    state.reset(state.term)
    state.leader = state.id
    state.role = Role.LEADER
    own = state.progress[state.id]
    own.replicate()
    own.is_active = True
    # Any entry up to here may be a change of the configuration that is not applied yet.
    state.pending_change = state.log.last_index()
    assert append(state, (Entry(0, 0),)), "an empty entry is never too much"
    state.trace.event(TraceEvent.BECAME_LEADER, state.term)


# Proposals.


def propose(state: RaftState, entries: Sequence[Entry]) -> int:
    """Append entries and send them; return the index of the last one, or 0 if they were refused."""
    if not _takes_proposals(state):
        return 0
    last = state.log.last_index()
    pending = state.pending_change
    checked = []
    for place, entry in enumerate(entries, start=1):
        if entry.kind is _CHANGE:
            if _is_change_ignored(state, entry):
                checked.append(Entry(0, 0))
                continue
            state.pending_change = last + place
        checked.append(entry)
    if not append(state, checked):
        state.pending_change = pending
        return 0
    _send_appended(state)
    return state.log.last_index()


def propose_payload(state: RaftState, payload: object, size: int) -> int:
    """Append and send one entry of the state machine; return its index, or 0 if it was refused."""
    if not _takes_proposals(state) or not _has_room(state, size):
        return 0
    index = state.log.last_index() + 1
    _append_all(state, [new_entry(state.term, index, payload, size)], size)
    _send_appended(state)
    return index


def _send_appended(state: RaftState) -> None:
    if state.settings.batch_proposals:
        state.are_appends_due = True
    else:
        broadcast_appends(state)


def send_due_appends(state: RaftState) -> None:
    """Send what was proposed since the last Ready; nothing, if this replica does not lead any more."""
    state.are_appends_due = False
    if state.role is _LEADER:
        for peer, _ in state.peers:
            send_entries(state, peer)


def _takes_proposals(state: RaftState) -> bool:
    if state.id not in state.progress:
        return False
    if state.transfer_to != NOBODY:
        state.trace.event(TraceEvent.PROPOSAL_DURING_TRANSFER, state.term, state.transfer_to)
        return False
    return True


def change_refusal(state: RaftState, change: ConfigurationChange) -> ChangeRefusal | None:
    """Return why a change cannot be applied as it would be proposed now, None if it can.

    Invariant: no change is proposed while another one is not applied, or may not be.
    """
    if not state.settings.validate_changes:
        return None
    if state.pending_change > state.log.applied:
        return ChangeRefusal.UNAPPLIED
    if state.configuration.is_joint and not change.is_leaving:
        return ChangeRefusal.JOINT
    if not state.configuration.is_joint and change.is_leaving:
        return ChangeRefusal.NOT_JOINT
    try:
        # Nothing that changes the configuration is pending, so it will be applied to this one.
        changed(state.configuration, change)
    except ChangeRefused:
        return ChangeRefusal.IMPOSSIBLE
    return None


def _is_change_ignored(state: RaftState, entry: Entry) -> bool:
    """Return whether a change is refused; an empty entry takes its place, so that its index is used."""
    change = ConfigurationChange()
    try:
        assert isinstance(entry.payload, bytes), "the payload of a change is bytes"
        change = decode_change(entry.payload)
        refusal = change_refusal(state, change)
    except ChangeRefused:
        refusal = ChangeRefusal.MALFORMED
    if refusal is None:
        return False
    state.trace.event(
        TraceEvent.CHANGE_IGNORED,
        change,
        state.configuration,
        refusal,
        state.pending_change,
        state.log.applied,
    )
    return True


def append(state: RaftState, entries: Sequence[Entry]) -> bool:
    """Append entries of the own term; return False if too much is uncommitted."""
    size = payload_bytes(entries)
    if not _has_room(state, size):
        return False
    term, index = state.term, state.log.last_index()
    numbered = [
        Entry(term, index + place, entry.kind, entry.payload, size=entry.size)
        for place, entry in enumerate(entries, start=1)
    ]
    _append_all(state, numbered, size)
    return True


def _has_room(state: RaftState, size: int) -> bool:
    """Return whether entries of this size can be taken; what is too large by itself goes alone."""
    if (
        size
        and state.uncommitted_bytes
        and state.uncommitted_bytes + size > state.settings.uncommitted_bytes_max
    ):
        state.trace.event(TraceEvent.PROPOSAL_TOO_MUCH)
        return False
    return True


def _append_all(state: RaftState, entries: list[Entry], size: int) -> None:
    """Append entries that have their numbers, with `size` bytes of payload."""
    state.uncommitted_bytes += size
    last = state.log.append(entries)
    # The leader counts itself as it counts the others: when the entries are durable.
    state.acknowledge_own(last)


def leave_joint_if_due(state: RaftState) -> None:
    """Propose to leave a joint configuration that is to be left by itself, once it is applied."""
    leaving = ConfigurationChange()
    if (
        state.configuration.auto_leave
        and state.role is _LEADER
        and state.log.applied >= state.pending_change
        and not hands_over_before(state, leaving)
        and propose(state, (Entry(0, 0, EntryKind.CHANGE, encode_change(leaving)),))
    ):
        state.trace.event(TraceEvent.JOINT_LEFT, state.configuration)


# Sending.


def broadcast_appends(state: RaftState) -> None:
    """Send each member what it lacks, or an empty append that tells the commit index."""
    for peer, _ in state.peers:
        send_append(state, peer)


def send_append(state: RaftState, peer: int) -> bool:
    """Send a member what it lacks, or an empty append that tells the commit index; return whether it was."""
    return _send_next(state, peer, True)


def send_entries(state: RaftState, peer: int) -> bool:
    """Send a member what it lacks, if anything; return whether something was sent."""
    return _send_next(state, peer, False)


def _send_next(state: RaftState, peer: int, is_empty_allowed: bool) -> bool:
    """Send a member the next entries, or a snapshot if they are compacted; return whether it was sent."""
    progress = state.progress[peer]
    if progress.is_paused:
        return False
    log = state.log
    if not is_empty_allowed and progress.next > log.last_index():
        return False
    previous = progress.next - 1
    term = log.term(previous)
    if term is None:
        return send_snapshot(state, peer, progress)
    entries: Sequence[Entry] = ()
    # With too much in flight only an empty append is sent. If all that is in flight was lost, its answer
    # sets replication going again.
    if progress.state is not _REPLICATE or not progress.in_flight.is_full:
        found = log.entries(progress.next, state.settings.append_bytes_max)
        if found is None:
            return send_snapshot(state, peer, progress)
        if found == NOT_NOW:
            return False
        entries = found
    if not entries and not is_empty_allowed:
        return False
    state.send(
        RaftMessage(
            _APPEND, peer, state.id, state.term, previous, term, tuple(entries), log.commit
        )
    )  # fmt: skip
    progress.has_sent(len(entries), payload_bytes(entries))
    progress.sent_commit = log.commit
    return True


def send_snapshot(state: RaftState, peer: int, progress: Progress) -> bool:
    """Send a snapshot to a member that answers; nothing else is sent to it until it has that."""
    if not progress.is_active:
        state.trace.event(TraceEvent.SNAPSHOT_WITHHELD, peer)
        return False
    snapshot = state.log.take_snapshot()
    if snapshot is None or peer not in snapshot.configuration.members:
        # None is ready, or one that is older than the member.
        return False
    assert snapshot.index > 0, "an empty snapshot"
    state.trace.event(
        TraceEvent.SNAPSHOT_SENT, state.log.first_index(), state.log.commit, snapshot, peer, progress
    )
    progress.send_snapshot(snapshot.index)
    state.trace.event(TraceEvent.REPLICATION_PAUSED, peer, progress)
    state.send(RaftMessage(MessageKind.SNAPSHOT, peer, state.id, state.term, snapshot=snapshot))
    return True


def broadcast_heartbeats(state: RaftState, context: bytes) -> None:
    """Send each member a heartbeat, with the commit index as far as the member's log is known to match."""
    for peer, progress in state.peers:
        commit = min(progress.match, state.log.commit)
        state.send(RaftMessage(_HEARTBEAT, peer, state.id, state.term, commit=commit, context=context))
        progress.sent_commit = commit


def send_timeout_now(state: RaftState, peer: int) -> None:
    """Have a member start an election at once."""
    state.send(RaftMessage(MessageKind.TIMEOUT_NOW, peer, state.id, state.term))


def maybe_commit(state: RaftState) -> bool:
    """Commit what a majority has, if the last of it is of the own term; return whether that is new."""
    index = state.quorum_index()
    log = state.log
    if index <= log.commit or not log.matches(index, state.term):
        return False
    log.commit_to(index)
    # It is of the own term, so that those who have waited for such an entry go on.
    if state.pending_reads:
        waiting, state.pending_reads = state.pending_reads, []
        for message in waiting:
            _confirm_read(state, message)
    return True


# Messages to a leader.


def handle_append_response(state: RaftState, message: RaftMessage) -> None:
    """Note how far a member's log matches; commit, and send what it lacks."""
    progress = state.progress[message.sender]
    progress.is_active = True
    if message.is_rejected:
        _handle_rejection(state, message, progress)
        return
    peer, index = message.sender, message.index
    is_probed = progress.match == index and progress.state is _PROBE
    if not progress.matches(index) and not is_probed:
        return
    if progress.state is _PROBE:
        progress.replicate()
    elif progress.state is _REPLICATE:
        progress.in_flight.release(index)
    elif progress.match + 1 >= state.log.first_index():
        # Whatever snapshot the member installed: the log continues from there.
        state.trace.event(TraceEvent.REPLICATION_RESUMED, peer, progress)
        progress.probe()
        progress.replicate()
    # What is committed already says nothing new: usually that of the slowest member.
    is_new = index > state.log.commit and maybe_commit(state)
    if not state.settings.tell_commit_later:
        if is_new:
            broadcast_appends(state)
        elif peer != state.id and progress.lacks_commit(state.log.commit):
            send_append(state, peer)
    if peer != state.id:
        # More may be in flight now.
        while send_entries(state, peer):
            pass
        if peer == state.transfer_to and progress.match == state.log.last_index():
            state.trace.event(TraceEvent.TRANSFER_CAUGHT_UP, peer)
            send_timeout_now(state, peer)


def _handle_rejection(state: RaftState, message: RaftMessage, progress: Progress) -> None:
    """Go back to where the logs may agree: behind the last entry whose term is not above the hint's."""
    state.trace.event(TraceEvent.REJECTION_RECEIVED, message)
    hint = message.hint
    if message.log_term:
        hint = state.log.last_not_after(hint, message.log_term).index
    if progress.refuses(message.index, hint):
        state.trace.event(TraceEvent.PROGRESS_DECREASED, message.sender, progress)
        if progress.state is ProgressState.REPLICATE:
            progress.probe()
        send_append(state, message.sender)


def handle_heartbeat_response(state: RaftState, message: RaftMessage) -> None:
    """Note that a member is there; send what it lacks, and release reads that it confirms."""
    peer = message.sender
    progress = state.progress[peer]
    progress.is_active = True
    progress.is_paused_for_now = False
    # A member that is probed gets an empty append too, since its answer ends the probing.
    if progress.match < state.log.last_index() or progress.state is ProgressState.PROBE:
        send_append(state, peer)
    if state.settings.read_mode is not ReadMode.SAFE or not message.context:
        return
    if state.result_of(state.reads.acknowledge(peer, message.context)) is VoteResult.WON:
        for read in state.reads.release(message.context):
            _answer_read(state, read.request, read.index)


def handle_snapshot_status(state: RaftState, peer: int, *, is_done: bool) -> None:
    """Note that a snapshot has arrived, or not; the member's next answer or heartbeat goes on."""
    progress = state.progress.get(peer)
    if progress is None or progress.state is not ProgressState.SNAPSHOT:
        return
    if is_done:
        progress.probe()
        state.trace.event(TraceEvent.SNAPSHOT_SUCCEEDED, peer, progress)
    else:
        # It never arrived, so probing does not begin behind it.
        progress.pending_snapshot = 0
        progress.probe()
        state.trace.event(TraceEvent.SNAPSHOT_FAILED, peer, progress)
    progress.is_paused_for_now = True


def handle_unreachable(state: RaftState, peer: int) -> None:
    """Note that messages to a member may be lost: send one at a time."""
    progress = state.progress.get(peer)
    if progress is None:
        return
    if progress.state is ProgressState.REPLICATE:
        progress.probe()
    state.trace.event(TraceEvent.UNREACHABLE, peer, progress)


def handle_transfer(state: RaftState, peer: int) -> None:
    """Hand over to a voter as soon as its log is complete; until then no proposal is taken."""
    progress = state.progress.get(peer)
    if progress is None or progress.is_learner:
        return
    if state.transfer_to == peer:
        state.trace.event(TraceEvent.TRANSFER_REPEATED, state.term, peer)
        return
    if state.transfer_to != NOBODY:
        state.trace.event(TraceEvent.TRANSFER_ABORTED, state.term, state.transfer_to)
        state.abort_transfer()
    if peer == state.id:
        return
    state.trace.event(TraceEvent.TRANSFER_STARTED, state.term, peer)
    # It must be done within an election's time.
    state.election_elapsed = 0
    state.transfer_to = peer
    if progress.match == state.log.last_index():
        send_timeout_now(state, peer)
        state.trace.event(TraceEvent.TRANSFER_IMMEDIATE, peer)
    else:
        send_append(state, peer)


def hand_over(state: RaftState, voters: Collection[int]) -> int:
    """Hand over to that of `voters` which is heard of and has most of the log; return it, or nobody."""
    if state.transfer_to != NOBODY:
        return state.transfer_to
    best, most = NOBODY, -1
    for peer, progress in state.peers:
        if peer in voters and progress.is_active and progress.match > most:
            best, most = peer, progress.match
    if best != NOBODY:
        handle_transfer(state, best)
    return best


def hands_over_before(state: RaftState, change: ConfigurationChange) -> bool:
    """Hand over if the change would have this leader step down; return whether another one must propose it.

    Otherwise it could step down before another one knows the change as committed, and the others would need
    the vote of a replica whose longer log has them refused. If no voter stays one, the change goes its way.
    """
    if not state.settings.hand_over_before_removal or change_refusal(state, change) is not None:
        return False
    staying = set(changed(state.configuration, change).voters) & set(state.configuration.voters)
    if not staying or state.id in staying:
        return False
    hand_over(state, staying)
    return True


def check_storage(state: RaftState) -> None:
    """Hand over if the own storage lacks what was committed long ago: nothing of it can be applied here."""
    own = state.progress.get(state.id)
    if own is None:
        # It is no member any more, and leads until it steps down.
        return
    written, commit = own.match, state.log.commit
    if written >= state.storage_due:
        state.storage_due, state.storage_elapsed = commit, 0
        return
    state.storage_elapsed += 1
    if state.storage_elapsed >= state.settings.slow_storage_ticks > 0:
        state.storage_elapsed = 0
        state.trace.event(TraceEvent.STORAGE_SLOW, written, commit)
        hand_over(state, state.configuration.voters)


def check_quorum(state: RaftState) -> None:
    """Step down if no majority was heard of for an election's time."""
    if not state.is_quorum_active():
        state.trace.event(TraceEvent.QUORUM_LOST)
        state.become_follower(state.term, NOBODY)
    for _, progress in state.peers:
        progress.is_active = False


# Reads.


def handle_read(state: RaftState, message: RaftMessage) -> None:
    """Answer a read when it is sure that nothing newer is committed elsewhere."""
    if not state.log.matches(state.log.commit, state.term):
        # Until an entry of the own term is committed, the commit index may be too low: also that of the only
        # voter, which may have told of more before it was started again.
        state.pending_reads.append(message)
    else:
        _confirm_read(state, message)


def _confirm_read(state: RaftState, message: RaftMessage) -> None:
    is_only_voter = state.configuration.voters == (state.id,) and not state.configuration.is_joint
    if is_only_voter or state.settings.read_mode is ReadMode.LEASE:
        _answer_read(state, message, state.log.commit)
        return
    state.reads.add(message, state.log.commit, state.id)
    broadcast_heartbeats(state, message.context)


def _answer_read(state: RaftState, request: RaftMessage, index: int) -> None:
    if request.sender == state.id:
        state.read_states.append(ReadState(index, request.context))
    else:
        state.send(
            RaftMessage(
                MessageKind.READ_INDEX_RESPONSE, request.sender, state.id, state.term, index,
                context=request.context,
            )
        )  # fmt: skip
