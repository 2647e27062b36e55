"""What one turn changes in a quorum queue, collected into the payload of one entry.

Settling is called once for each message, so messages that are settled in order of position extend the latest
run, which is kept in attributes. Runs that came out of order are sorted and joined when the batch is taken.

A builder is full when another command might not fit into an entry. Its batch must then be taken and proposed
before anything is added: messages are placed already, and an entry contains all those since the one before.
"""

from operator import attrgetter
from typing import TypeVar

from warren.limits_raft import GROUP_COMMANDS_SIZE_MAX, GROUP_ENTRY_RUNS_MAX
from warren.queues.quorum.batch_codec import (
    ENQUEUE_SIZE,
    FORGET_SIZE,
    HEADS_SIZE,
    HOLD_SIZE,
    REACH_SIZE,
    RETURN_SIZE,
    SETTLE_SIZE,
    Enqueue,
    Enqueuer,
    HeldRun,
    HoldReason,
    QuorumBatch,
    Reach,
    ReturnedRun,
    SettledRun,
    SettleReason,
    new_enqueue,
    new_reach,
    new_settled_run,
)
from warren.store.group_record import PositionRun, new_position_run

# What is there before the first command, in bytes: the reach of every priority level always fits.
_LEVELS = 256
_EMPTY_SIZE = HEADS_SIZE + _LEVELS * REACH_SIZE
# Full when less space than that of the largest command is left.
_FULL_SIZE = GROUP_COMMANDS_SIZE_MAX - max(ENQUEUE_SIZE, FORGET_SIZE, HOLD_SIZE, RETURN_SIZE, SETTLE_SIZE)
# A consumer that returns a message in a loop reaches this within a day; its attempts are not counted further.
_ATTEMPTS_MAX = 0xFFFF_FFFF
# No level: nothing continues the latest run.
_NO_LEVEL = _LEVELS
# As C values, for what is done once for each message.
_ENQUEUE_SIZE = ENQUEUE_SIZE
_SETTLE_SIZE = SETTLE_SIZE
_SIZE_MAX = GROUP_COMMANDS_SIZE_MAX
_RUNS_MAX = GROUP_ENTRY_RUNS_MAX
_NOBODY = Enqueuer(0, 0)

Item = TypeVar("Item")


class BatchBuilder:
    """Collects commands, until `take` returns them as a batch and begins with the next one."""

    __slots__ = (
        "_enqueued", "_enqueued_count", "_enqueuer", "_forgotten", "_held", "_next_number", "_reach",
        "_reach_level", "_reaches", "_returned", "_run_count", "_run_end", "_run_level", "_runs", "_settled",
        "_settled_bytes", "_settled_end", "_settled_first", "_settled_level", "_settled_reason", "_size",
        "is_full",
    )  # fmt: skip

    def __init__(self) -> None:
        # True if nothing but a reach may be added before the batch is taken.
        self.is_full = False
        # An upper bound on the size of the encoded commands.
        self._size = _EMPTY_SIZE
        self._runs: list[PositionRun] = []
        self._enqueued: list[Enqueue] = []
        self._settled: list[SettledRun] = []
        self._returned: list[ReturnedRun] = []
        self._held: list[HeldRun] = []
        self._forgotten: list[Enqueuer] = []
        # Priority level -> the highest reach; and the one of the level that was raised last, if that is one.
        self._reaches: dict[int, int] = {}
        self._reach_level = _NO_LEVEL
        self._reach = 0
        # The latest run of numbers, of positions, and of settled positions, each of which may be continued.
        self._enqueuer = _NOBODY
        self._enqueued_count = 0
        self._next_number = 0
        self._run_level = _NO_LEVEL
        self._run_end = 0
        self._run_count = 0
        self._settled_level = _NO_LEVEL
        self._settled_first = 0
        self._settled_end = 0
        self._settled_bytes = 0
        self._settled_reason = SettleReason.ACKNOWLEDGED

    def is_empty(self) -> bool:
        """True if there is nothing to propose."""
        return self._size == _EMPTY_SIZE and self._reach_level == _NO_LEVEL and not self._reaches

    def enqueue(self, enqueuer: Enqueuer, number: int, level: int, position: int) -> None:
        """Add a message that `enqueuer` numbered, and that was placed at `position` of `level`."""
        if number == self._next_number and (enqueuer is self._enqueuer or enqueuer == self._enqueuer):
            self._enqueued_count += 1
        else:
            self._end_enqueued()
            self._grow(_ENQUEUE_SIZE)
            self._enqueuer = enqueuer
            self._enqueued_count = 1
        self._next_number = number + 1
        if position == self._run_end and level == self._run_level:
            self._run_count += 1
        else:
            self._end_run()
            self._run_level = level
            self._run_count = 1
        self._run_end = position + 1

    def settle(self, level: int, position: int, size: int, reason: SettleReason) -> None:
        """Add that the message at `position` of `level`, of `size` bytes, leaves the queue."""
        if position == self._settled_end and level == self._settled_level and reason is self._settled_reason:
            self._settled_end = position + 1
            self._settled_bytes += size
        else:
            self._end_settled()
            self._grow(_SETTLE_SIZE)
            self._settled_level = level
            self._settled_first = position
            self._settled_end = position + 1
            self._settled_bytes = size
            self._settled_reason = reason

    def settle_run(self, run: SettledRun) -> None:
        """Add that all messages of `run` leave the queue."""
        self._grow(_SETTLE_SIZE)
        self._end_settled()
        self._settled.append(run)

    def return_counted(
        self, level: int, position: int, failed: int, total: int, *, ready_at: int = 0
    ) -> None:
        """Add that the message at `position` of `level` came back, and is ready at `ready_at` (ms).

        It was delivered `total` times, of which `failed` have failed.
        """
        failed, total = min(failed, _ATTEMPTS_MAX), min(total, _ATTEMPTS_MAX)
        if self._returned:
            last = self._returned[-1]
            if (
                position == last.first + last.count
                and (level, failed, total, ready_at) == (last.level, last.failed, last.total, last.ready_at)
            ):  # fmt: skip
                self._returned[-1] = ReturnedRun(level, last.first, last.count + 1, failed, total, ready_at)
                return
        self._grow(RETURN_SIZE)
        self._returned.append(ReturnedRun(level, position, 1, failed, total, ready_at))

    def hold(self, level: int, position: int, hold: HoldReason) -> None:
        """Add that the message at `position` of `level` is held from now on, or no longer."""
        if self._held:
            last = self._held[-1]
            if position == last.first + last.count and (level, hold) == (last.level, last.hold):
                self._held[-1] = HeldRun(level, last.first, last.count + 1, hold)
                return
        self._grow(HOLD_SIZE)
        self._held.append(HeldRun(level, position, 1, hold))

    def raise_reach(self, level: int, position: int) -> None:
        """Add that messages below `position` of `level` may be handed out."""
        if level != self._reach_level:
            self._end_reach()
            self._reach_level = level
            self._reach = position
        elif position > self._reach:
            self._reach = position

    def reach_enqueued(self) -> None:
        """Add that the messages that were added may be handed out."""
        self._end_run()
        for run in self._runs:
            self.raise_reach(run.level, run.first + run.count)

    def forget(self, enqueuer: Enqueuer) -> None:
        """Add that `enqueuer` is gone and publishes nothing more."""
        self._grow(FORGET_SIZE)
        self._forgotten.append(enqueuer)

    def take(self) -> QuorumBatch:
        """Everything that was added since the last call."""
        self._end_enqueued()
        self._end_run()
        self._end_settled()
        self._size = _EMPTY_SIZE
        self.is_full = False
        if len(self._settled) > 1:
            self._settled = _joined(self._settled)
        batch: QuorumBatch = QuorumBatch.__new__(QuorumBatch)
        # The constructor would cost more than all the rest of this.
        batch.runs = _taken(self._runs)
        batch.enqueued = _taken(self._enqueued)
        batch.reaches = self._take_reaches()
        batch.returned = _taken(self._returned)
        batch.held = _taken(self._held)
        batch.settled = _taken(self._settled)
        batch.forgotten = _taken(self._forgotten)
        batch.retreats = ()
        return batch

    def _take_reaches(self) -> tuple[Reach, ...]:
        if not self._reaches:
            # As usual: most queues have one level.
            if self._reach_level == _NO_LEVEL:
                return ()
            only = new_reach(self._reach_level, self._reach)
            self._reach_level = _NO_LEVEL
            return (only,)
        self._end_reach()
        reaches, self._reaches = self._reaches, {}
        return tuple([Reach(level, reaches[level]) for level in sorted(reaches)])

    def _end_reach(self) -> None:
        if self._reach_level != _NO_LEVEL:
            before = self._reaches.get(self._reach_level)
            if before is None or before < self._reach:
                self._reaches[self._reach_level] = self._reach
            self._reach_level = _NO_LEVEL

    def _grow(self, size: int) -> None:
        self._size += size
        assert self._size <= _SIZE_MAX, "added to a full batch"
        if self._size > _FULL_SIZE:
            self.is_full = True

    def _end_enqueued(self) -> None:
        count = self._enqueued_count
        if count:
            self._enqueued.append(new_enqueue(self._enqueuer, self._next_number - count, count))
            self._next_number = self._enqueued_count = 0

    def _end_run(self) -> None:
        count = self._run_count
        if count:
            self._runs.append(new_position_run(self._run_level, self._run_end - count, count))
            self._run_level = _NO_LEVEL
            self._run_count = 0
            if len(self._runs) >= _RUNS_MAX - 1:
                self.is_full = True

    def _end_settled(self) -> None:
        if self._settled_level != _NO_LEVEL:
            first = self._settled_first
            count = self._settled_end - first
            run = new_settled_run(self._settled_level, first, count, self._settled_bytes)
            run.reason = self._settled_reason
            self._settled.append(run)
            self._settled_level = _NO_LEVEL


def _taken(collected: list[Item]) -> tuple[Item, ...]:
    """What was collected, of which the list has nothing any more."""
    if not collected:
        return ()
    taken = tuple(collected)
    collected.clear()
    return taken


def _joined(runs: list[SettledRun]) -> list[SettledRun]:
    """The `runs` in order of position, those that continue another one of the same reason as one run."""
    runs.sort(key=attrgetter("level", "first"))
    joined: list[SettledRun] = []
    for run in runs:
        last = joined[-1] if joined else None
        if (
            last is not None
            and run.first == last.first + last.count
            and run.level == last.level
            and run.reason is last.reason
        ):
            count, size = last.count + run.count, last.size + run.size
            joined[-1] = SettledRun(run.level, last.first, count, size=size, reason=run.reason)
        else:
            joined.append(run)
    return joined
