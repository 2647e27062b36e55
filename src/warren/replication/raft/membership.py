"""Changes of the configuration: a replica switches when it applies them, not before."""

from warren.replication.raft.change import Configuration, changed, decode_change
from warren.replication.raft.leadership import broadcast_appends, maybe_commit, send_append, send_entries
from warren.replication.raft.member_progress import Progress
from warren.replication.raft.raft_messages import NOBODY, Entry
from warren.replication.raft.ready import Role
from warren.replication.raft.state import RaftState
from warren.replication.raft.trace import TraceEvent


def apply_change(state: RaftState, entry: Entry) -> Configuration:
    """Switch to the configuration after a committed change, and return it.

    A change that is being applied while a snapshot arrives that contains it changes nothing.
    """
    if entry.index > state.configuration_index:
        assert isinstance(entry.payload, bytes), "the payload of a change is bytes"
        switch(state, changed(state.configuration, decode_change(entry.payload)))
    return state.configuration


def switch(state: RaftState, configuration: Configuration) -> None:
    """Use another configuration; a leader sends to new members at once, and tells those that leave."""
    if state.role is Role.LEADER and state.settings.tell_commit_later:
        for peer, _ in state.peers:
            if peer not in configuration.members:
                # There is no next heartbeat for it.
                send_append(state, peer)
    following = max(state.log.last_index(), 1)
    members: dict[int, Progress] = {}
    for peer in configuration.members:
        progress = state.progress.get(peer)
        if progress is None:
            progress = state.new_progress(following, is_learner=False)
            # It has had no chance to be heard of yet.
            progress.is_active = True
        progress.is_learner = peer in configuration.learners
        members[peer] = progress
    state.set_progress(members)
    state.configuration = configuration
    state.trace.event(TraceEvent.CONFIGURATION_SWITCHED, configuration)
    state.is_learner = state.id in configuration.learners
    is_only_voter = configuration.voters == (state.id,) and not configuration.outgoing
    state.is_only_member = is_only_voter and not state.peers
    if state.role is not Role.LEADER:
        return
    if state.id not in members or state.is_learner:
        if state.settings.step_down_on_removal:
            state.become_follower(state.term, NOBODY)
        return
    # Another majority may have committed more.
    if maybe_commit(state):
        broadcast_appends(state)
    else:
        for peer, _ in state.peers:
            send_entries(state, peer)
    if state.transfer_to != NOBODY and not configuration.is_voter(state.transfer_to):
        state.trace.event(TraceEvent.TRANSFER_ABORTED, state.term, state.transfer_to)
        state.abort_transfer()
