"""Runs one replica: has done what its Readys say, in the order that `raft.ready` documents.

    propose, step, tick ─▶ flush ─▶ send messages ─▶ DriverLog.write ─▶ StateMachine.apply
                                                          │ ticket
    written(ticket) ─▶ install ─▶ messages_after ─▶ Replica.written ─▶ flush

Invariants: what waits for a write is done when that write, and all before it, is synced, in the order of the
Readys. A port may call `propose`, `step`, `written` and `flush` at any time: what follows is done by the
`flush` that runs already. A driver whose port has raised an exception does nothing more.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Protocol

from warren.replication.raft.change import ConfigurationChange
from warren.replication.raft.raft_messages import Entry, EntryKind, RaftMessage, Snapshot
from warren.replication.raft.ready import Ready
from warren.replication.raft.replica import Replica

# The name of a read: replica, incarnation of its node, and number of the read.
_READ = struct.Struct(">QQQ")
# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_CHANGE = EntryKind.CHANGE


class DriverLog(Protocol):
    """Port: the log of a replica, as it is written."""

    def write(self, ready: Ready) -> int:
        """Write the hard state, the snapshot and the entries of `ready`, behind what was handed over before.

        Returns a number that is not lower than those before. `RaftDriver.written` is told when all up to it
        is synced, which may be before this returns.
        """
        ...

    def append(self, entries: Sequence[Entry], commit: int) -> int:
        """Write `entries` as those of a Ready with this commit index and nothing else; returns as `write`."""
        ...


class StateMachine(Protocol):
    """Port: what the entries are for."""

    def apply(self, entries: Sequence[Entry]) -> None:
        """Apply committed entries, which follow those before; empty ones and changes of members as well."""
        ...

    def role_changed(self) -> None:
        """The replica has another role, or another leader; what is applied next was committed by that one."""
        ...

    def install(self, snapshot: Snapshot) -> None:
        """Replace the state by that of `snapshot`, which is synced; entries behind it follow."""
        ...


class RaftDriver:
    """One replica with its log, its machine and its way to the other members.

    `propose`, `step`, `tick` and `campaign` have no effect outside the replica before `flush`, so that what
    belongs to one turn is written together.
    """

    def __init__(
        self,
        replica: Replica,
        log: DriverLog,
        machine: StateMachine,
        send: Callable[[Sequence[RaftMessage]], None],
        *,
        incarnation: int = 0,
    ) -> None:
        """`incarnation` counts the starts of this node: an answer to a read of a former start is none."""
        # The replica, for reading and for what this class has no method for; `flush` follows.
        self.replica = replica
        self._log = log
        self._machine = machine
        self._send = send
        # Readys with something that waits for a write, and entries of `Replica.begin_alone`, in order, each
        # with the ticket that it waits for.
        self._waiting: list[tuple[int, Ready | tuple[Entry, ...]]] = []
        # The last ticket handed out, and the last one that is synced.
        self._ticket = 0
        self._synced = 0
        self._is_flushing = False
        self._incarnation = incarnation
        self._read_number = 0
        # What waits for the index of a read, by the read's name; and for its application.
        self._reads: dict[bytes, Callable[[], None]] = {}
        self._reads_due: dict[bytes, tuple[int, Callable[[], None]]] = {}
        self._read_elapsed = 0

    @property
    def is_leader(self) -> bool:
        """True while this replica leads, as far as it knows."""
        return self.replica.leads()

    @property
    def commit(self) -> int:
        """The highest index known as committed."""
        return self.replica.commit_index()

    @property
    def applied(self) -> int:
        """The index up to which the machine has applied the log."""
        return self.replica.log.applied

    def propose(self, payload: object, size: int) -> int:
        """Append an entry of `size` bytes; returns its index, or 0 or `FORWARDED` as `Replica.propose`."""
        return self.replica.propose(payload, size)

    def step(self, message: RaftMessage) -> None:
        """Take a message of another member."""
        self.replica.step(message)

    def propose_change(self, change: ConfigurationChange) -> int:
        """Propose a change of the members; 0 also if this leader hands over first, see `Replica`."""
        return self.replica.propose_change(change)

    def hand_over(self) -> int:
        """Have the best other voter lead, before this replica stops; returns it, or 0 if there is none."""
        return self.replica.hand_over()

    def read(self, then: Callable[[], None]) -> bytes:
        """Call `then` when the machine has applied all that was committed before; `flush` follows.

        On any member. Without a leader it waits for one, until `forget_read` with the name that this returns.
        """
        self._read_number += 1
        name = _READ.pack(self.replica.id, self._incarnation, self._read_number)
        self._reads[name] = then
        self.replica.read_index(name)
        return name

    def forget_read(self, name: bytes) -> None:
        """Do not call what waits for a read."""
        self._reads.pop(name, None)
        self._reads_due.pop(name, None)

    def tick(self) -> None:
        """Note that time has passed."""
        self.replica.tick()
        self._read_elapsed += 1
        # A message may have been lost.
        if self._read_elapsed >= self.replica.election_ticks:
            self._ask_again()

    def campaign(self) -> None:
        """Start an election."""
        self.replica.campaign()

    def flush(self) -> None:
        """Do what the replica wants to have done, until there is nothing more."""
        if self._is_flushing:
            return
        self._is_flushing = True
        while self._finish_write() or self._begin():
            pass
        self._is_flushing = False

    def written(self, ticket: int) -> None:
        """Note that everything up to `ticket` is synced, and do what waited for it."""
        self._synced = max(self._synced, ticket)
        self.flush()

    # --- private ----------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Begin the next Ready; return False if there is none."""
        if self.replica.is_alone():
            return self._begin_alone()
        ready = self.replica.ready()
        if ready is None:
            return False
        if ready.messages:
            self._send(ready.messages)
        # A commit index alone is not worth a write: the next one tells of it.
        if ready.must_sync or ready.snapshot is not None:
            self._note_ticket(self._log.write(ready))
        if ready.messages_after or ready.written is not None:
            self._waiting.append((self._ticket, ready))
        if ready.soft_state is not None:
            self._machine.role_changed()
            # Who leads now knows nothing of what was asked before.
            self._ask_again()
        if ready.committed:
            self._apply(ready.committed)
        for read in ready.read_states:
            if (then := self._reads.pop(read.context, None)) is not None:
                self._reads_due[read.context] = (read.index, then)
        if ready.read_states:
            self._answer_reads()
        return True

    def _begin_alone(self) -> bool:
        """Begin to write what was proposed to the only member; return False if there is nothing."""
        entries = self.replica.begin_alone()
        if not entries:
            return False
        self._note_ticket(self._log.append(entries, self.replica.commit_index()))
        self._waiting.append((self._ticket, entries))
        return True

    def _note_ticket(self, ticket: int) -> None:
        assert ticket >= self._ticket, f"ticket {ticket} after {self._ticket}"
        self._ticket = ticket

    def _finish_write(self) -> bool:
        """Do what waited for the oldest write; return False if it is not synced."""
        if not self._waiting or self._waiting[0][0] > self._synced:
            return False
        _, ready = self._waiting[0]
        del self._waiting[0]
        if isinstance(ready, tuple):
            if self.replica.written_alone(ready):
                self._apply(ready)
            return True
        if ready.snapshot is not None:
            self._machine.install(ready.snapshot)
        replica = self.replica
        to_others = [message for message in ready.messages_after if message.to != replica.id]
        if to_others:
            self._send(to_others)
        for message in ready.messages_after:
            if message.to == replica.id:
                replica.step(message)
        if ready.written is not None:
            replica.written(ready.written)
        if ready.snapshot is not None and self._reads_due:
            self._answer_reads()
        return True

    def _ask_again(self) -> None:
        """Ask for the index of each read that has none; a later one than at first does as well."""
        self._read_elapsed = 0
        for name in self._reads:
            self.replica.read_index(name)

    def _answer_reads(self) -> None:
        """Call what waits for an index that is applied."""
        applied = self.replica.log.applied
        for name in [name for name, (index, _) in self._reads_due.items() if index <= applied]:
            if (due := self._reads_due.pop(name, None)) is not None:
                due[1]()

    def _apply(self, entries: Sequence[Entry]) -> None:
        """Have `entries` applied, and switch to the configurations in them."""
        for entry in entries:
            if entry.kind is _CHANGE:
                self.replica.apply_change(entry)
        last = entries[-1]
        self._machine.apply(entries)
        self.replica.applied(last.index)
        if self._reads_due:
            self._answer_reads()
