"""One redrive, move or undo, and how far it is."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from warren.errors import AmqpError
from warren.limits import JOB_LOOK_S, LOOKED_AT_PER_TURN
from warren.management.jobs.pace import Pace
from warren.management.jobs.permit import Permit
from warren.vhost.moving import Moving, Staying
from warren.vhost.trail import Trail


class Kind(Enum):
    """What it does."""

    REDRIVE = "redrive"
    MOVE = "move"
    UNDO = "undo"


class State(Enum):
    """How it is. The last three are ends."""

    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Leg:
    """The messages of one queue that it moves, with leave to do so."""

    moving: Moving
    permit: Permit


@dataclass(slots=True)
class Tally:
    """What came of it so far."""

    examined: int = 0
    # Copies counted as they were sent.
    moved: int = 0
    under_way: int = 0
    staying: list[Staying] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """Messages that could not go."""
        return sum(staying.count for staying in self.staying)


@dataclass(slots=True, kw_only=True)
class Job:
    """What was asked for, and what came of it."""

    id: str
    kind: Kind
    user: str
    vhost: str
    queue: str
    # Where to, as it was asked for.
    target: Mapping[str, object]
    legs: list[Leg]
    limit: int | None = None
    # Messages per second.
    rate: float | None = None
    started_at: int = 0
    ended_at: int | None = None
    state: State = State.RUNNING
    # Why it waits, failed, or was stopped.
    reason: str = ""
    # Of a redrive: where its messages are, while they can be taken back; and the undo that did.
    trail: Trail | None = None
    undone_by: "Job | None" = None
    # Of an undo: whose.
    undoes: "Job | None" = None
    is_stopping: bool = False
    # Once it is over.
    outcome: Tally | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """True if it ended, one way or another."""
        return self.ended_at is not None

    def tally(self) -> Tally:
        """What came of it so far."""
        if self.outcome is not None:
            return self.outcome
        moving = [leg.moving for leg in self.legs]
        return Tally(
            examined=sum(one.looking.examined for one in moving),
            moved=sum(one.moved_count for one in moving),
            under_way=sum(one.under_way_count for one in moving),
            staying=[one.staying for one in moving],
        )

    def end(self, state: State, now: int) -> None:
        """It is over: what it worked with may go, and what came of it stays."""
        self.outcome = self.tally()
        self.legs.clear()
        self.state = state
        self.ended_at = now

    @property
    def too_late(self) -> int | None:
        """Of an undo that is over: how many messages are not back, as somebody has had them; else None."""
        if self.undoes is None or self.undoes.trail is None or not self.is_over:
            return None
        return self.undoes.tally().moved - self.undoes.trail.back_count

    def stop(self, reason: str) -> None:
        """Send no more; what is under way arrives."""
        if not self.is_over and not self.is_stopping:
            self.is_stopping = True
            self.reason = reason
            self.woken.set()

    async def run(self) -> State:
        """Move everything, a piece in each turn; how it ended, with the reason noted."""
        for leg in self.legs:
            leg.moving.wake = self.woken.set
            try:
                await self._send(leg)
            except AmqpError as error:
                self.is_stopping = False
                self.reason = error.message
                await self._arrive(leg)
                return State.FAILED
            await self._arrive(leg)
            if self.is_stopping:
                return State.STOPPED
        self.reason = ""
        if self.undoes is not None and self.undoes.trail is not None:
            self.undoes.trail.clear()
        return State.DONE

    async def _send(self, leg: Leg) -> None:
        moving, permit = leg.moving, leg.permit
        loop = asyncio.get_running_loop()
        pace = Pace(self.rate, loop.time())
        while not (self.is_stopping or moving.looking.is_over):
            permit.begin_turn()
            left = LOOKED_AT_PER_TURN
            if self.limit is not None:
                left = min(self.limit - moving.sent_count, left)
                if left <= 0:
                    return
            reason = permit.held_up()
            allowed = pace.allowed(loop.time(), left)
            if reason or moving.is_full:
                await self._wait(reason or "what was sent is not safe yet", JOB_LOOK_S)
            elif not allowed:
                await self._wait("", pace.delay_s())
            else:
                self._go_on()
                before = moving.sent_count
                moving.move(LOOKED_AT_PER_TURN, allowed)
                pace.spend(moving.sent_count - before)
                await asyncio.sleep(0)

    async def _arrive(self, leg: Leg) -> None:
        """Wait for what is under way; if nobody can have it any more, it goes back to where it was."""
        while leg.moving.under_way_count:
            if not leg.permit.has_target:
                leg.moving.give_back()
                return
            self.woken.clear()
            await self._sleep(JOB_LOOK_S)

    async def _wait(self, reason: str, delay_s: float) -> None:
        if reason:
            self.state, self.reason = State.WAITING, reason
        self.woken.clear()
        await self._sleep(min(delay_s, 1.0))

    async def _sleep(self, delay_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), delay_s)

    def _go_on(self) -> None:
        if self.state is State.WAITING:
            self.state, self.reason = State.RUNNING, ""
