"""The state of a replica that all its roles share, and the few steps that every role may take."""

from collections.abc import Callable

from msgspec import Struct

from warren.replication.raft.change import Configuration
from warren.replication.raft.member_progress import InFlight, Progress
from warren.replication.raft.quorum import VoteResult, joint_index, joint_vote, majority_index
from warren.replication.raft.raft_log import RaftLog, RaftStorage
from warren.replication.raft.raft_messages import NOBODY, HardState, MessageKind, RaftMessage
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.read_index import PendingReads
from warren.replication.raft.ready import ReadState, Role, SoftState
from warren.replication.raft.trace import Trace, TraceEvent

# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_FOLLOWER = Role.FOLLOWER
# Messages by which a replica promises something, so that they wait until it is synced.
_PROMISES = frozenset({
    MessageKind.APPEND_RESPONSE, MessageKind.VOTE_RESPONSE, MessageKind.PRE_VOTE_RESPONSE,
})  # fmt: skip


class RaftDependencies(Struct, frozen=True):
    """What a replica needs from its surroundings."""

    storage: RaftStorage
    # Returns a number from 0 up to, and without, its argument.
    chance: Callable[[int], int]
    trace: Trace = Trace()


class RaftState:
    """The state of one replica. Invariant: term never falls, and vote changes only with it or from nobody."""

    __slots__ = (
        "are_appends_due", "chance", "configuration", "configuration_index", "election_elapsed",
        "election_timeout", "heartbeat_elapsed", "id", "is_learner", "is_only_member",
        "is_storage_asynchronous", "leader", "log", "messages", "messages_after", "peers", "pending_change",
        "pending_reads", "progress", "read_states", "reads", "role", "settings", "storage_due",
        "storage_elapsed", "term", "trace", "transfer_to", "uncommitted_bytes", "vote", "votes",
    )  # fmt: skip

    def __init__(self, replica: int, dependencies: RaftDependencies, settings: RaftSettings) -> None:
        """Begin as a follower in term 0 with what the storage has."""
        self.id = replica
        self.settings = settings
        self.chance = dependencies.chance
        self.trace = dependencies.trace
        self.log = RaftLog(dependencies.storage, self.trace, settings.applying_bytes_max)
        self.term = 0
        self.vote = NOBODY
        self.leader = NOBODY
        self.role = Role.FOLLOWER
        self.configuration = Configuration()
        # Index of the snapshot that the configuration came with: it contains every change up to here.
        self.configuration_index = 0
        self.is_learner = False
        # True if this replica is a voter, and there is no other member.
        self.is_only_member = False
        self.is_storage_asynchronous = settings.async_storage
        # Of each member, in ascending order; only a leader's are true. Replaced by `set_progress` only.
        self.progress: dict[int, Progress] = {}
        # All other members and their progress.
        self.peers: list[tuple[int, Progress]] = []
        self.votes: dict[int, bool] = {}
        # True if a leader has entries that it is to send with the next Ready.
        self.are_appends_due = False
        self.messages: list[RaftMessage] = []
        # Messages that wait until what they promise is synced; a leader's answer to itself is a pair of term
        # and index, since most of them are never read.
        self.messages_after: list[RaftMessage | tuple[int, int]] = []
        self.election_elapsed = 0
        self.heartbeat_elapsed = 0
        # Ticks after which this follower starts an election, drawn anew in each term.
        self.election_timeout = 0
        self.transfer_to = NOBODY
        # What was committed `storage_elapsed` ticks ago, which a leader's own storage should have by now.
        self.storage_due = 0
        self.storage_elapsed = 0
        # No change may be proposed before everything up to this index is applied.
        self.pending_change = 0
        self.uncommitted_bytes = 0
        self.reads = PendingReads()
        # Reads that wait until an entry of this leader's term is committed.
        self.pending_reads: list[RaftMessage] = []
        self.read_states: list[ReadState] = []

    @property
    def hard_state(self) -> HardState:
        """What must not be forgotten."""
        return HardState(self.term, self.vote, self.log.commit)

    @property
    def soft_state(self) -> SoftState:
        """Who leads, and what this replica is."""
        return SoftState(self.leader, self.role)

    def send(self, message: RaftMessage) -> None:
        """Send a message now, or, if it promises something, when what it promises is synced."""
        if message.kind in _PROMISES:
            self.messages_after.append(message)
        else:
            assert message.to != self.id, f"{message.kind.name} to itself"
            self.messages.append(message)

    def acknowledge_own(self, index: int) -> None:
        """Tell this leader that it has all entries up to `index`, when they are synced."""
        self.messages_after.append((self.term, index))

    def take_messages_after(self) -> list[RaftMessage]:
        """Take out the messages that wait until what they promise is synced."""
        taken, self.messages_after = self.messages_after, []
        return [
            RaftMessage(MessageKind.APPEND_RESPONSE, self.id, self.id, *each)
            if isinstance(each, tuple)
            else each
            for each in taken
        ]

    def set_progress(self, members: dict[int, Progress]) -> None:
        """Replace the progress of all members."""
        self.progress = members
        self.peers = [(peer, progress) for peer, progress in members.items() if peer != self.id]

    def new_progress(self, following: int, *, is_learner: bool) -> Progress:
        """Return the progress of a member of which nothing is known."""
        settings = self.settings
        in_flight = InFlight(settings.in_flight_messages_max, settings.in_flight_bytes_max)
        return Progress(following, in_flight, is_learner=is_learner)

    # Quorums.

    def quorum_index(self) -> int:
        """Return the highest index that is durable at a majority, or at both of them."""
        progress, configuration = self.progress, self.configuration
        if not configuration.outgoing:
            matches: list[int] = []
            for voter in configuration.voters:
                its_progress = progress[voter]
                matches.append(its_progress.match)
            return majority_index(matches)
        return joint_index(
            [progress[voter].match for voter in configuration.voters],
            [progress[voter].match for voter in configuration.outgoing],
        )

    def result_of(self, votes: dict[int, bool]) -> VoteResult:
        """Return the result of a vote in this configuration; votes of others do not count."""
        configuration = self.configuration
        return joint_vote(
            [votes.get(voter) for voter in configuration.voters],
            [votes.get(voter) for voter in configuration.outgoing],
        )

    def is_quorum_active(self) -> bool:
        """Return whether a majority was heard of since the last look."""
        active = {
            peer: progress.is_active for peer, progress in self.progress.items() if not progress.is_learner
        }
        return self.result_of(active) is VoteResult.WON

    def is_promotable(self) -> bool:
        """Return whether this replica may be elected: it is a voter, and is not installing a snapshot."""
        progress = self.progress.get(self.id)
        return progress is not None and not progress.is_learner and self.log.snapshot is None

    # Roles.

    def become_follower(self, term: int, leader: int) -> None:
        """Follow `leader`, or wait for one, in this term."""
        self.reset(term)
        self.leader = leader
        self.role = _FOLLOWER
        self.trace.event(TraceEvent.BECAME_FOLLOWER, term)

    def reset(self, term: int) -> None:
        """Forget what belongs to a role; a new term has no vote yet."""
        if term != self.term:
            assert term > self.term, f"term {term} after {self.term}"
            self.term = term
            self.vote = NOBODY
        self.leader = NOBODY
        self.are_appends_due = False
        self.election_elapsed = self.heartbeat_elapsed = self.storage_elapsed = self.storage_due = 0
        self.election_timeout = self.settings.election_ticks + self.chance(self.settings.election_ticks)
        self.transfer_to = NOBODY
        self.votes = {}
        following = self.log.last_index() + 1
        members: dict[int, Progress] = {}
        for peer, progress in self.progress.items():
            fresh = self.new_progress(following, is_learner=progress.is_learner)
            if peer == self.id:
                fresh.match = following - 1
            members[peer] = fresh
        self.set_progress(members)
        self.pending_change = 0
        self.uncommitted_bytes = 0
        self.reads = PendingReads()
        self.pending_reads = []

    def abort_transfer(self) -> None:
        """Lead on, because the one that was to lead did not take over."""
        self.transfer_to = NOBODY
