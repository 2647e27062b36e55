"""Applies the records of a metadata file to empty metadata, and says what cannot be read."""

from collections.abc import Callable
from dataclasses import dataclass, field

from warren.journal.codec import (
    NO_VOTE,
    CodecError,
    LoggedCommand,
    VoteState,
    decode_command,
    decode_entry,
    decode_hard_state,
    decode_state_end,
)
from warren.journal.effects_codec import decode_effects
from warren.journal.file_format import (
    BATCH,
    COMMANDS_SINCE,
    EFFECTS,
    EFFECTS_STATE_END,
    ENTRY,
    HARD,
    HEAD_SIZE,
    ORIGIN,
    STATE,
    STATE_END,
    JournalError,
    seed_of,
    version_of,
)
from warren.journal.high_water_mark import LOG_ID_SIZE, HighWaterMarkFile
from warren.journal.metadata_log import LoggedProposal
from warren.journal.parameter_cipher import Cipher
from warren.journal.raft_entry import EmptyEntry, MembersChange
from warren.metadata.commands import CommandContext, MetadataCommand, Outcome
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.machine import Metadata
from warren.replication.raft.change import ChangeRefused, Configuration, changed, decode_change
from warren.replication.raft.raft_messages import NOBODY, Entry, EntryKind
from warren.store.record import HEAD_SIZE as RECORD_HEAD_SIZE
from warren.store.record import encode, is_intact

_NO_MEMBERS = Configuration()


class JournalLossError(JournalError):
    """A part of the log is missing; says where the log ends and what is missing."""

    def __init__(self, at: int, reason: str, *, is_end: bool = False) -> None:
        super().__init__(at, reason)
        # True if the file is the right one, and only its end is lost.
        self.is_end = is_end


@dataclass(kw_only=True)
class RecoveredLog:
    """What was found of the log."""

    # The file of the high-water mark, which the journal continues.
    mark: HighWaterMarkFile
    # None if there is no file, or if it does not contain the id.
    log_id: bytes | None = None
    generation: int = 0
    version: int = 0
    # Whether there is a file, the end of its last intact record, and the index of the last change in it that
    # was applied.
    is_there: bool = False
    end: int = 0
    index: int = 0
    # The time at which the last command was proposed.
    now: int = 0
    # Term and vote as they were last written, the term of that change, and the configuration there; 0 and no
    # members in formats without them.
    hard: VoteState = NO_VOTE
    term: int = 0
    configuration: Configuration = _NO_MEMBERS
    # Entries behind `index`, with their records, of which it is not known that they are committed.
    tail: list[tuple[Entry, bytes]] = field(default_factory=list)
    # Records before the end that cannot be read.
    damage: list[JournalError] = field(default_factory=list)
    # What is missing; None if the log is complete.
    loss: JournalLossError | None = None


def replay(
    data: bytes,
    metadata: Metadata,
    found: RecoveredLog,
    cipher: Cipher | None = None,
    *,
    node: int = NODE_ALONE,
) -> None:
    """Rebuild `metadata` as the file of `node` with the content `data` says, and fill in `found`.

    Entries are applied that are known as committed; while the node is the only voter, all are. Raises
    JournalError for a newer format or a file of another kind.
    """
    found.is_there = True
    if version_of(data) >= COMMANDS_SINCE:
        _CommandReader(data, metadata, found, cipher, node=node).read()
        return
    metadata.is_cascading = False
    try:
        _EffectsReader(data, metadata, found, cipher).read()
    finally:
        metadata.is_cascading = True


class _LogReader:
    """One pass over a file of any format."""

    # True if the rest of a batch cannot be read without a command in it.
    _depends_on_all = False

    def __init__(self, data: bytes, metadata: Metadata, found: RecoveredLog, cipher: Cipher | None) -> None:
        self._cipher = cipher
        self._data = data
        self._seed = seed_of(data[:HEAD_SIZE])
        found.version = version_of(data)
        self._metadata = metadata
        self._found = found
        # The highest index in the log so far.
        self._index = 0
        # True behind the end of the state.
        self._is_whole = False
        # What is done with the body of a record of each kind; raises CodecError if it is unknown.
        self._takers: dict[int, Callable[[bytes], None]] = {}

    def read(self) -> None:
        """Apply every record in order."""
        data, seed = self._data, self._seed
        batch = encode(BATCH, b"", seed)
        at = HEAD_SIZE
        while True:
            size = is_intact(data, at, seed)
            if size:
                try:
                    self._take(at, size)
                except CodecError as error:
                    self._damaged(at, str(error))
                    if self._is_whole and self._depends_on_all:
                        size = max(size, data.find(batch, at + size) - at)
                at += size
                continue
            # Everything before a BATCH was synced, and so was the snapshot before the file was renamed.
            synced = data.find(batch, at + 1)
            if synced >= 0 or not self._is_whole:
                self._damaged(at, "a record is damaged")
            if synced < 0:
                break
            at = synced
        self._metadata.index = self._found.index = self._index
        self._found.end = at

    def _take(self, at: int, size: int) -> None:
        kind = self._data[at + RECORD_HEAD_SIZE - 1]
        take = self._takers.get(kind)
        if take is not None:
            take(self._data[at + RECORD_HEAD_SIZE : at + size])
        elif kind == ORIGIN:
            body = self._data[at + RECORD_HEAD_SIZE : at + size]
            self._found.log_id = body[:LOG_ID_SIZE]
            self._found.generation = int.from_bytes(body[LOG_ID_SIZE:], "big")
        elif kind != BATCH:
            raise CodecError(f"a record of the unknown kind {kind}")

    def _damaged(self, at: int, what: str) -> None:
        self._found.damage.append(JournalError(at, what))

    def _apply(self, command: MetadataCommand, context: CommandContext) -> None:
        """Apply a part of the state, or an effect; CodecError if the state is refused."""
        reply = self._metadata.apply(command, context)
        # The log may contain commands that were refused when they were first applied.
        if reply.outcome is Outcome.REFUSED and not self._is_whole:
            raise CodecError(f"{type(command).__name__} is refused: {reply.text}")


class _CommandReader(_LogReader):
    """Reads commands: each does again what it did when it was applied first."""

    _depends_on_all = True

    def __init__(
        self, data: bytes, metadata: Metadata, found: RecoveredLog, cipher: Cipher | None, *, node: int
    ) -> None:
        super().__init__(data, metadata, found, cipher)
        self._node = node
        # True if commands may be missing before the next one.
        self._is_gap = False
        # The highest index known as committed, and the entries that are not applied.
        self._commit = 0
        self._waiting: list[tuple[LoggedCommand, bytes]] = []
        self._takers = {STATE: self._state, STATE_END: self._state_end, ENTRY: self._entry, HARD: self._hard}

    def read(self) -> None:
        """Apply what is known as committed; the rest is the tail."""
        super().read()
        self._found.tail = [(_raft_entry(logged, body), body) for logged, body in self._waiting]

    def _damaged(self, at: int, what: str) -> None:
        super()._damaged(at, what)
        self._is_gap = True

    def _state(self, body: bytes) -> None:
        self._apply(decode_command(body, self._cipher), CommandContext(index=0, now=0, is_accepted=True))

    def _state_end(self, body: bytes) -> None:
        end = decode_state_end(body)
        metadata = self._metadata
        metadata.next_number = max(metadata.next_number, end.next_number)
        metadata.next_transient_number = max(metadata.next_transient_number, end.next_transient_number)
        self._is_whole = True
        self._index, self._found.now, self._found.term = end.index, end.now, end.term
        self._commit = end.index
        self._found.configuration = Configuration(
            end.members, end.outgoing, end.learners, end.learners_next, end.auto_leave
        )

    def _hard(self, body: bytes) -> None:
        hard, known = decode_hard_state(body), self._found.hard
        is_second = hard.term == known.term and known.vote not in (NOBODY, hard.vote)
        if hard.term < known.term or is_second:
            raise CodecError(f"a vote for {hard.vote} in term {hard.term} follows {known}")
        self._found.hard = hard

    def _entry(self, body: bytes) -> None:
        logged = decode_entry(body, self._cipher)
        index, position, metadata = logged.context.index, logged.position, self._metadata
        if self._is_gap:
            # Queues in commands that cannot be read have numbers that no other queue may get.
            metadata.next_number = max(metadata.next_number, position.number)
            if position.term > self._found.hard.term:
                # So may the vote.
                self._found.hard = VoteState(position.term, NOBODY)
            self._is_gap = False
            self._waiting.clear()
            self._index = index - 1
            self._apply_entry(logged)
            return
        self._check_place(logged)
        self._commit = max(self._commit, position.commit)
        waiting = self._waiting
        waiting.append((logged, body))
        while waiting and (waiting[0][0].context.index <= self._commit or self._decides_alone):
            self._check_number(waiting[0][0])
            self._apply_entry(waiting.pop(0)[0])

    @property
    def _decides_alone(self) -> bool:
        """True if every entry in the log is committed, since the node is the only voter."""
        configuration = self._found.configuration
        # Without members, the end of the state cannot be read, or a node was never in a group.
        return configuration.voters in ((), (self._node,)) and not configuration.is_joint

    def _check_place(self, logged: LoggedCommand) -> None:
        """CodecError if the entry can follow no other; it replaces entries of another leader, if it can."""
        index, term, found = logged.context.index, logged.position.term, self._found
        waiting = self._waiting
        last, last_term = self._index, found.term
        if waiting:
            last, last_term = waiting[-1][0].context.index, waiting[-1][0].position.term
        if term < last_term or term > found.hard.term:
            raise CodecError(
                f"change {index} of term {term} follows one of term {last_term}, and the vote of term "
                f"{found.hard.term}"
            )
        if self._index < index <= last and term > waiting[index - self._index - 1][0].position.term:
            del waiting[index - self._index - 1 :]
        elif index != last + 1:
            raise CodecError(f"change {index} follows change {last}")

    def _check_number(self, logged: LoggedCommand) -> None:
        """CodecError if the next entry was made from other metadata than those that were read."""
        position, number = logged.position, self._metadata.next_number
        # 0: it was written by a member that had not applied what it knew as committed.
        if position.number not in (0, number) and position.commit == self._index:
            raise CodecError(
                f"change {logged.context.index} was made when {position.number} was the next number of a "
                f"queue, which is {number} here"
            )

    def _apply_entry(self, logged: LoggedCommand) -> None:
        """Apply the next entry, which is committed."""
        found = self._found
        self._index, found.term = logged.context.index, logged.position.term
        found.now = max(found.now, logged.context.now)
        if isinstance(logged.command, MembersChange):
            try:
                change = decode_change(logged.command.change)
                self._found.configuration = changed(self._found.configuration, change)
            except ChangeRefused as error:
                raise CodecError(f"a change of the members: {error}") from error
        elif not isinstance(logged.command, EmptyEntry):
            self._metadata.apply(logged.command, logged.context)


def _raft_entry(logged: LoggedCommand, record: bytes) -> Entry:
    """The entry of the Raft core whose record was read."""
    command, term, index = logged.command, logged.position.term, logged.context.index
    if isinstance(command, MembersChange):
        return Entry(term, index, EntryKind.CHANGE, command.change, size=len(command.change))
    if isinstance(command, EmptyEntry):
        return Entry(term, index)
    return Entry(term, index, payload=LoggedProposal(command, logged.context, record), size=len(record))


class _EffectsReader(_LogReader):
    """Reads effects on durable objects: nothing is done that is not in the log."""

    def __init__(self, data: bytes, metadata: Metadata, found: RecoveredLog, cipher: Cipher | None) -> None:
        super().__init__(data, metadata, found, cipher)
        self._takers = {EFFECTS: self._effects, EFFECTS_STATE_END: self._state_end}

    def read(self) -> None:
        """Apply every record in order; no number up to the last index is given to a queue again."""
        super().read()
        metadata = self._metadata
        metadata.next_number = max(metadata.next_number, self._index + 1)

    def _state_end(self, body: bytes) -> None:
        self._is_whole = True
        self._index = max(self._index, int.from_bytes(body, "big"))

    def _effects(self, body: bytes) -> None:
        index, commands = decode_effects(body, self._cipher)
        self._index = max(self._index, index)
        context = CommandContext(index=index, now=0, is_accepted=True)
        for command in commands:
            if index:
                # The number of a queue was the index of its declaration.
                self._metadata.next_number = index
            self._apply(command, context)
            # Doubted numbers were not used as indexes either.
            self._index = max(self._index, self._metadata.next_number - 1)
