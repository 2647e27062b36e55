"""One replica of a group that agrees on a log: the Raft core, without I/O, clock or chance.

The driver calls `step` with messages, `tick` as time passes, and after each turn `ready`, which says what is
to be written, sent and applied. Nothing that a replica has promised depends on what is not synced: see
`Ready`, and the contract in docs/internals/raft.md.
"""

from collections.abc import Callable, Mapping, Sequence

from warren.replication.raft import following, leadership, membership
from warren.replication.raft.change import Configuration, ConfigurationChange, encode_change
from warren.replication.raft.election import (
    Campaign,
    handle_vote_request,
    handle_vote_response,
    is_ignored_by_lease,
    reject_vote,
    start_election,
)
from warren.replication.raft.leadership import propose_payload
from warren.replication.raft.member_progress import Progress
from warren.replication.raft.raft_log import RaftLog
from warren.replication.raft.raft_messages import (
    NOBODY,
    RESPONSES,
    Entry,
    EntryId,
    EntryKind,
    HardState,
    MessageKind,
    RaftMessage,
    Snapshot,
)
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Ready, Role, SoftState, Written
from warren.replication.raft.state import RaftDependencies, RaftState
from warren.replication.raft.trace import ChangeRefusal, TraceEvent

# The index of a proposal that was passed on to the leader, which gives it one.
FORWARDED = -1

# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_LEADER = Role.LEADER
_FOLLOWER = Role.FOLLOWER
_VOTES = frozenset({MessageKind.VOTE, MessageKind.PRE_VOTE})
_FROM_LEADER = frozenset({MessageKind.APPEND, MessageKind.HEARTBEAT, MessageKind.SNAPSHOT})


class Replica:
    """One replica. Not to be entered again from a port."""

    __slots__ = (
        "_durable_term", "_state", "_told_commit", "_told_leader", "_told_role", "_told_term", "_told_vote",
    )  # fmt: skip

    def __init__(
        self, replica: int, dependencies: RaftDependencies, settings: RaftSettings, *, applied: int = 0
    ) -> None:
        """Start or restart with what the storage has, as a follower; `applied` is what the machine has."""
        assert replica != NOBODY, "a replica has a number"
        state = self._state = RaftState(replica, dependencies, settings)
        hard, configuration = dependencies.storage.initial()
        state.term, state.vote = hard.term, hard.vote
        state.log.restart(max(hard.commit, state.log.commit), applied)
        membership.switch(state, configuration)
        state.become_follower(state.term, NOBODY)
        # What the last Ready has told of the hard and of the soft state.
        self._told_term, self._told_vote, self._told_commit = state.term, state.vote, state.log.commit
        self._told_leader, self._told_role = state.leader, state.role
        # Messages of a higher term wait for the storage.
        self._durable_term = state.term
        state.trace.event(
            TraceEvent.STARTED, configuration, state.hard_state, state.log.applied, state.log.last_id()
        )

    # What it is.

    @property
    def id(self) -> int:
        """The number of this replica."""
        return self._state.id

    @property
    def hard_state(self) -> HardState:
        """Term, vote and commit index now, synced or not."""
        return self._state.hard_state

    @property
    def soft_state(self) -> SoftState:
        """Who leads, and the role of this replica."""
        return self._state.soft_state

    @property
    def election_ticks(self) -> int:
        """The ticks without a leader after which this replica starts an election, at the earliest."""
        return self._state.settings.election_ticks

    def leads(self) -> bool:
        """Return whether this replica leads, as far as it knows."""
        return self._state.role is _LEADER

    def is_only_member(self) -> bool:
        """Return whether this replica is a voter without any other member, learners too."""
        return self._state.is_only_member

    def commit_index(self) -> int:
        """Return the highest index known as committed."""
        return self._state.log.commit

    @property
    def log(self) -> RaftLog:
        """The log, for reading."""
        return self._state.log

    @property
    def configuration(self) -> Configuration:
        """The configuration as of the last applied change."""
        return self._state.configuration

    @property
    def progress(self) -> Mapping[int, Progress]:
        """What a leader knows of each member, in ascending order; of another replica it is not true."""
        return self._state.progress

    @property
    def transfer_to(self) -> int:
        """The member that is being made the leader, or nobody."""
        return self._state.transfer_to

    @property
    def election_timeout(self) -> int:
        """Ticks without a leader after which this replica starts an election."""
        return self._state.election_timeout

    @election_timeout.setter
    def election_timeout(self, ticks: int) -> None:
        self._state.election_timeout = ticks

    def change_refusal(self, change: ConfigurationChange) -> ChangeRefusal | None:
        """Return why a leader would not propose this change now, None if it would."""
        return leadership.change_refusal(self._state, change)

    # What may be asked of it.

    def propose(self, payload: object, size: int) -> int:
        """Append an entry; return its index, `FORWARDED`, or 0 if it cannot be taken.

        A leader refuses while it hands over, when it is no member any more, and when too much is uncommitted.
        """
        if self._state.role is _LEADER:
            return propose_payload(self._state, payload, size)
        return self._propose(Entry(0, 0, EntryKind.NORMAL, payload, size=size))

    def append_alone(self) -> EntryId | None:
        """Append an entry that counts as written, committed and applied; None if that is not permitted.

        Permitted is it to a leader without any other member, whose log is applied to its end. The caller has
        the storage and the machine take an entry with the returned id before it calls anything else, and
        writes it in front of whatever comes later: a crash that loses it then loses all that could depend on
        it. It must change nothing that survives a crash. Another member, a learner too, may have applied what
        a crash undoes.
        """
        state = self._state
        if (
            state.role is not Role.LEADER
            or len(state.progress) != 1
            or state.log.applied != state.log.last_index()
        ):
            return None
        appended = EntryId(state.term, state.log.applied + 1)
        state.log.append_applied(appended.index)
        state.progress[state.id].matches(appended.index)
        return appended

    def propose_change(self, change: ConfigurationChange) -> int:
        """Propose a change of the configuration, as `propose` does an entry.

        If it cannot be applied now (`change_refusal`), an empty entry takes its place. A leader that would
        step down by it hands over first, and returns 0: whoever leads then is to be asked again.
        """
        if self._state.role is Role.LEADER and leadership.hands_over_before(self._state, change):
            return 0
        payload = encode_change(change)
        return self._propose(Entry(0, 0, EntryKind.CHANGE, payload, size=len(payload)))

    def read_index(self, context: bytes) -> None:
        """Ask for the index that a read must see; it comes as a read state with the same context."""
        state = self._state
        message = RaftMessage(MessageKind.READ_INDEX, state.leader, state.id, context=context)
        if state.role is Role.LEADER:
            leadership.handle_read(state, message)
        elif state.leader != NOBODY:
            state.send(message)

    def campaign(self) -> None:
        """Start an election, as a tick does when no leader was heard of."""
        pre_vote = self._state.settings.pre_vote
        start_election(self._state, Campaign.PRE_ELECTION if pre_vote else Campaign.ELECTION)

    def continue_alone(self) -> None:
        """Be the only member and lead, since the others are gone for good; for one that does not lead.

        A snapshot with this configuration has to be stored before anything proposed later is confirmed. Lost
        is what others have committed and this one does not have: of two voters, each has everything.
        """
        membership.switch(self._state, Configuration((self._state.id,)))
        self._state.become_follower(self._state.term, NOBODY)
        self.campaign()

    def transfer(self, to: int) -> None:
        """Have another member lead; it is done, or given up, within an election's time."""
        state = self._state
        if state.role is Role.LEADER:
            leadership.handle_transfer(state, to)
        elif state.leader != NOBODY:
            state.send(RaftMessage(MessageKind.TRANSFER, state.leader, state.id, state.term, to))

    def hand_over(self) -> int:
        """Have the voter lead that has most of the log, as `transfer` does; return it, or nobody."""
        state = self._state
        return leadership.hand_over(state, state.configuration.voters) if state.role is _LEADER else NOBODY

    def forget_leader(self) -> None:
        """Vote for others at once, because the leader is known to be gone; only a follower does."""
        if self._state.role is Role.FOLLOWER:
            following.forget_leader(self._state)

    def leader_ended(self) -> None:
        """Vote for others at once, and campaign with the next tick, because the leader's process has ended.

        All others hear of it at nearly the same time, and their ticks are apart: so their votes rarely split.
        """
        state = self._state
        if state.role is Role.FOLLOWER:
            following.forget_leader(state)
            state.election_elapsed = max(state.election_elapsed, state.election_timeout - 1)

    # What it is told.

    def tick(self) -> None:
        """Note that time has passed."""
        state = self._state
        settings = state.settings
        state.election_elapsed += 1
        if state.role is not Role.LEADER:
            if state.election_elapsed >= state.election_timeout and state.is_promotable():
                state.election_elapsed = 0
                self.campaign()
            return
        state.heartbeat_elapsed += 1
        # Before members are asked anew whether they are there.
        leadership.check_storage(state)
        if state.election_elapsed >= settings.election_ticks:
            state.election_elapsed = 0
            if settings.check_quorum:
                leadership.check_quorum(state)
            if state.role is Role.LEADER and state.transfer_to != NOBODY:
                state.abort_transfer()
                # Proposals are taken again, also the one that was due meanwhile.
                leadership.leave_joint_if_due(state)
        if state.role is Role.LEADER and state.heartbeat_elapsed >= settings.heartbeat_ticks:
            self.send_heartbeats()

    def resume_ticks(self) -> None:
        """Note that time passes again, of which nothing was told for a while.

        A leader that was not ticked has asked nobody meanwhile, so that nobody's silence counts against it.
        """
        state = self._state
        if state.role is Role.LEADER:
            state.election_elapsed = 0

    def send_heartbeats(self) -> None:
        """Send heartbeats now, if this replica leads."""
        state = self._state
        if state.role is Role.LEADER:
            state.heartbeat_elapsed = 0
            leadership.broadcast_heartbeats(state, state.reads.last_context())

    def unreachable(self, peer: int) -> None:
        """Note that messages to a member may have been lost."""
        if self._state.role is Role.LEADER:
            leadership.handle_unreachable(self._state, peer)

    def snapshot_sent(self, peer: int, *, is_done: bool) -> None:
        """Note that the snapshot for a member has been transferred, or has failed to be."""
        if self._state.role is Role.LEADER:
            leadership.handle_snapshot_status(self._state, peer, is_done=is_done)

    def storage_ready(self) -> None:
        """Note that the storage can read what it could not before, or has a snapshot."""
        if self._state.role is Role.LEADER:
            for peer, _ in self._state.peers:
                while leadership.send_entries(self._state, peer):
                    pass

    def apply_change(self, entry: Entry) -> Configuration:
        """Switch to the configuration after a change that is being applied; return it.

        If a snapshot that contains the change has arrived meanwhile, the configuration stays the snapshot's.
        """
        assert entry.kind is EntryKind.CHANGE, f"entry {entry.index} is no change of the configuration"
        return membership.apply_change(self._state, entry)

    def applied(self, index: int) -> None:
        """Note that the machine has applied everything up to an index."""
        state = self._state
        released = state.log.has_applied(max(index, state.log.applied))
        if released:
            state.uncommitted_bytes = max(state.uncommitted_bytes - released, 0)
        if state.configuration.auto_leave:
            leadership.leave_joint_if_due(state)

    def written(self, written: Written) -> None:
        """Note that a Ready's writes, and all before them, are synced.

        An acknowledgement of a former term says nothing about entries: they may have been replaced by others
        that are still being written.
        """
        state = self._state
        if self._durable_term < written.term:
            self._durable_term = written.term
        if written.index:
            if written.term < state.term:
                state.trace.event(TraceEvent.WRITTEN_OF_LOWER_TERM, state.term, written.term)
            else:
                state.log.written(written.index, written.log_term)
        if written.snapshot:
            state.log.snapshot_written(written.snapshot)
            self.applied(written.snapshot)

    def step(self, message: RaftMessage) -> bool:
        """Take a message of a replica, also of this one; return False if an answer is of no member."""
        state = self._state
        if message.kind in RESPONSES and message.sender not in state.progress:
            return False
        if message.term > state.term:
            if not self._takes_higher_term(message):
                return True
        elif 0 < message.term < state.term:
            self._refuse_lower_term(message)
            return True
        if message.kind in _VOTES:
            handle_vote_request(state, message)
        else:
            handler = _handlers_of(state.role).get(message.kind)
            if handler is not None:
                handler(state, message)
        return True

    def _takes_higher_term(self, message: RaftMessage) -> bool:
        """Go to the message's term, if that is what its sender is in; return False to ignore it."""
        state = self._state
        if message.kind in _VOTES and is_ignored_by_lease(state, message):
            return False
        # The term of a pre-vote is one that nobody is in, and that of a granted one the own request's.
        is_hypothetical = message.kind is MessageKind.PRE_VOTE or (
            message.kind is MessageKind.PRE_VOTE_RESPONSE and not message.is_rejected
        )
        if not is_hypothetical:
            state.trace.event(TraceEvent.HIGHER_TERM, message, state.term)
            state.become_follower(message.term, message.sender if message.kind in _FROM_LEADER else NOBODY)
        return True

    def _refuse_lower_term(self, message: RaftMessage) -> None:
        """Answer what would otherwise be repeated for ever, and ignore the rest."""
        state = self._state
        settings = state.settings
        if message.kind in (MessageKind.HEARTBEAT, MessageKind.APPEND) and (
            settings.check_quorum or settings.pre_vote
        ):
            # A deposed leader learns of the term, which nobody else may tell it: who was cut off and has
            # a higher term can neither win a pre-vote nor be heard by those who hear this leader.
            state.send(RaftMessage(MessageKind.APPEND_RESPONSE, message.sender, state.id, state.term))
        elif message.kind is MessageKind.PRE_VOTE:
            reject_vote(state, message, state.log.last_id())
        else:
            state.trace.event(TraceEvent.LOWER_TERM, message, state.term)

    def _propose(self, entry: Entry) -> int:
        state = self._state
        if state.role is Role.LEADER:
            return leadership.propose(state, (entry,))
        if state.role is Role.FOLLOWER and state.leader != NOBODY and state.settings.forward_proposals:
            state.send(RaftMessage(MessageKind.PROPOSE, state.leader, state.id, entries=(entry,)))
            return FORWARDED
        state.trace.event(TraceEvent.PROPOSAL_WITHOUT_LEADER, state.term)
        return 0

    # What is to be done.

    def ready(self) -> Ready | None:
        """Return what is to be done, None if there is nothing; what it returns counts as begun."""
        state = self._state
        if state.are_appends_due:
            leadership.send_due_appends(state)
        log = state.log
        is_unstable_allowed = not state.settings.async_storage
        entries = log.next_unstable()
        snapshot = log.next_snapshot()
        committed = log.next_committed(is_unstable_allowed)
        has_term_changed = state.term != self._told_term or state.vote != self._told_vote
        has_hard_changed = has_term_changed or log.commit != self._told_commit
        has_soft_changed = state.leader != self._told_leader or state.role is not self._told_role
        if not (
            entries or committed or has_hard_changed or has_soft_changed or snapshot is not None
            or state.messages or state.messages_after or state.read_states
        ):  # fmt: skip
            return None
        self._told_term, self._told_vote, self._told_commit = state.term, state.vote, log.commit
        self._told_leader, self._told_role = state.leader, state.role
        messages, messages_after = self._take_messages()
        ready = Ready(
            state.hard_state if has_hard_changed else None,
            entries,
            snapshot,
            bool(entries) or has_term_changed,
            log.commit,
            messages,
            messages_after,
            self._expected_acknowledgement(snapshot),
            committed,
            state.soft_state if has_soft_changed else None,
            tuple(state.read_states),
        )
        if state.read_states:
            state.read_states = []
        log.hand_over()
        if committed:
            log.apply_handed_out(committed, is_unstable_allowed)
        return ready

    def is_alone(self) -> bool:
        """Return whether this replica decides alone, and nothing is to be done but to write entries.

        It leads, has no other member (learners too), its term is synced, and no change, read or snapshot is
        on its way. Then `begin_alone` and `written_alone` lead to the same as `ready`, `step` and `written`.
        """
        state = self._state
        log = state.log
        return (
            state.role is _LEADER
            and self._told_role is _LEADER
            and state.is_only_member
            and state.is_storage_asynchronous
            and state.term == self._told_term == self._durable_term
            and state.pending_change <= log.applied
            and log.commit == self._told_commit == log.applying
            and log.snapshot is None
            and not (state.messages or state.pending_reads or state.read_states)
        )

    def begin_alone(self) -> tuple[Entry, ...]:
        """Return the entries that are to be written, as the only thing to be done; only while `is_alone`.

        When they are synced, and all before them, `written_alone` is told.
        """
        state = self._state
        entries = state.log.next_unstable()
        if entries:
            # This replica is the only one that would be told that it has them.
            state.messages_after = []
            state.log.hand_over()
        return entries

    def written_alone(self, entries: Sequence[Entry]) -> bool:
        """Note that the entries of a `begin_alone` are synced, and all before them.

        Return True if that commits them: they are to be applied now, as `Ready.committed`. If it is False
        this replica does not decide alone any more, and `ready` tells what follows.
        """
        state, first, last = self._state, entries[0], entries[-1]
        if last.term == state.term and first.index == state.log.offset and self.is_alone():
            progress = state.progress[state.id]
            progress.matches(last.index)
            state.log.commit_written(entries)
            self._told_commit = state.log.commit
            return True
        own = RaftMessage(MessageKind.APPEND_RESPONSE, state.id, state.id, last.term, last.index)
        self.step(own)
        self.written(Written(last.term, last.index, last.term))
        return False

    def advance(self, ready: Ready) -> None:
        """Note that all of a Ready is written, synced, sent and applied; synchronous use only."""
        for message in ready.messages_after:
            if message.to == self._state.id:
                self.step(message)
        if ready.written is not None:
            self.written(ready.written)
        if ready.committed:
            self.applied(ready.committed[-1].index)

    def _waits_for_term(self) -> bool:
        """Return whether messages of this term must wait until the storage has synced it."""
        state = self._state
        settings = state.settings
        return settings.async_storage and settings.sync_term_first and state.term > self._durable_term

    def _take_messages(self) -> tuple[tuple[RaftMessage, ...], tuple[RaftMessage, ...]]:
        """Take out what is to be sent now, and what when the storage is synced."""
        state = self._state
        messages, messages_after = state.messages, state.take_messages_after()
        if messages:
            state.messages = []
        if messages and self._waits_for_term():
            # A pre-vote promises nothing, and what is passed on to a leader has no term.
            sent: list[RaftMessage] = []
            waiting: list[RaftMessage] = []
            for message in messages:
                is_promise = message.term > self._durable_term and message.kind is not MessageKind.PRE_VOTE
                (waiting if is_promise else sent).append(message)
            messages, messages_after = sent, waiting + messages_after
        return tuple(messages), tuple(messages_after)

    def _expected_acknowledgement(self, snapshot: Snapshot | None) -> Written | None:
        """Return what `written` is to be told after this Ready, None if it need not be called.

        All entries that are being written are acknowledged anew with each write, since acknowledgements of a
        former term do not count.
        """
        state = self._state
        last = state.log.last_unstable()
        if last is None and snapshot is None:
            return Written(state.term) if self._waits_for_term() else None
        return Written(
            state.term,
            last.index if last is not None else 0,
            last.term if last is not None else 0,
            snapshot.index if snapshot is not None else 0,
        )


def _follow_and(handle: Callable[[RaftState, RaftMessage], None]) -> Callable[[RaftState, RaftMessage], None]:
    """Return a handler that first accepts the sender as the leader of the term."""

    def handler(state: RaftState, message: RaftMessage) -> None:
        if state.role is _FOLLOWER:
            state.election_elapsed = 0
            state.leader = message.sender
        else:
            state.become_follower(message.term, message.sender)
        handle(state, message)

    return handler


def _forward(state: RaftState, message: RaftMessage) -> None:
    """Pass a proposal or a request on to the leader; without one it is lost, and its sender asks again."""
    if state.leader != NOBODY and state.leader != message.sender:
        state.send(
            RaftMessage(
                message.kind, state.leader, message.sender, message.term, message.index,
                entries=message.entries, context=message.context,
            )
        )  # fmt: skip


def _propose_for(state: RaftState, message: RaftMessage) -> None:
    leadership.propose(state, message.entries)


def _transfer_for(state: RaftState, message: RaftMessage) -> None:
    leadership.handle_transfer(state, message.index)


# What a replica does with a message of its own term, by its role; the rest is ignored.
_Handlers = dict[MessageKind, Callable[[RaftState, RaftMessage], None]]

_OF_LEADER: _Handlers = {
    MessageKind.APPEND: _follow_and(following.handle_append),
    MessageKind.HEARTBEAT: _follow_and(following.handle_heartbeat),
    MessageKind.SNAPSHOT: _follow_and(following.handle_snapshot),
}
_AS_FOLLOWER: _Handlers = {
    **_OF_LEADER,
    MessageKind.TIMEOUT_NOW: following.handle_timeout_now,
    MessageKind.READ_INDEX: _forward,
    MessageKind.READ_INDEX_RESPONSE: following.handle_read_response,
    MessageKind.TRANSFER: _forward,
    MessageKind.PROPOSE: _forward,
}
_AS_PRE_CANDIDATE: _Handlers = {**_OF_LEADER, MessageKind.PRE_VOTE_RESPONSE: handle_vote_response}
_AS_CANDIDATE: _Handlers = {**_OF_LEADER, MessageKind.VOTE_RESPONSE: handle_vote_response}
_AS_LEADER: _Handlers = {
    MessageKind.APPEND_RESPONSE: leadership.handle_append_response,
    MessageKind.HEARTBEAT_RESPONSE: leadership.handle_heartbeat_response,
    MessageKind.READ_INDEX: leadership.handle_read,
    MessageKind.TRANSFER: _transfer_for,
    MessageKind.PROPOSE: _propose_for,
}


def _handlers_of(role: Role) -> _Handlers:
    """Return the handlers of a role: the hash of an enum's member costs more than a comparison."""
    if role is _LEADER:
        return _AS_LEADER
    if role is _FOLLOWER:
        return _AS_FOLLOWER
    return _AS_CANDIDATE if role is Role.CANDIDATE else _AS_PRE_CANDIDATE
