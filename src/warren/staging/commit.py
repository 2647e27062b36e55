"""One commit: verifies the staged rows of a batch, decides, and publishes them, also after a restart.

    verify ─▶ plan, synced ─▶ slices … ─▶ marker says committed, synced ─▶ plan and stages are deleted

Before the plan is written nothing is published, and the commit can be refused. After that nothing is refused:
the commit waits for obstacles, such as a full queue, to go away.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from msgspec import Struct

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

# Interval at which a waiting commit checks whether it can continue.
_POLL_S = 0.1
# Interval at which it retries after a disk error.
_RETRY_S = 1.0
_DISK_BUSY = "the disk is busy: publishers wait until pending writes are done"

# Runs a function in the thread of commits.
RunInThread = Callable[[Callable[[], object]], Awaitable[object]]


class CommitDependencies(Struct, frozen=True, kw_only=True):
    """The objects of the virtual host that a commit uses."""

    server: Server
    services: VhostServices
    disk: DirectoryDisk
    stage_index: StageIndex
    do: RunInThread


class Commit:
    """The commit of one batch."""

    def __init__(self, dependencies: CommitDependencies, plan: CommitPlan, progress: CommitProgress) -> None:
        """Continue `plan` from `progress`; a new plan begins with `decide`."""
        self.plan = plan
        # Why the commit waits; empty if it does not.
        self.reason = ""
        self.is_decided = False
        self._dependencies = dependencies
        self._committing = BatchCommit(dependencies.services.vhost, plan.query, progress)
        self._woken = asyncio.Event()
        self._committing.wake = self._woken.set
        self._is_given_up = False

    @property
    def progress(self) -> CommitProgress:
        """The progress of the commit."""
        return self._committing.progress

    async def decide(self, admit: Callable[[bytes], object]) -> None:
        """Verify that all rows are readable and that the user may publish them, then write the plan.

        Raises StoreFileError, OSError and what `admit` raises: the commit is refused then.
        """
        for number in self.plan.stages:
            stage = self._dependencies.stage_index.stages[number]
            await self._dependencies.do(partial(verify, self._dependencies.disk, stage, admit))
        self.is_decided = True
        self._dependencies.stage_index.plans[self.plan.query] = self.plan
        # After a failed write the plan may be on the disk or not. So the decision stands, and the write is
        # retried.
        await self._retry_until_done(partial(write_plan, self._dependencies.disk, self.plan))

    async def publish(self) -> None:
        """Publish the remaining rows; returns when all are safe and their stages are deleted."""
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
            "batch %d of query '%s' in vhost '%s' %s: %d rows, %d of them unroutable",
            self.plan.batch, self.plan.query, self._dependencies.services.vhost.name,
            "given up" if self._is_given_up else "committed", progress.published, progress.unroutable,
        )  # fmt: skip
        steps = self._dependencies.stage_index.end(self.plan)
        await self._dependencies.do(partial(_perform, self._dependencies.disk, steps))

    def give_up(self) -> None:
        """Stop publishing; rows that were published stay."""
        self._is_given_up = True
        self._woken.set()

    async def _publish_stage(self, stage: Stage, skipped: int) -> None:
        """Publish the rows of `stage` after the first `skipped`, which are published already."""
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
                self._attach_tracer()
                place, reason = self._committing.publish(chunk, place)
            if reason:
                await self._wait(reason, _POLL_S)
            else:
                self.reason = ""
                await asyncio.sleep(0)

    def _attach_tracer(self) -> None:
        """Trace what is published in this turn if tracing is on."""
        services = self._dependencies.services
        self._committing.published = None
        if services.vhost.is_traced:
            origin = ChannelOrigin(
                _StagedOrigin(), 0, self.plan.user, self._dependencies.server.event_publisher
            )
            self._committing.published = lambda message, to: services.tracer.published(message, to, origin)

    def _blocked_reason(self) -> str:
        """Return why publishers, and so the commit, have to wait; empty if they do not."""
        if self._dependencies.server.blocked_reason:
            return self._dependencies.server.blocked_reason
        return _DISK_BUSY if self._dependencies.services.credit.is_spent else ""

    async def _retry_until_done(self, job: Callable[[], object]) -> None:
        """Run `job` until it succeeds, or the commit is given up."""
        while not self._is_given_up:
            try:
                await self._dependencies.do(job)
            except (OSError, StoreFileError) as error:
                if str(error) != self.reason:
                    logger.error(
                        "batch %d of query '%s' in vhost '%s' cannot be written, will retry: %s",
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
    """The origin of committed messages in traces, in place of a connection."""

    name = "staged"


def _read_some(disk: DirectoryDisk, stage: Stage, at: int, chunks: list[Chunk]) -> None:
    """Replace `chunks` by the next chunks of `stage` from `at` on."""
    chunks.clear()
    end = min(at + STAGED_READ_SIZE, stage.end)
    while at < end:
        chunk = read_chunk(disk, stage, at)
        chunks.append(chunk)
        at += chunk.size


def _perform(disk: DirectoryDisk, steps: list[DiskStep]) -> None:
    """Delete files that are not needed any more; the next start deletes those that cannot be deleted now."""
    try:
        disk.perform(steps)
    except OSError as error:
        logger.warning("cannot delete committed stages, will retry at the next start: %s", error)
