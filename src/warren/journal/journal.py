"""Proposals that survive: a command is written and synced, then applied, then answered.

    propose ─▶ next ─ job ─▶ flying ─ synced ─▶ applied in order ─▶ answered
       └─ depends on one of these: held, until that is answered

Behind each sync it is written beside the log how far that goes (high_water_mark), without a sync of its own.
There is one job at a time; what comes meanwhile shares the next one and its sync. What leaves nothing that
survives a restart is applied at once, unless its outcome and that of a waiting command depend on each other.

Invariants: the log says exactly what surviving things became of, since what is written is decided on when
nothing that matters for it is on its way. Nothing is applied that a crash could undo. After a failed write or
sync nobody knows what the file holds, so it is never written to again: the whole state goes into a new one.
"""

import errno
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

from warren.errors import AmqpError, InternalError, ResourceError
from warren.journal.codec import encode_entry
from warren.journal.high_water_mark import LOG_ID_SIZE, HighWaterMark, MarkFile
from warren.journal.page import NAME, SALT_SIZE, UNFINISHED_NAME, encode_batch
from warren.journal.recovery import RecoveredLog
from warren.journal.state import State
from warren.journal.survival import Claims, Concern, concern, survivors
from warren.limits import JOURNAL_AHEAD_SIZE, JOURNAL_LOG_SIZE_MIN, JOURNAL_MARK_SYNC_MS, JOURNAL_RETRY_MS
from warren.metadata.commands import INTERNAL_USER, Command, Meta, Reply
from warren.metadata.machine import Metadata
from warren.store.disk import Create, Disk, Rename, Step, Sync, SyncDirectory, Write

# What a file system answers that is full, and has room again later.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Answer(Protocol):
    """A future of the loop that runs above."""

    def set_result(self, result: None, /) -> None:
        """Let who awaits this go on."""

    def done(self) -> bool:
        """True if nobody awaits this any more."""

    def __await__(self) -> Generator[object, None, None]:
        """Wait for the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalWorld:
    """What a journal needs from above the waterline."""

    now: Callable[[], int]
    random_octets: Callable[[int], bytes]
    make_answer: Callable[[], Answer]
    # Called with what went wrong, once until it is None: all is well again.
    report: Callable[[OSError | None], None]


class Journal:
    """The log of the metadata on one disk."""

    __slots__ = (
        "_ahead", "_claims", "_disk", "_end", "_failure", "_flying", "_generation", "_held", "_index",
        "_is_busy", "_is_mark_syncing", "_is_marked", "_log_id", "_mark", "_metadata", "_next", "_on_closed",
        "_retry_at", "_seed", "_state_size", "_synced_at", "_world",
    )  # fmt: skip

    def __init__(
        self, metadata: Metadata, disk: Disk, world: JournalWorld, found: RecoveredLog | None = None
    ) -> None:
        """A journal for what `metadata` becomes from `begin` on, in the place of what was `found`."""
        found = found or RecoveredLog(mark=MarkFile(None))
        known = found.mark.found
        self._metadata = metadata
        self._disk = disk
        self._world = world
        # The last place in the log that was given away.
        self._index = 0
        # Where the log ends, up to where the file is zeroed, and the size of its state.
        self._end = 0
        self._ahead = 0
        self._state_size = 0
        self._seed = 0
        # The id of the log, the last generation of its file, and the file that says how far it was synced.
        self._log_id = found.log_id or (known.log_id if known else world.random_octets(LOG_ID_SIZE))
        self._generation = max(found.generation, known.generation if known else 0)
        self._mark = found.mark
        # When that was synced last.
        self._synced_at = 0
        self._is_mark_syncing = False
        self._is_busy = False
        # True if the file says that all of it was synced.
        self._is_marked = True
        self._failure: OSError | None = None
        self._retry_at = 0
        self._flying: list[_Waiting] = []
        self._next: list[_Waiting] = []
        self._held: deque[_Waiting] = deque()
        # What those in `_flying` and `_next` have to do with.
        self._claims = Claims()
        self._on_closed: Callable[[], None] | None = None

    def begin(self) -> None:
        """Write all that exists, now; a failure is reported, and tried again when something is proposed."""
        state = self._noted_state()
        try:
            self._disk.perform(self._rewrite(state))
        except OSError as error:
            self._fail(error)
        else:
            self._take_over(state)

    async def propose(self, command: Command, user: str = INTERNAL_USER) -> Reply:
        """Have `command` written if any of it survives, then applied; AmqpError if it cannot be written."""
        metadata = self._metadata
        if not (self._is_busy or self._held or survivors(metadata, command)):
            return self._applied(command, metadata.index, user)
        waiting = _Waiting(command, user)
        if self._held or not self._admit(waiting):
            self._held.append(waiting)
        self._go_on()
        if waiting.result is None:
            waiting.answer = self._world.make_answer()
            await waiting.answer
        assert waiting.result is not None
        if isinstance(waiting.result, Reply):
            return waiting.result
        raise waiting.result

    def close(self, on_closed: Callable[[], None]) -> None:
        """Call `on_closed` when nothing waits for the disk any more."""
        self._on_closed = on_closed
        self._go_on()

    def tend(self) -> None:
        """Have the disk keep how far the log was synced, if nothing else does: ask for it every second."""
        self._go_on()

    def _admit(self, waiting: "_Waiting") -> bool:
        """Take up a command, unless it has to do with one that waits."""
        is_alone = not (self._flying or self._next)
        command = waiting.command
        if not is_alone and self._claims.bar(concern(self._metadata, command)):
            return False
        made = survivors(self._metadata, command)
        if not made:
            waiting.end(self._applied(command, self._metadata.index, waiting.user))
        elif self._failure is not None and self._world.now() < self._retry_at:
            waiting.end(_refusal(self._failure))
        else:
            self._index = max(self._index, self._metadata.index)
            waiting.index = self._index + 1
            waiting.entry = encode_entry(waiting.index, made)
            waiting.concern = concern(self._metadata, command)
            self._index += 1
            self._claims.add(waiting.concern)
            self._next.append(waiting)
        return True

    def _go_on(self) -> None:
        """Start the next job, if there is anything to do and none under way."""
        if self._is_busy:
            return
        if self._next and (self._failure is not None or self._is_too_long()):
            self._is_busy = True
            state = self._noted_state()
            self._disk.submit(self._rewrite(state), lambda error: self._rewritten(state, error))
        elif self._next:
            self._is_busy = True
            self._flying, self._next = self._next, []
            self._disk.submit(self._batch(), self._written)
        elif not self._is_marked and self._on_closed is not None and self._failure is None:
            self._is_busy = True
            self._disk.submit(self._batch(), self._written)
        elif self._mark.is_dirty and self._is_mark_due() and self._failure is None:
            self._is_busy = True
            self._disk.submit(self._sync_mark(), self._written)
        elif self._on_closed is not None:
            on_closed, self._on_closed = self._on_closed, None
            on_closed()

    def _is_too_long(self) -> bool:
        return self._end - self._state_size > max(JOURNAL_LOG_SIZE_MIN, self._state_size)

    def _batch(self) -> list[Step]:
        chunks = encode_batch([waiting.entry for waiting in self._flying], self._seed)
        self._is_marked = not self._flying
        start = self._end
        self._end += sum(map(len, chunks))
        if self._end > self._ahead:
            chunks.append(bytes(JOURNAL_AHEAD_SIZE))
            self._ahead = self._end + JOURNAL_AHEAD_SIZE
        index = self._flying[-1].index if self._flying else self._index
        mark = HighWaterMark(log_id=self._log_id, generation=self._generation, end=self._end, index=index)
        steps: list[Step] = [Write(NAME, start, chunks), Sync(NAME), self._mark.write(lambda: mark)]
        return steps + self._sync_mark() if self._is_mark_due() else steps

    def _is_mark_due(self) -> bool:
        """True if the mark is to be synced: not with each batch, which would wait for two syncs then."""
        return self._on_closed is not None or self._world.now() - self._synced_at >= JOURNAL_MARK_SYNC_MS

    def _sync_mark(self) -> list[Step]:
        self._synced_at = self._world.now()
        self._is_mark_syncing = True
        return [self._mark.sync()]

    def _noted_state(self) -> State:
        self._index = max(self._index, self._metadata.index)
        self._generation += 1
        salt = self._world.random_octets(SALT_SIZE)
        return State(self._metadata, self._index, salt, log_id=self._log_id, generation=self._generation)

    def _rewrite(self, state: State) -> list[Step]:
        """Put `state` in the place of what there is: a power cut leaves the one or the other."""
        new = UNFINISHED_NAME
        return [
            *self._mark.begin(self._log_id),
            Create(new, 0),
            Write(new, 0, state),
            Sync(new),
            Rename(new, NAME),
            SyncDirectory(),
            # How large the state is, is known when it is written.
            self._mark.write(state.mark),
            self._mark.sync(),
        ]

    def _take_over(self, state: State) -> None:
        """What is written from now on goes behind `state`."""
        self._mark.synced()
        self._synced_at = self._world.now()
        self._seed = state.seed
        self._is_marked = True
        self._end = self._ahead = self._state_size = state.size
        if self._failure is not None:
            self._failure = None
            self._world.report(None)

    def _rewritten(self, state: State, error: OSError | None) -> None:
        self._is_busy = False
        if error is None:
            self._take_over(state)
        else:
            self._fail(error)
        self._settle()

    def _written(self, error: OSError | None) -> None:
        self._is_busy = False
        if error is not None:
            self._fail(error)
        elif self._is_mark_syncing:
            self._mark.synced()
        self._is_mark_syncing = False
        flying, self._flying = self._flying, []
        results = [self._tried(waiting) for waiting in flying]
        self._settle()
        for waiting, result in zip(flying, results, strict=True):
            waiting.end(result)

    def _settle(self) -> None:
        """A job has ended: take up what had to do with it."""
        self._claims = Claims()
        for waiting in self._next:
            self._claims.add(waiting.concern)
        while self._held:
            try:
                if not self._admit(self._held[0]):
                    break
            except Exception as error:
                # It is the proposer's: the others must not wait for ever because of it.
                self._held[0].end(error)
            self._held.popleft()
        self._go_on()

    def _fail(self, error: OSError) -> None:
        """Refuse all that wait for the disk; nothing is written until the state is safe in a new file."""
        if self._failure is None:
            self._world.report(error)
        self._failure = error
        self._retry_at = self._world.now() + JOURNAL_RETRY_MS
        refused = self._flying + self._next
        self._flying = []
        self._next = []
        for waiting in refused:
            waiting.end(_refusal(error))

    def _tried(self, waiting: "_Waiting") -> "Reply | Exception":
        try:
            return self._applied(waiting.command, waiting.index, waiting.user)
        except Exception as error:
            # It is the proposer's: the others must not wait for ever because of it.
            return error

    def _applied(self, command: Command, index: int, user: str) -> Reply:
        return self._metadata.apply(command, Meta(index=index, now=self._world.now(), user=user))


class _Waiting:
    """A command, and whoever awaits what becomes of it."""

    __slots__ = ("answer", "command", "concern", "entry", "index", "result", "user")

    def __init__(self, command: Command, user: str) -> None:
        self.command = command
        self.user = user
        self.index = 0
        self.entry = b""
        self.concern = _NO_CONCERN
        self.answer: Answer | None = None
        self.result: Reply | Exception | None = None

    def end(self, result: Reply | Exception) -> None:
        """This became of it."""
        self.result = result
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(None)


_NO_CONCERN = Concern((), ())


def _refusal(error: OSError) -> AmqpError:
    text = f"cannot write the metadata: {error.strerror or error}"
    return ResourceError(text) if error.errno in _NO_SPACE else InternalError(text)
