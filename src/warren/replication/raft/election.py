"""Elections: who may start one, who is voted for, and what the votes decide."""

from enum import Enum

from warren.replication.raft.leadership import become_leader, broadcast_appends
from warren.replication.raft.quorum import VoteResult
from warren.replication.raft.raft_messages import NOBODY, EntryId, MessageKind, RaftMessage
from warren.replication.raft.ready import Role
from warren.replication.raft.state import RaftState
from warren.replication.raft.trace import TraceEvent


class Campaign(Enum):
    """Why votes are asked for."""

    # To find out whether an election could be won.
    PRE_ELECTION = "pre-election"
    ELECTION = "election"
    # To take over from a leader that wants it; its lease is no reason to refuse.
    TRANSFER = "transfer"


def start_election(state: RaftState, campaign: Campaign) -> None:
    """Campaign, if this replica may be elected.

    Invariant: nobody campaigns while a committed change of the configuration is not applied, since the
    votes would be counted in a configuration that is two steps old.
    """
    if state.role is Role.LEADER:
        state.trace.event(TraceEvent.ALREADY_LEADER)
    elif not state.is_promotable():
        state.trace.event(TraceEvent.UNPROMOTABLE)
    elif state.log.has_change_to_apply():
        state.trace.event(TraceEvent.CHANGES_UNAPPLIED, state.term)
    else:
        state.trace.event(TraceEvent.ELECTION_STARTED, state.term)
        _campaign(state, campaign)


def _campaign(state: RaftState, campaign: Campaign) -> None:
    """Ask all voters; the own vote counts when it is synced."""
    if campaign is Campaign.PRE_ELECTION:
        _become_pre_candidate(state)
        kind, answer, term = MessageKind.PRE_VOTE, MessageKind.PRE_VOTE_RESPONSE, state.term + 1
    else:
        _become_candidate(state)
        kind, answer, term = MessageKind.VOTE, MessageKind.VOTE_RESPONSE, state.term
    last = state.log.last_id()
    commit, commit_term = _known_commit(state)
    configuration = state.configuration
    for voter in sorted({*configuration.voters, *configuration.outgoing}):
        if voter == state.id:
            state.send(RaftMessage(answer, voter, state.id, term))
            continue
        state.trace.event(TraceEvent.VOTE_REQUESTED, last, kind, voter, state.term)
        is_forced = campaign is Campaign.TRANSFER
        state.send(
            RaftMessage(
                kind, voter, state.id, term, last.index, last.term, is_forced=is_forced, commit=commit,
                hint=commit_term,
            )
        )  # fmt: skip


def _become_pre_candidate(state: RaftState) -> None:
    """Change nothing that is kept: neither the term nor the vote."""
    state.votes = {}
    state.leader = NOBODY
    state.role = Role.PRE_CANDIDATE
    state.trace.event(TraceEvent.BECAME_PRE_CANDIDATE, state.term)


def _become_candidate(state: RaftState) -> None:
    """Begin a new term, and vote for oneself in it."""
    state.reset(state.term + 1)
    state.vote = state.id
    state.role = Role.CANDIDATE
    state.trace.event(TraceEvent.BECAME_CANDIDATE, state.term)


def handle_vote_response(state: RaftState, message: RaftMessage) -> None:
    """Count a vote; the first one of each voter counts."""
    voter, is_granted = message.sender, not message.is_rejected
    state.trace.event(TraceEvent.VOTE_RECEIVED, message.kind, voter, state.term, message.is_rejected)
    if _learns_change(state, message):
        return
    state.votes.setdefault(voter, is_granted)
    counted = [vote for peer, vote in state.votes.items() if state.configuration.is_voter(peer)]
    granted = sum(counted)
    state.trace.event(TraceEvent.VOTES_COUNTED, granted, message.kind, len(counted) - granted)
    result = state.result_of(state.votes)
    if result is VoteResult.LOST:
        # The term stays, and with it the own vote.
        state.become_follower(state.term, NOBODY)
    elif result is VoteResult.WON:
        if state.role is Role.PRE_CANDIDATE:
            _campaign(state, Campaign.ELECTION)
        else:
            become_leader(state)
            broadcast_appends(state)


# Votes for others.


def is_ignored_by_lease(state: RaftState, message: RaftMessage) -> bool:
    """Return whether a request for a vote is ignored because the own leader was heard of lately."""
    ticks = state.settings.election_ticks - state.election_elapsed
    if message.is_forced or not state.settings.check_quorum or state.leader == NOBODY or ticks <= 0:
        return False
    state.trace.event(TraceEvent.VOTE_IGNORED, message, state.log.last_id(), state.vote, state.term, ticks)
    return True


def handle_vote_request(state: RaftState, message: RaftMessage) -> None:
    """Vote for a candidate whose log is at least as complete, once in each term."""
    is_pre_vote = message.kind is MessageKind.PRE_VOTE
    answer = MessageKind.PRE_VOTE_RESPONSE if is_pre_vote else MessageKind.VOTE_RESPONSE
    _learns_change(state, message)
    can_vote = (
        state.vote == message.sender
        or (state.vote == NOBODY and state.leader == NOBODY)
        or (is_pre_vote and message.term > state.term)
    )
    last = state.log.last_id()
    # A learner votes too if it is asked: it may be a voter by a change that it has not applied yet.
    if can_vote and EntryId(message.log_term, message.index) >= last:
        state.trace.event(TraceEvent.VOTE_CAST, message, last, state.vote, state.term)
        # To the term of the request, since that of a pre-vote is not the own one.
        state.send(RaftMessage(answer, message.sender, state.id, message.term))
        if not is_pre_vote:
            state.election_elapsed = 0
            state.vote = message.sender
    else:
        reject_vote(state, message, last)


def reject_vote(state: RaftState, message: RaftMessage, last: EntryId) -> None:
    """Refuse a vote, and tell the own term."""
    is_pre_vote = message.kind is MessageKind.PRE_VOTE
    answer = MessageKind.PRE_VOTE_RESPONSE if is_pre_vote else MessageKind.VOTE_RESPONSE
    state.trace.event(TraceEvent.VOTE_REJECTED, message, last, state.vote, state.term)
    commit, commit_term = _known_commit(state)
    state.send(
        RaftMessage(
            answer, message.sender, state.id, state.term, is_rejected=True, commit=commit, hint=commit_term
        )
    )


def _known_commit(state: RaftState) -> tuple[int, int]:
    """Return the commit index and the term of that entry, as a vote tells them."""
    if not state.settings.commit_in_votes:
        return 0, 0
    commit = state.log.commit
    return commit, state.log.term(commit) or 0


def _learns_change(state: RaftState, message: RaftMessage) -> bool:
    """Learn from a vote what is committed; True if that ends the own election, since it may change who votes.

    What another replica knows as committed stays so. If this log has that entry, it has all before it too.
    """
    commit = message.commit
    if not message.hint or commit <= state.log.commit or state.role is Role.LEADER:
        return False
    if not state.log.matches(commit, message.hint):
        return False
    state.log.commit_to(commit)
    if state.role is Role.FOLLOWER or not state.log.has_change_to_apply():
        return False
    state.become_follower(state.term, NOBODY)
    return True
