"""One commit: looks at all that it is to publish, decides, and publishes it, also after a restart.

    verify ─▶ plan, synced ─▶ slices … ─▶ mark says committed, synced ─▶ plan and stages are deleted

Before the plan is written nothing was published, and the commit may be refused. Behind it nothing is refused
any more: what is in the way, such as a queue that is full, is waited for.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from warren.limits import STAGED_READ_SIZE
from warren.runtime.disk import DirectoryDisk
from warren.session.domain import Domain
from warren.session.origin import Origin
from warren.session.server import Server
from warren.store.disk import Step
from warren.store.segment import SegmentError
from warren.store.staged.plan import Plan, write_plan
from warren.store.staged.progress import Progress, State
from warren.store.staged.shelf import Shelf
from warren.store.staged.stage import Stage, read_chunk, verify
from warren.store.streams.chunk import Chunk
from warren.vhost.committing import Committing

logger = logging.getLogger("warren.staged")

# How often it is looked whether it can go on.
_LOOK_S = 0.1
# And whether a disk that had an error has none any more.
_RETRY_S = 1.0
_CREDIT = "the disk has enough to do"

# Has a job done in the thread that commits.
Doing = Callable[[Callable[[], object]], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitWorld:
    """What a commit needs of where it is made."""

    server: Server
    domain: Domain
    disk: DirectoryDisk
    shelf: Shelf
    do: Doing
    now: Callable[[], int]


class Commit:
    """One batch on its way into the queues."""

    def __init__(self, world: CommitWorld, plan: Plan, progress: Progress) -> None:
        """`plan` as far as `progress` says; see `decide`."""
        self.plan = plan
        # Why it does not go on now; empty if it does.
        self.reason = ""
        self.is_decided = False
        self._world = world
        self._committing = Committing(world.domain.vhost, plan.query, progress)
        self._woken = asyncio.Event()
        self._committing.wake = self._woken.set
        self._is_given_up = False

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return self._committing.progress

    async def decide(self, admit: Callable[[bytes], object]) -> None:
        """Find that all of it can be read, and published by who asks, and decide that it will be.

        SegmentError, OSError and what `admit` raises: it will not.
        """
        for number in self.plan.stages:
            stage = self._world.shelf.stages[number]
            await self._world.do(partial(verify, self._world.disk, stage, admit))
        self.is_decided = True
        self._world.shelf.plans[self.plan.query] = self.plan
        # A disk that fails in this leaves nobody knowing; so it is decided, and written when it can be.
        await self._insist(partial(write_plan, self._world.disk, self.plan))

    async def publish(self) -> None:
        """Publish what is not published yet; over when all of it is safe and its stages are gone."""
        self.is_decided = True
        skipped = self.progress.published
        for number in self.plan.stages:
            stage = self._world.shelf.stages.get(number)
            while stage is None and not self._is_given_up:
                await self._wait(f"stage {number:08x} is damaged", _RETRY_S)
            if self._is_given_up or stage is None:
                break
            if skipped >= stage.rows:
                skipped -= stage.rows
                continue
            await self._publish_stage(stage, skipped)
            skipped = 0
        self._committing.end(State.GIVEN_UP if self._is_given_up else State.COMMITTED)
        while not self._committing.is_safe:
            await self._wait(self.reason, _LOOK_S)
        self.reason = ""
        progress = self.progress
        logger.info(
            "batch %d of query '%s' in vhost '%s' is %s: %d rows, %d of them unroutable",
            self.plan.batch, self.plan.query, self._world.domain.vhost.name,
            "given up" if self._is_given_up else "committed", progress.published, progress.unroutable,
        )  # fmt: skip
        steps = self._world.shelf.end(self.plan)
        await self._world.do(partial(_performed, self._world.disk, steps))

    def give_up(self) -> None:
        """Publish no more of it; what was published stays."""
        self._is_given_up = True
        self._woken.set()

    async def _publish_stage(self, stage: Stage, skipped: int) -> None:
        """Publish the rows of `stage` but for the first, `skipped`, which are published."""
        at = stage.first
        while at < stage.end and not self._is_given_up:
            chunks: list[Chunk] = []
            await self._insist(partial(_read_some, self._world.disk, stage, at, chunks))
            for chunk in chunks:
                place = min(skipped, chunk.count)
                skipped -= place
                await self._publish_chunk(chunk, place)
                at += chunk.size

    async def _publish_chunk(self, chunk: Chunk, place: int) -> None:
        while place < chunk.count and not self._is_given_up:
            if self._committing.is_full:
                await self._wait(self.reason, _LOOK_S)
                continue
            reason = self._held_up()
            if not reason:
                self._begin_turn()
                place, reason = self._committing.publish(chunk, place)
            if reason:
                await self._wait(reason, _LOOK_S)
            else:
                self.reason = ""
                await asyncio.sleep(0)

    def _begin_turn(self) -> None:
        """Have the virtual host know what time it is, and who watches it what is published."""
        domain = self._world.domain
        domain.vhost.now = self._world.now()
        self._committing.published = None
        if domain.vhost.is_traced:
            origin = Origin(_Committer(), 0, self.plan.user, self._world.server.announcer)
            self._committing.published = lambda message, to: domain.tracer.published(message, to, origin)

    def _held_up(self) -> str:
        """Why publishers wait now, and so does the commit; empty if they do not."""
        if self._world.server.blocked_reason:
            return self._world.server.blocked_reason
        return _CREDIT if self._world.domain.credit.is_spent else ""

    async def _insist(self, job: Callable[[], object]) -> None:
        """Have `job` done, again and again until it can be, or until it is not wanted any more."""
        while not self._is_given_up:
            try:
                await self._world.do(job)
            except (OSError, SegmentError) as error:
                if str(error) != self.reason:
                    logger.error(
                        "batch %d of query '%s' in vhost '%s' waits: %s",
                        self.plan.batch, self.plan.query, self._world.domain.vhost.name, error,
                    )  # fmt: skip
                await self._wait(str(error), _RETRY_S)
            else:
                self.reason = ""
                return

    async def _wait(self, reason: str, delay_s: float) -> None:
        self.reason = reason
        self._woken.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), delay_s)


class _Committer:
    """Where what is committed comes from, as it is named beside connections."""

    name = "staged"


def _read_some(disk: DirectoryDisk, stage: Stage, at: int, chunks: list[Chunk]) -> None:
    """Add the next rows of `stage` from `at` on to `chunks`."""
    chunks.clear()
    end = min(at + STAGED_READ_SIZE, stage.end)
    while at < end:
        chunk = read_chunk(disk, stage, at)
        chunks.append(chunk)
        at += chunk.size


def _performed(disk: DirectoryDisk, steps: list[Step]) -> None:
    """Delete what is not needed any more; what cannot be deleted now is with the next start."""
    try:
        disk.perform(steps)
    except OSError as error:
        logger.warning("what was staged is not deleted until the next start: %s", error)
