"""The jobs of a node: those that run, and the last that ended, until the node stops."""

import asyncio
import logging
from collections.abc import Callable

from warren.jobs.job import Job, JobState
from warren.limits import JOBS_KEPT_MAX, JOBS_RUNNING_MAX, JOBS_STOPPING_S, UNDO_MESSAGES_TOTAL_MAX
from warren.metadata.identity import shown_name

logger = logging.getLogger("warren.management")

_ID_BYTES = 8
_SHUTDOWN = "the node was stopped"
_SEE_LOG = "an error of the broker: see its log"


class Jobs:
    """Starts jobs, and keeps ended ones."""

    def __init__(
        self,
        random_bytes: Callable[[int], bytes],
        now: Callable[[], int],
        count_failure: Callable[[str], None],
    ) -> None:
        """`count_failure` is called with the virtual host of a job that an unexpected exception has ended."""
        self._random_bytes = random_bytes
        self._now = now
        self._count_failure = count_failure
        # In the order of their start.
        self.by_id: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closed = False

    def new_id(self) -> str:
        """Return an unguessable id for a job."""
        return self._random_bytes(_ID_BYTES).hex()

    @property
    def is_full(self) -> bool:
        """True if no more jobs may run."""
        return self._is_closed or len(self._tasks) >= JOBS_RUNNING_MAX

    def start(self, job: Job) -> None:
        """Start `job`; requires that `is_full` is False. The oldest ended job may be forgotten."""
        over = [known.id for known in self.by_id.values() if known.is_over]
        for id in over[: max(len(over) - JOBS_KEPT_MAX + 1, 0)]:
            del self.by_id[id]
        job.started_at = self._now()
        self.by_id[job.id] = job
        logger.info(
            "%s %s of queue '%s' in vhost '%s' started by user '%s'",
            job.kind.value, job.id, job.queue, job.vhost, shown_name(job.user),
        )  # fmt: skip
        self._tasks[job.id] = asyncio.get_running_loop().create_task(self._run(job))

    async def close(self) -> None:
        """Stop all jobs, and wait for their messages in flight, for a limited time."""
        self._is_closed = True
        for id in self._tasks:
            self.by_id[id].stop(_SHUTDOWN)
        if self._tasks:
            _, running = await asyncio.wait(self._tasks.values(), timeout=JOBS_STOPPING_S)
            for task in running:
                task.cancel()

    async def _run(self, job: Job) -> None:
        state = JobState.FAILED
        try:
            state = await job.run()
        except Exception:
            job.reason = _SEE_LOG
            logger.exception(
                "%s %s of queue '%s' in vhost '%s' has failed", job.kind.value, job.id, job.queue, job.vhost
            )
            self._count_failure(job.vhost)
        finally:
            job.end(state, self._now())
            del self._tasks[job.id]
            self._forget_undo_logs()
        logger.info("%s %s %s: %d messages moved", job.kind.value, job.id, state.value, job.counts().moved)

    def _forget_undo_logs(self) -> None:
        """Clear the undo logs of the oldest ended redrives if all logs together exceed their limit."""
        trails = [job.undo_log for job in self.by_id.values() if job.undo_log is not None and job.is_over]
        known = sum(undo_log.count for undo_log in trails)
        for undo_log in trails:
            if known <= UNDO_MESSAGES_TOTAL_MAX:
                return
            known -= undo_log.count
            undo_log.clear()
