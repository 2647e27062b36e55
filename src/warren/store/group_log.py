"""The Raft log of one replica of a group, in the log of the virtual host.

    place ─▶ messages ─ append ─▶ an ENTRY      ┐
    promise ─▶ HARD, before any entry           ├─▶ one batch of the store ─▶ synced ─▶ written
    cut, unplace ─▶ CUT                         │
    compact ─▶ STATE, instead of all these      │
    receive ─▶ messages ─ install ─▶ STATE      ┘

A message is placed at once, so that one record serves all queues that it is routed to; the entry that
proposes it follows as the batch is made (`GroupListener.prepare`), or later, or never: then `unplace` makes
the message void. Entries are in memory from the last snapshot on, without their messages, which are
ordinary messages of the store: written once, whatever queues they are in, and settled by their queue.

Invariants: the records of a group are the last ones of a batch, the hard state first: a batch that is torn
has messages without an entry, which recovery releases, but never an entry without its messages, nor of a
later term than the hard state. The first STATE of a new log stands before its messages, which would otherwise
be taken for those of a queue without a log. A STATE contains everything that is needed of its group, so that
nothing before it is; it is written anew when a segment with needed records is freed. The messages of void
entries are released when the CUT is durable, and their positions in the store are never used again. Entries
that nobody needs before the next start are forgotten (`forget`): a snapshot replaces them before a STATE is
written.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from warren.limits_raft import (
    GROUP_COMMANDS_SIZE_MAX,
    GROUP_CONFIGURATION_SIZE_MAX,
    GROUP_MACHINE_SIZE_MAX,
    UNTRUSTED_REASON_SIZE_MAX,
)
from warren.model.first_items import drop_first
from warren.model.message import StoredMessage
from warren.store.accepted_damage import accept_damage
from warren.store.cursor import QueueCursor
from warren.store.group_contents import GroupContents
from warren.store.group_listener import GroupListener
from warren.store.group_record import (
    GroupEntry,
    GroupHardState,
    GroupSnapshot,
    PositionOffset,
    PositionRun,
    encode_cut,
    encode_entry,
    encode_hard,
    encode_state,
    entry_size,
    message_count_of,
)
from warren.store.group_state import GroupState
from warren.store.message_store import MessageStore
from warren.store.placed_messages import PlacedMessages
from warren.store.record import CUT, ENTRY, HARD, HEAD_SIZE, STATE
from warren.store.recovered_queue import RecoveredQueue, locations_of
from warren.store.segment_log import SegmentLog

_SEGMENT_SHIFT = 32


class GroupLog(GroupContents):
    """The log of one replica; `create` makes a new one, recovery those that exist."""

    def __init__(self, store: MessageStore, state: GroupState) -> None:
        GroupContents.__init__(self, store, state)
        self.listener: GroupListener | None = None
        # The number of the last change.
        self.ticket = 0
        # Records of the next batch. A STATE replaces the others.
        self._records: list[tuple[int, bytes]] = []
        self._is_hard_due = False
        self._is_state_due = False
        # True while the listener is to be called before the next batch, and if that follows this turn.
        self._is_preparing = False
        self._is_announced = False
        # The STATE of a new log, which stands before everything else of its first batch.
        self._first_state = b""
        # Messages that are in the store and in no entry yet.
        self._placed = PlacedMessages(store, state)
        # Messages of a snapshot that is being received: level -> (position in the group, message).
        self._received: dict[int, list[tuple[int, StoredMessage]]] = {}
        self._received_since = 0
        # True while the store has this log on its list for the next batch.
        self._is_listed = False
        # The entries among the changes in progress: (number, index).
        self._unwritten: list[tuple[int, int]] = []
        # Messages of void entries, and the number of the change after which they are released.
        self._void: deque[tuple[int, QueueCursor, int, StoredMessage | int]] = deque()
        store.add_group_log(state.number, self)

    @staticmethod
    def create(
        store: MessageStore, number: int, replica: int, configuration: bytes, *, index: int = 0
    ) -> "GroupLog":
        """The log of a new replica of group `number`, which begins with an empty snapshot.

        If that stands at `index` 1, and not before all entries, a replica that knows no configuration cannot
        get the entries without it.
        """
        state = GroupState(number, replica)
        state.since = store.written >> _SEGMENT_SHIFT
        _check_size("configuration", configuration, GROUP_CONFIGURATION_SIZE_MAX)
        state.begin_behind(GroupSnapshot(index=index, term=index, configuration=configuration))
        state.promise(GroupHardState(index, 0, index))
        log = GroupLog(store, state)
        log.begin()
        return log

    @staticmethod
    def find(store: MessageStore, number: int) -> "GroupLog | None":
        """The log of group `number` that is in `store`, such as one that was recovered."""
        found = store.group_log(number)
        return found if isinstance(found, GroupLog) else None

    def begin(self) -> None:
        """Have the first STATE of this new log written."""
        self._first_state = self._encoded_state()
        self._list_for_prepare()
        self._changed(len(self._state.snapshot.configuration))

    # --- changes ----------------------------------------------------------------------------------

    def promise(self, term: int, vote: int) -> None:
        """Record the term and the vote in it, 0 for none. Neither can be taken back: ValueError."""
        before = self._state.hard
        if term < before.term or (term == before.term and before.vote not in (0, vote)):
            raise ValueError(f"term {term} and vote {vote} after {before.term} and {before.vote}")
        self._state.promise(GroupHardState(term, vote, self._state.commit))
        self._is_hard_due = True
        self._changed(0)

    def announce(self) -> None:
        """Have the listener's `prepare` called at the end of the turn, as the next batch is made."""
        if not self._is_announced:
            self._is_announced = True
            self._list_for_prepare()
            self._store.announce_group()

    def announce_later(self) -> None:
        """Have it called with the next batch, which follows after a delay if no client waits for one."""
        if not self._is_preparing:
            self._list_for_prepare()
            self._store.announce_group_later()

    @property
    def placed_count(self) -> int:
        """The number of messages that are placed and in no entry yet."""
        return len(self._placed.messages)

    @property
    def last_stored(self) -> int:
        """The position in the store of the message that was placed last."""
        return self._placed.last_stored

    def place(self, message: StoredMessage, level: int) -> int:
        """Store `message` at the next position of `level`, which is returned; an entry has to follow.

        The listener's `prepare` is called before the batch with the message is made.
        """
        position = self._placed.place(message, level)
        if not self._is_announced:
            self.announce()
        return position

    def unplace(self) -> None:
        """Make the placed messages void, since no entry will have them; nothing happens if there are none."""
        placed = self._placed
        if not placed.messages:
            return
        tops: dict[int, int] = {}
        for level, position, message in placed.places():
            cursor = self._store.cursor(self._state.number, level)
            # The number of the CUT, which follows.
            self._void.append((self.ticket + 1, cursor, position, message))
            tops[level] = position + 1
        placed.clear()
        self._records.append((CUT, encode_cut(self._state.number, self._state.last + 1, self._skip(tops))))
        self._changed(0)

    def append(self, entry: GroupEntry, messages: Sequence[StoredMessage | None] | None = None) -> None:
        """Append `entry`, with the messages that were placed first, or with `messages` of another replica.

        Both are in the order of its runs, and `messages` come when nothing is placed; None is one that was
        settled before it was sent.
        ValueError if the index, the term or the positions do not continue the log, or if it is too large.
        """
        state, runs, commands = self._state, entry.runs, entry.commands
        index, term, last, last_term = entry.index, entry.term, state.last, state.last_term
        if index != last + 1 or not last_term <= term <= state.hard.term:
            raise ValueError(f"entry {index} of term {term} after {last} of {last_term}")
        if not state.fits(runs) or not self._has(runs, messages):
            raise ValueError(f"the positions of entry {index} do not continue those of the group")
        _check_size("commands", commands, GROUP_COMMANDS_SIZE_MAX)
        size = entry_size(runs, commands)
        if not self.has_space(size):
            raise ValueError(f"the entries of group {state.number} since its snapshot are too large")
        state.append(entry)
        if messages is None:
            self._messages[index] = self._placed.take(message_count_of(runs))
        else:
            self._messages[index] = self._placed.append_received(runs, messages)
        self._records.append((ENTRY, encode_entry(state.number, entry)))
        self._changed(size)
        self._unwritten.append((self.ticket, index))

    def cut(self, index: int) -> None:
        """Make the entries from `index` on void, and what was placed behind them.

        ValueError if one of them is known as committed.
        """
        state = self._state
        if not state.commit < index <= state.last:
            raise ValueError(f"cut from {index}: {state.commit} is committed, {state.last} the last entry")
        self.unplace()
        ends = {level: state.stored(level, end) for level, end in state.ends.items()}
        places: list[tuple[QueueCursor, int, StoredMessage | int]] = []
        for at in range(index, state.last + 1):
            its_places = self._places(state.entry(at))
            places += [
                (cursor, position, message)
                for (cursor, position), message in zip(its_places, self._messages.pop(at), strict=True)
            ]
        state.cut(index)
        offsets = self._skip(ends)
        self._records.append((CUT, encode_cut(state.number, index, offsets)))
        self._changed(0)
        self._void.extend((self.ticket, *place) for place in places)

    def compact(self, snapshot: GroupSnapshot) -> None:
        """Replace the entries up to the index of `snapshot` by it; all of them must be committed.

        Positions that the machine of `snapshot` has as settled must have been settled in the store before.
        """
        state = self._state
        if not state.first - 1 <= snapshot.index <= state.last:
            raise ValueError(f"snapshot {snapshot.index} of entries {state.first} to {state.last}")
        if snapshot.term != self.term(snapshot.index):
            raise ValueError(f"snapshot {snapshot.index} of term {snapshot.term}")
        _check_size("configuration", snapshot.configuration, GROUP_CONFIGURATION_SIZE_MAX)
        _check_size("machine", snapshot.machine, GROUP_MACHINE_SIZE_MAX)
        for index in range(state.first, snapshot.index + 1):
            del self._messages[index]
        state.compact(snapshot)
        self._is_state_due = True
        self._changed(len(snapshot.machine))

    def forget(self, index: int) -> None:
        """Forget the entries up to `index`, which are applied and which nobody needs before the next start.

        They are on disk until `compact`, which the listener calls before they would be written again
        (`GroupListener.shorten`). Nothing is forgotten while a STATE is due, which has what is behind it.
        """
        if self._is_state_due:
            return
        state, messages = self._state, self._messages
        for at in range(state.first, index + 1):
            del messages[at]
        state.forget(index)

    def shorten(self) -> None:
        """Have the listener replace all entries that are applied by a snapshot."""
        if self.listener is not None:
            self.listener.shorten()

    def receive(self, message: StoredMessage, level: int, position: int) -> None:
        """Store `message` of a snapshot, at `position` of `level` in the group; once for each position.

        `install` follows, or `discard_received`; nothing is placed, appended or cut before. After a crash in
        between the message is void, as one without an entry is.
        """
        state, store = self._state, self._store
        if not self._received:
            self.unplace()
            self._received_since = store.written >> _SEGMENT_SHIFT
        top = state.stored(level, state.ends.get(level, 0))
        store.append(message, store.cursor(state.number, level), top + position)
        self._received.setdefault(level, []).append((position, message))

    def discard_received(self) -> None:
        """Make the messages void that were received for a snapshot that will not be installed."""
        if not self._received:
            return
        state, received, self._received = self._state, self._received, {}
        tops = {}
        for level, messages in received.items():
            top = state.stored(level, state.ends.get(level, 0))
            tops[level] = top + max(position for position, _ in messages) + 1
            cursor = self._store.cursor(state.number, level)
            # The number of the CUT, which follows.
            self._void.extend(
                (self.ticket + 1, cursor, top + position, message) for position, message in messages
            )
        self._records.append((CUT, encode_cut(state.number, state.last + 1, self._skip(tops))))
        self._changed(0)

    def install(
        self,
        snapshot: GroupSnapshot,
        ends: dict[int, int],
        held: Iterable[tuple[int, int, StoredMessage | int]],
    ) -> None:
        """Replace everything by `snapshot`, which a leader has sent, and whose messages were received.

        `ends` are the positions behind the last message of each level as of `snapshot`; what was not received
        below them is settled. `held` are the messages of this replica that are not settled: level, position
        in the store, and the message or its location. They are released when the snapshot is durable: until
        then they belong to what was promised. From then on the replica is trusted. An untrusted one has to
        `extend` its positions before anything is received.
        ValueError if the snapshot is not ahead of what is known as committed.
        """
        state = self._state
        if snapshot.index <= state.commit and not state.reason:
            raise ValueError(f"snapshot {snapshot.index} where {state.commit} is committed")
        for level, messages in self._received.items():
            if max(position for position, _ in messages) >= ends.get(level, 0):
                raise ValueError(f"a message of level {level} is behind snapshot {snapshot.index}")
        _check_size("configuration", snapshot.configuration, GROUP_CONFIGURATION_SIZE_MAX)
        _check_size("machine", snapshot.machine, GROUP_MACHINE_SIZE_MAX)
        self._replace(snapshot, ends, held)

    def begin_again(
        self, replica: int, configuration: bytes, held: Iterable[tuple[int, int, StoredMessage | int]]
    ) -> None:
        """Be the log of a new replica with the number `replica`, which has nothing; 0 for none.

        `configuration` is one without members. The replica that it was has ended: its promises do not count,
        and `held`, as for `install`, are released when this is durable. Positions in the store are still used
        once only. An untrusted replica has to `extend` its positions before.
        """
        self.listener = None
        self.discard_received()
        self._state.begin_again(replica)
        self._replace(GroupSnapshot(configuration=configuration), {}, held)

    def _replace(
        self,
        snapshot: GroupSnapshot,
        ends: dict[int, int],
        held: Iterable[tuple[int, int, StoredMessage | int]],
    ) -> None:
        """Replace everything by `snapshot`, as `install` does."""
        state, store = self._state, self._store
        received, self._received = self._received, {}
        if received:
            since = self._received_since
        else:
            self.unplace()
            since = store.written >> _SEGMENT_SHIFT
        self._void.extend(
            (self.ticket + 1, store.cursor(state.number, level), position, message)
            for level, position, message in held
        )
        # Also of levels of which only void messages were stored.
        levels = {*state.ends, *state.offsets, *ends}
        tops = {level: state.stored(level, state.ends.get(level, 0)) for level in levels}
        for level, end in ends.items():
            places = sorted(position for position, _ in received.get(level, ()))
            for first, behind in _holes(places, end):
                cursor = store.cursor(state.number, level)
                store.finish(cursor, tops[level] + first, tops[level] + behind)
        state.install(snapshot, ends, tops, since)
        self._messages.clear()
        self._unwritten.clear()
        self._is_state_due = True
        self._changed(len(snapshot.machine))

    def extend(self, tops: dict[int, int]) -> None:
        """Count what is in the store up to the positions `tops` there, by level, as messages of the group.

        `accept_loss` follows, or `receive`.
        """
        self._state.extend(tops)

    def accept_loss(self, machine: bytes, configuration: bytes) -> None:
        """Trust this replica, the only one of its group, with what it has, and forget its entries.

        A snapshot with `machine` and `configuration`, of a new term, stands for all messages of the group
        that are in the store and not settled. The damage that was found is accepted as well.
        """
        _check_size("machine", machine, GROUP_MACHINE_SIZE_MAX)
        accept_damage(self._store, self._state.damage)
        self._state.accept_loss(machine, configuration)
        self._messages.clear()
        self._unwritten.clear()
        self._is_state_due = True
        self._changed(len(machine))

    def drop(self) -> None:
        """Forget this log, whose queue was deleted; the listener is not called any more.

        Messages that were placed, and that nobody has released, are forgotten with the cursors of the queue.
        """
        self.listener = None
        self._placed.clear()
        self._store.drop_group_log(self.number)

    # --- confirms of the store --------------------------------------------------------------------

    def expect(self, sequence: int) -> None:
        """Nothing to do: the change is noted already."""

    def done(self, first: int, last: int) -> None:
        """All changes up to number `last` are durable."""
        count = 0
        for number, at in self._unwritten:
            if number > last:
                break
            count += 1
            # The entry may have been cut, and another one with its index be on its way.
            if at in self._messages:
                _locate(self._messages[at])
        drop_first(self._unwritten, count)
        self._release_void(last)
        listener = self.listener
        if listener is not None:
            try:
                listener.written(last)
            except Exception as error:
                self.listener = None
                listener.failed(error)

    def refused(self, sequence: int) -> None:
        """Never called: a store that fails is closed."""
        raise AssertionError(sequence)

    # --- as a source of records of the store ------------------------------------------------------

    def prepare(self, log: SegmentLog) -> None:
        """Let the listener append to the batch that is about to be made.

        A new log begins before its messages: those without a log would be taken for those of another queue.
        """
        if self._first_state:
            log.append_record(STATE, self._first_state)
            self._state.segments.add(log.last.number)
            self._first_state = b""
        self._is_preparing = self._is_announced = False
        listener = self.listener
        if listener is not None:
            try:
                listener.prepare()
            except Exception as error:
                self.listener = None
                listener.failed(error)

    def write(self, log: SegmentLog) -> None:
        """Append the records of this batch to `log`; the messages were appended before."""
        state = self._state
        if self._is_state_due:
            self._records = []
            self._is_hard_due = False
            state.segments.clear()
            log.append_record(STATE, self._encoded_state())
            state.segments.add(log.last.number)
        else:
            self.write_entries(log)
        self._is_listed = self._is_state_due = False

    def write_entries(self, log: SegmentLog) -> None:
        """Append the records of this batch, without a STATE, to `log`."""
        for kind, body in self._due_records():
            log.append_record(kind, body)
            self._state.segments.add(log.last.number)
        self._records = []
        self._is_hard_due = False

    def entries_size(self) -> int:
        """The size in bytes of the records that `write_entries` appends."""
        return sum(HEAD_SIZE + len(body) for _, body in self._due_records())

    def is_in(self, numbers: set[int]) -> bool:
        """True if a segment with one of `numbers` has records that are needed."""
        return not self._state.segments.isdisjoint(numbers)

    def state_size(self) -> int:
        """The size of a STATE in bytes, as short as the listener can make it."""
        self.shorten()
        return len(self._encoded_state())

    def write_state(self) -> None:
        """Write a STATE with this batch, so that no record before it is needed."""
        self._is_state_due = True
        self._list()

    # --- recovery ---------------------------------------------------------------------------------

    def restore(self, levels: dict[int, RecoveredQueue]) -> None:
        """Find the messages of the entries among those recovered, by level.

        A message that should be there, and is not, makes the replica untrusted.
        """
        state = self._state
        for entry in state.entries:
            places: list[StoredMessage | int] = []
            for run in entry.runs:
                found = levels.get(run.level)
                # The messages of a run are next to each other in the store as well.
                first = state.stored(run.level, run.first)
                locations = [0] * run.count if found is None else locations_of(found, first, run.count)
                cursor = self._store.cursor(state.number, run.level)
                for at, location in enumerate(locations):
                    if not location and not cursor.has(first + at):
                        state.distrust(f"message {run.first + at} of entry {entry.index} is missing")
                places += locations
            self._messages[entry.index] = places
        if state.reason:
            # Its entries may be missing while their messages are there: these stay for `accept_loss`.
            state.reason = state.reason.encode()[:UNTRUSTED_REASON_SIZE_MAX].decode(errors="ignore")
            self.write_state()
            return
        offsets = self._skip({level: found.end for level, found in levels.items()})
        if offsets:
            # Messages without their entry had positions that must not be used again.
            self._records.append((CUT, encode_cut(state.number, state.last + 1, offsets)))
            self._list()

    # --- private ----------------------------------------------------------------------------------

    def _has(self, runs: tuple[PositionRun, ...], messages: Sequence[StoredMessage | None] | None) -> bool:
        """True if the messages of `runs` are there: `messages`, or the first ones of those placed."""
        if self._received:
            return False
        if messages is not None:
            return len(messages) == message_count_of(runs) and not self._placed.messages
        return self._placed.begin_with(runs)

    def _list_for_prepare(self) -> None:
        if not self._is_preparing:
            self._is_preparing = True
            self._store.prepare_group_log(self)

    def _skip(self, ends: dict[int, int]) -> list[PositionOffset]:
        """Use positions in the store from `ends` on, by level, for what follows; the offsets that are new."""
        state = self._state
        offsets = [
            PositionOffset(level, state.ends.get(level, 0), end - state.ends.get(level, 0))
            for level, end in ends.items()
            if end > state.stored(level, state.ends.get(level, 0))
        ]
        state.move(offsets)
        return offsets

    def _changed(self, size: int) -> None:
        """Note a change that takes `size` bytes; the listener hears of it when it is durable."""
        self.ticket += 1
        self._list()
        self._store.group_changed(size)
        self._store.confirm(self, self.ticket)

    def _list(self) -> None:
        if not self._is_listed:
            self._is_listed = True
            self._store.list_group_log(self)

    def _release_void(self, ticket: int) -> None:
        """Release the messages that were void as of change `ticket`, which is durable."""
        while self._void and self._void[0][0] <= ticket:
            _, cursor, position, message = self._void.popleft()
            if not isinstance(message, int):
                self._store.release(message, cursor, position)
            elif message:
                self._store.release_at(message, cursor, position)

    def _encoded_state(self) -> bytes:
        for level, offsets in self._state.offsets.items():
            offsets.forget(self._store.cursor(self._state.number, level).low)
        return encode_state(self._state.record())

    def _due_records(self) -> list[tuple[int, bytes]]:
        """The kinds and bodies of the records of the next batch, the hard state first."""
        if not self._is_hard_due:
            return self._records
        return [(HARD, encode_hard(self.number, self.replica, self.hard)), *self._records]


def _locate(messages: list[StoredMessage | int]) -> None:
    """Replace each of `messages` that is written by its location."""
    for place, message in enumerate(messages):
        if isinstance(message, StoredMessage):
            written = message
            if written.location:
                messages[place] = written.location


def _holes(places: list[int], end: int) -> Iterator[tuple[int, int]]:
    """The ranges of positions below `end` that are not in the sorted `places`."""
    behind = 0
    for place in [*places, end]:
        if place > behind:
            yield behind, place
        behind = place + 1


def _check_size(name: str, data: bytes, size_max: int) -> None:
    if len(data) > size_max:
        raise ValueError(f"{name} of {len(data)} bytes, of which {size_max} are allowed")
