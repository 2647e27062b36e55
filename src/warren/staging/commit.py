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
from warren.session.channel_origin import ChannelOrigin
from warren.session.server import Server
from warren.session.vhost_services import VhostServices
from warren.store.disk import DiskStep
from warren.store.segment import StoreFileError
from warren.store.staged.commit_plan import CommitPlan, write_plan
from warren.store.staged.commit_progress import CommitProgress, CommitState
from warren.store.staged.stage import Stage, read_chunk, verify
from warren.store.staged.stage_index import StageIndex
from warren.store.streams.chunk import Chunk
from warren.vhost.batch_commit import BatchCommit

logger = logging.getLogger("warren.staged")

# How often it is looked whether it can go on.
_POLL_S = 0.1
# And whether a disk that had an error has none any more.
_RETRY_S = 1.0
_DISK_BUSY = "the disk has enough to do"

# Has a job done in the thread that commits.
RunInThread = Callable[[Callable[[], object]], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDependencies:
    """What a commit needs of where it is made."""

    server: Server
    services: VhostServices
    disk: DirectoryDisk
    stage_index: StageIndex
    do: RunInThread
    now: Callable[[], int]


class Commit:
    """One batch on its way into the queues."""

    def __init__(self, dependencies: CommitDependencies, plan: CommitPlan, progress: CommitProgress) -> None:
        """`plan` as far as `progress` says; see `decide`."""
        self.plan = plan
        # Why it does not go on now; empty if it does.
        self.reason = ""
        self.is_decided = False
        self._dependencies = dependencies
        self._committing = BatchCommit(dependencies.services.vhost, plan.query, progress)
        self._woken = asyncio.Event()
        self._committing.wake = self._woken.set
        self._is_given_up = False

    @property
    def progress(self) -> CommitProgress:
        """How far it is."""
        return self._committing.progress

    async def decide(self, admit: Callable[[bytes], object]) -> None:
        """Find that all of it can be read, and published by who asks, and decide that it will be.

        SegmentError, OSError and what `admit` raises: it will not.
        """
        for number in self.plan.stages:
            stage = self._dependencies.stage_index.stages[number]
            await self._dependencies.do(partial(verify, self._dependencies.disk, stage, admit))
        self.is_decided = True
        self._dependencies.stage_index.plans[self.plan.query] = self.plan
        # A disk that fails in this leaves nobody knowing; so it is decided, and written when it can be.
        await self._retry_until_done(partial(write_plan, self._dependencies.disk, self.plan))

    async def publish(self) -> None:
        """Publish what is not published yet; over when all of it is safe and its stages are gone."""
        self.is_decided = True
        skipped = self.progress.published
        for number in self.plan.stages:
            stage = self._dependencies.stage_index.stages.get(number)
            while stage is None and not self._is_given_up:
                await self._wait(f"stage {number:08x} is damaged", _RETRY_S)
            if self._is_given_up or stage is None:
                break
            if skipped >= stage.rows:
                skipped -= stage.rows
                continue
            await self._publish_stage(stage, skipped)
            skipped = 0
        self._committing.end(CommitState.GIVEN_UP if self._is_given_up else CommitState.COMMITTED)
        while not self._committing.is_safe:
            await self._wait(self.reason, _POLL_S)
        self.reason = ""
        progress = self.progress
        logger.info(
            "batch %d of query '%s' in vhost '%s' is %s: %d rows, %d of them unroutable",
            self.plan.batch, self.plan.query, self._dependencies.services.vhost.name,
            "given up" if self._is_given_up else "committed", progress.published, progress.unroutable,
        )  # fmt: skip
        steps = self._dependencies.stage_index.end(self.plan)
        await self._dependencies.do(partial(_perform, self._dependencies.disk, steps))

    def give_up(self) -> None:
        """Publish no more of it; what was published stays."""
        self._is_given_up = True
        self._woken.set()

    async def _publish_stage(self, stage: Stage, skipped: int) -> None:
        """Publish the rows of `stage` but for the first, `skipped`, which are published."""
        at = stage.first
        while at < stage.end and not self._is_given_up:
            chunks: list[Chunk] = []
            await self._retry_until_done(partial(_read_some, self._dependencies.disk, stage, at, chunks))
            for chunk in chunks:
                place = min(skipped, chunk.count)
                skipped -= place
                await self._publish_chunk(chunk, place)
                at += chunk.size

    async def _publish_chunk(self, chunk: Chunk, place: int) -> None:
        while place < chunk.count and not self._is_given_up:
            if self._committing.is_full:
                await self._wait(self.reason, _POLL_S)
                continue
            reason = self._blocked_reason()
            if not reason:
                self._begin_turn()
                place, reason = self._committing.publish(chunk, place)
            if reason:
                await self._wait(reason, _POLL_S)
            else:
                self.reason = ""
                await asyncio.sleep(0)

    def _begin_turn(self) -> None:
        """Have the virtual host know what time it is, and who watches it what is published."""
        services = self._dependencies.services
        services.vhost.now = self._dependencies.now()
        self._committing.published = None
        if services.vhost.is_traced:
            origin = ChannelOrigin(
                _StagedOrigin(), 0, self.plan.user, self._dependencies.server.event_publisher
            )
            self._committing.published = lambda message, to: services.tracer.published(message, to, origin)

    def _blocked_reason(self) -> str:
        """Why publishers wait now, and so does the commit; empty if they do not."""
        if self._dependencies.server.blocked_reason:
            return self._dependencies.server.blocked_reason
        return _DISK_BUSY if self._dependencies.services.credit.is_spent else ""

    async def _retry_until_done(self, job: Callable[[], object]) -> None:
        """Have `job` done, again and again until it can be, or until it is not wanted any more."""
        while not self._is_given_up:
            try:
                await self._dependencies.do(job)
            except (OSError, StoreFileError) as error:
                if str(error) != self.reason:
                    logger.error(
                        "batch %d of query '%s' in vhost '%s' waits: %s",
                        self.plan.batch, self.plan.query, self._dependencies.services.vhost.name, error,
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


class _StagedOrigin:
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


def _perform(disk: DirectoryDisk, steps: list[DiskStep]) -> None:
    """Delete what is not needed any more; what cannot be deleted now is with the next start."""
    try:
        disk.perform(steps)
    except OSError as error:
        logger.warning("what was staged is not deleted until the next start: %s", error)
