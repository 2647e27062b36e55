"""One redrive, move or undo, and its progress."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from functools import partial

from msgspec import Struct, field

from warren.errors import AmqpError
from warren.flow.rate_limiter import RateLimiter
from warren.jobs.permit import Permit
from warren.limits import JOB_POLL_S, SCANNED_PER_TURN
from warren.model.decided import decided
from warren.vhost.message_move import MessageMove, MoveFailures
from warren.vhost.undo_log import UndoLog


class JobKind(Enum):
    """The kind of a job."""

    REDRIVE = "redrive"
    MOVE = "move"
    UNDO = "undo"


class JobState(Enum):
    """The state of a job; the last three are final."""

    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class JobStep(Struct, frozen=True):
    """The move of the messages of one queue, with its permit."""

    message_move: MessageMove
    permit: Permit


class JobCounts(Struct):
    """The message counts of a job."""

    examined: int = 0
    # Includes copies.
    moved: int = 0
    under_way: int = 0
    move_failures: list[MoveFailures] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """The number of messages that could not be moved."""
        return sum(move_failures.count for move_failures in self.move_failures)


class Job(Struct, kw_only=True):
    """The request for a job, and its state and results."""

    id: str
    kind: JobKind
    user: str
    vhost: str
    queue: str
    # The target, as requested.
    target: Mapping[str, object]
    steps: list[JobStep]
    limit: int | None = None
    # Messages per second.
    rate: float | None = None
    started_at: int = 0
    ended_at: int | None = None
    state: JobState = JobState.RUNNING
    # Why the job waits, failed, or was stopped.
    reason: str = ""
    # Of a redrive: the new places of its messages, while it can be undone; and the job that has undone it.
    undo_log: UndoLog | None = None
    undone_by: "Job | None" = None
    # Of an undo: the job that it undoes.
    undoes: "Job | None" = None
    is_stopping: bool = False
    # The final counts, once the job has ended.
    outcome: JobCounts | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """True if the job has ended, in any way."""
        return self.ended_at is not None

    def counts(self) -> JobCounts:
        """Return the current counts, or the final ones."""
        if self.outcome is not None:
            return self.outcome
        message_move = [step.message_move for step in self.steps]
        return JobCounts(
            examined=sum(one.queue_scan.examined for one in message_move),
            moved=sum(one.moved_count for one in message_move),
            under_way=sum(one.in_flight_count for one in message_move),
            move_failures=[one.move_failures for one in message_move],
        )

    def end(self, state: JobState, now: int) -> None:
        """End the job: release its queues, and keep its counts."""
        self.outcome = self.counts()
        self.steps.clear()
        self.state = state
        self.ended_at = now

    @property
    def too_late(self) -> int | None:
        """For an ended undo, the number of messages not moved back, as they were consumed; else None."""
        if self.undoes is None or self.undoes.undo_log is None or not self.is_over:
            return None
        return self.undoes.counts().moved - self.undoes.undo_log.undone_count

    def stop(self, reason: str) -> None:
        """Send no more messages; those in flight arrive."""
        if not self.is_over and not self.is_stopping:
            self.is_stopping = True
            self.reason = reason
            self.woken.set()

    async def run(self) -> JobState:
        """Move all messages, a part in each turn; returns the final state, and sets the reason."""
        for step in self.steps:
            step.message_move.wake = self.woken.set
            try:
                await self._send(step)
            except AmqpError as error:
                self.is_stopping = False
                self.reason = error.message
                await self._wait_for_confirms(step)
                return JobState.FAILED
            await self._wait_for_confirms(step)
            if self.is_stopping:
                return JobState.STOPPED
        self.reason = ""
        if self.undoes is not None and self.undoes.undo_log is not None:
            self.undoes.undo_log.clear()
        return JobState.DONE

    async def _send(self, step: JobStep) -> None:
        message_move, permit = step.message_move, step.permit
        loop = asyncio.get_running_loop()
        rate_limiter = RateLimiter(self.rate, loop.time())
        while not (self.is_stopping or message_move.queue_scan.is_over):
            await decided(permit.check)
            left = SCANNED_PER_TURN
            if self.limit is not None:
                left = min(self.limit - message_move.sent_count, left)
                if left <= 0:
                    return
            reason = permit.blocked_reason()
            allowed = rate_limiter.allowed(loop.time(), left)
            if reason or message_move.is_full:
                await self._wait(reason or "published messages are not confirmed yet", JOB_POLL_S)
            elif not allowed:
                await self._wait("", rate_limiter.delay_s())
            else:
                self._set_running()
                before = message_move.sent_count
                await decided(partial(_move, message_move, before + allowed))
                rate_limiter.spend(message_move.sent_count - before)
                await asyncio.sleep(0)

    async def _wait_for_confirms(self, step: JobStep) -> None:
        """Wait for the messages in flight; if the target has stopped, return them to the source queue."""
        while step.message_move.in_flight_count:
            if not step.permit.has_target:
                step.message_move.give_back()
                return
            self.woken.clear()
            await self._sleep(JOB_POLL_S)

    async def _wait(self, reason: str, delay_s: float) -> None:
        if reason:
            self.state, self.reason = JobState.WAITING, reason
        self.woken.clear()
        await self._sleep(min(delay_s, 1.0))

    async def _sleep(self, delay_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), delay_s)

    def _set_running(self) -> None:
        if self.state is JobState.WAITING:
            self.state, self.reason = JobState.RUNNING, ""


async def _move(message_move: MessageMove, sent_max: int) -> None:
    """Move a turn's messages, until `sent_max` of all are sent."""
    message_move.move(SCANNED_PER_TURN, sent_max - message_move.sent_count)
