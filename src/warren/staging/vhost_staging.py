"""The stages of one virtual host while it is running, and the commits in progress."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from msgspec import Struct

from warren.errors import AmqpError
from warren.limits import (
    STAGE_SIZE_MAX,
    STAGED_AGE_MS_MAX,
    STAGED_COUNT_MAX,
    STAGED_QUERIES_MAX,
    STAGED_QUERIES_OF_USER_MAX,
    STAGED_QUERY_AGE_MS_MAX,
    STAGED_QUERY_AGE_MS_MIN,
    STAGED_SIZE_MAX,
)
from warren.model.decided import decided
from warren.model.message import HAS_HEADERS, Message
from warren.routing.copies import addresses_of
from warren.routing.router import decode_name
from warren.runtime.disk import DirectoryDisk
from warren.runtime.worker_thread import WorkerThread
from warren.session.vhost_services import VhostServices
from warren.staging.commit import Commit, CommitDependencies
from warren.staging.ipc_messages import IpcMessage, IpcMessageKind
from warren.staging.row_decoder import RowDecoder, RowRefused
from warren.staging.staging_context import StagingContext
from warren.store.disk import DeleteFile, DiskStep
from warren.store.message_store import MessageStore
from warren.store.segment import StoreFileError
from warren.store.staged.commit_plan import CommitPlan
from warren.store.staged.commit_progress import CommitProgress, CommitState, is_progress_key, progress_key
from warren.store.staged.stage import SALT_SIZE, Stage, StageDescription, StageWriter
from warren.store.staged.stage_index import StageIndex, open_stage_index
from warren.store.streams.chunk import MessageRun

logger = logging.getLogger("warren.staged")

Result = TypeVar("Result")
# Raises unless the user may publish to an address; True if also to every other address of its exchange.
Admit = Callable[[bytes], bool]


class StagingConflict(Exception):
    """The request conflicts with the state of the batch; the text says how."""


class QueryNotOwned(Exception):
    """The query belongs to another user."""


class StagingFull(Exception):
    """A limit is reached; the text says which."""


class StageRules(Struct, frozen=True, kw_only=True):
    """Rules for received rows: permission check, mandatory routing, and takeover of another user's query."""

    admit: Admit
    is_mandatory: bool
    takes_over: bool


class VhostStaging:
    """The stages and commits of one virtual host."""

    def __init__(self, context: StagingContext, services: VhostServices, path: Path) -> None:
        assert services.vhost.stores is not None
        self.services = services
        self.stage_index = StageIndex()
        # By query.
        self.commits: dict[str, Commit] = {}
        self._context = context
        self._path = path
        self._store: MessageStore = services.vhost.stores.persistent
        self._disk: DirectoryDisk | None = None
        self._writing: DirectoryDisk | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._opening: asyncio.Task[None] | None = None
        # Number of stages being received by query, batch and user.
        self._receiving: Counter[tuple[str, int, str]] = Counter()

    # --- start and stop -------------------------------------------------------------------------

    def begin(self) -> None:
        """Start reading the stages on the disk, and resume commits that were decided."""
        self._opening = asyncio.get_running_loop().create_task(self._open())

    async def ready(self) -> None:
        """Wait until the stages are read. Raises OSError if that is impossible."""
        assert self._opening is not None
        if not self._opening.done():
            await asyncio.wait([self._opening])
        if self._opening.cancelled():
            raise OSError(f"the virtual host '{self.services.vhost.name}' was deleted or is down")
        self._opening.result()

    async def close(self) -> None:
        """Stop; commits resume at the next start."""
        tasks = [task for task in (self._opening, *self._tasks.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for disk in (self._disk, self._writing):
            if disk is not None:
                await disk.close_after_jobs()

    async def _open(self) -> None:
        loop, context = asyncio.get_running_loop(), self._context

        def opened() -> tuple[DirectoryDisk, DirectoryDisk, StageIndex]:
            disk = DirectoryDisk(self._path, loop, context.committer)
            writing = DirectoryDisk(self._path, loop, context.receiver)
            return disk, writing, open_stage_index(disk, self._report)

        try:
            self._disk, self._writing, self.stage_index = await done_by(context.committer, opened)
        except (OSError, StoreFileError) as error:
            # If the directory is missing, the virtual host is being deleted.
            if self._path.exists():
                logger.error("vhost '%s': staged rows cannot be read: %s", self.services.vhost.name, error)
            raise
        for plan in list(self.stage_index.plans.values()):
            progress = self.progress(plan.query)
            if progress is not None and is_over(progress, plan.batch):
                await self._perform(self.stage_index.end(plan))
            else:
                self.resume(plan)
        for query, batch in list(self.stage_index.by_batch):
            progress = self.progress(query)
            if progress is not None and is_over(progress, batch):
                await self._perform(self.stage_index.remove(list(self.stage_index.of(query, batch).values())))

    async def load_pyarrow(self) -> ModuleType:
        """Import pyarrow in a thread, since that is slow the first time. Raises ImportError."""
        return await done_by(self._context.receiver, partial(import_module, "pyarrow"))

    # --- owner of a query -----------------------------------------------------------------------

    def owner(self, query: str) -> str | None:
        """Return the only user who may stage and commit as `query`; None if the query is unknown.

        The owner is the first user who stages or commits rows, and afterwards the user of the last commit.
        """
        progress = self.progress(query)
        users = self._users(query)
        if progress is not None and (not users or progress.user in users):
            return progress.user
        return min(users, default=None)

    def is_open_to(self, query: str, user: str, *, takes_over: bool) -> bool:
        """True if `user` may stage and commit as `query`.

        With `takes_over`, `user` may continue the query of another user who has nothing staged or being
        published.
        """
        if takes_over:
            return not self._users(query) - {user}
        return self.owner(query) in (None, user)

    def _users(self, query: str) -> set[str]:
        """Return the users of `query` with rows that are staged, being received or being published."""
        users = {user for coming, _, user in self._receiving if coming == query}
        users.update(self.stage_index.users.get(query, ()))
        plan = self.stage_index.plans.get(query)
        if plan is None and query in self.commits:
            plan = self.commits[query].plan
        if plan is not None:
            users.add(plan.user)
        return users

    # --- staging --------------------------------------------------------------------------------

    async def stage(
        self,
        description: StageDescription,
        rows: RowDecoder,
        frames: AsyncIterator[IpcMessage],
        rules: StageRules,
    ) -> Stage:
        """Store the rows in `frames` as a stage.

        Raises QueryNotOwned, StagingConflict, StagingFull, RowRefused, OSError, and what `admit` raises.
        """
        if not self.is_open_to(description.query, description.user, takes_over=rules.takes_over):
            raise QueryNotOwned
        coming = (description.query, description.batch, description.user)
        self._receiving[coming] += 1
        try:
            async with self._context.turn:
                return await self._receive(description, rows, frames, rules)
        finally:
            self._receiving[coming] -= 1
            if not self._receiving[coming]:
                del self._receiving[coming]

    async def _receive(
        self,
        description: StageDescription,
        rows: RowDecoder,
        frames: AsyncIterator[IpcMessage],
        rules: StageRules,
    ) -> Stage:
        self._check_open(description)
        context, disk = self._context, self._writing
        assert disk is not None
        salt = context.random_bytes(SALT_SIZE)
        number = self.stage_index.new_number()
        writer = await done_by(context.receiver, lambda: StageWriter(disk, number, description, salt))
        coming = 0
        is_begun = False
        try:
            async for frame in frames:
                match frame.kind:
                    case IpcMessageKind.SCHEMA:
                        rows.begin(frame.data)
                        is_begun = True
                    case IpcMessageKind.DICTIONARY:
                        raise RowRefused("columns cannot be dictionaries")
                    case IpcMessageKind.RECORDS:
                        taken = partial(_write_rows, rows, writer, frame.data)
                        await self._admit(await done_by(context.receiver, taken), rules)
                        context.bytes_coming += writer.size - coming
                        coming = writer.size
                        self._check_room(writer.size)
            if not is_begun:
                raise RowRefused("the stream has no schema")
            self._check_open(description)
            stage: Stage = await done_by(context.receiver, writer.finish)
        except BaseException:
            context.receiver.do(writer.abandon)
            raise
        finally:
            context.bytes_coming -= coming
        if self._refusal(description.query, description.batch):
            # Its batch was committed or given up without this stage while the stage was synced.
            await self._perform([DeleteFile(stage.name)])
            self._check_open(description)
        steps = self.stage_index.add(stage)
        if steps:
            await self._perform(steps)
        return stage

    async def _admit(self, examples: Mapping[bytes, Message], rules: StageRules) -> None:
        """Check permissions for `examples`, one row of each route; with `is_mandatory`, also that it is
        routable.
        """
        is_any_key = False
        for count, message in enumerate(examples.values()):
            for address in () if is_any_key else addresses_of(message):
                is_any_key = await decided(partial(_admitted, rules, address))
            if rules.is_mandatory:
                self._check_routed(message)
            elif is_any_key:
                return
            if count % 256 == 255:
                await asyncio.sleep(0)

    def _check_routed(self, message: Message) -> None:
        if self.services.vhost.router.rehearse(message.address, message):
            return
        exchange = decode_name(message.address, 0)
        key = decode_name(message.address, 1 + message.address[0])
        if exchange:
            raise RowRefused(
                f"unroutable: no queue is bound to exchange '{exchange}' for the routing key '{key}'"
            )
        raise RowRefused(f"no queue '{key}' in vhost '{self.services.vhost.name}'")

    def _check_open(self, description: StageDescription) -> None:
        """Raise StagingConflict if its batch accepts no more stages."""
        refusal = self._refusal(description.query, description.batch)
        if refusal:
            raise StagingConflict(refusal)

    def _refusal(self, query: str, batch: int) -> str:
        commit, progress = self.commits.get(query), self.progress(query)
        if commit is not None and commit.plan.batch == batch:
            return f"batch {batch} is being committed"
        if progress is not None and is_over(progress, batch):
            return f"batch {progress.batch} is {progress.state.name.lower().replace('_', ' ')} already"
        return ""

    def _check_room(self, size: int) -> None:
        context = self._context
        if size > STAGE_SIZE_MAX:
            raise StagingFull(f"a stage must have at most {STAGE_SIZE_MAX} bytes")
        if context.byte_count > STAGED_SIZE_MAX or context.count >= STAGED_COUNT_MAX:
            raise StagingFull(
                "too many staged rows on this node wait for their commit: commit or discard batches"
            )

    # --- committing -----------------------------------------------------------------------------

    def progress(self, query: str) -> CommitProgress | None:
        """Return the progress of the last batch of `query`; None if it is unknown."""
        marker = self._store.markers.get(progress_key(query))
        return None if marker is None else CommitProgress.decode(marker.value)

    def commit(self, query: str, batch: int, stages: list[Stage], user: str) -> Commit:
        """Create the commit of `stages` of `batch`; see `decide`. Raises StagingConflict or StagingFull."""
        progress = self.progress(query)
        if progress is None:
            self._make_room_for_query(user)
        elif progress.batch == batch:
            raise StagingConflict(f"batch {batch} was published in part, and its plan is damaged")
        plan = CommitPlan(
            number=self.stage_index.new_number(),
            query=query,
            batch=batch,
            user=user,
            stages=[stage.number for stage in stages],
            rows=sum(stage.rows for stage in stages),
        )
        commit = Commit(self._dependencies(), plan, self._beginning(plan, None))
        self.commits[query] = commit
        return commit

    def start(self, commit: Commit, admit: Callable[[bytes], object]) -> None:
        """Decide and publish `commit` in the background."""

        async def all_of_it() -> None:
            await decided(partial(commit.decide, admit))
            await commit.publish()

        self._run(commit, all_of_it())

    def resume(self, plan: CommitPlan) -> Commit:
        """Publish the rest of `plan`, which was decided before a restart."""
        logger.info(
            "batch %d of query '%s' in vhost '%s' was interrupted by a restart: publishing continues",
            plan.batch, plan.query, self.services.vhost.name,
        )  # fmt: skip
        commit = Commit(self._dependencies(), plan, self._beginning(plan, self.progress(plan.query)))
        self._run(commit, commit.publish())
        return commit

    async def wait(self, query: str, seconds: float) -> bool:
        """Wait for the commit of `query`; False if it has not ended in time. Raises what `decide` raises."""
        task = self._tasks.get(query)
        if task is None:
            return True
        done, _ = await asyncio.wait([task], timeout=seconds)
        if done and not task.cancelled():
            task.result()
        return bool(done)

    async def discard(self, query: str, batch: int) -> None:
        """Delete the stages of `batch`. Raises StagingConflict if it is being committed."""
        commit = self.commits.get(query)
        if commit is not None and commit.plan.batch == batch:
            raise StagingConflict(f"batch {batch} is being committed")
        progress = self.progress(query)
        if progress is not None and progress.batch == batch and progress.state is CommitState.PUBLISHING:
            # The batch has no commit since its plan is damaged.
            raise StagingConflict(f"batch {batch} was published in part")
        await self._perform(self.stage_index.remove(list(self.stage_index.of(query, batch).values())))

    def expire(self, now: int) -> None:
        """Delete stages that were not committed in time, and the progress of queries no longer used."""
        coming = {(query, batch) for query, batch, _ in self._receiving}
        for batch in list(self.stage_index.by_batch):
            commit = self.commits.get(batch[0])
            if batch in coming or (commit is not None and commit.plan.batch == batch[1]):
                continue
            old = [
                stage
                for stage in self.stage_index.of(*batch).values()
                if stage.description.created_at + STAGED_AGE_MS_MAX <= now
            ]
            if old:
                logger.warning(
                    "batch %d of query '%s' in vhost '%s' was not committed in time: %d stages deleted",
                    batch[1], batch[0], self.services.vhost.name, len(old),
                )  # fmt: skip
                self._perform_later(self.stage_index.remove(old))
        for key, progress in self._queries().items():
            if progress.at + STAGED_QUERY_AGE_MS_MAX <= now:
                self._store.forget(key)

    def _queries(self) -> dict[bytes, CommitProgress]:
        """Return the progress of all queries without a commit in progress."""
        busy = {progress_key(query) for query in self.commits}
        return {
            key: CommitProgress.decode(marker.value)
            for key, marker in self._store.markers.items()
            if is_progress_key(key) and key not in busy
        }

    def _make_room_for_query(self, user: str) -> None:
        """Make room for a new query of `user`, if necessary by forgetting the one with the oldest batch.

        Only queries of `user` are considered if that user has reached the limit per user. Raises StagingFull.
        """
        count = sum(map(is_progress_key, self._store.markers))
        if count < STAGED_QUERIES_OF_USER_MAX:
            return
        queries = self._queries()
        of_user = {key: progress for key, progress in queries.items() if progress.user == user}
        most = STAGED_QUERIES_MAX
        if len(of_user) >= STAGED_QUERIES_OF_USER_MAX:
            queries, most = of_user, STAGED_QUERIES_OF_USER_MAX
        elif count < most:
            return
        key = min(queries, key=lambda key: queries[key].at, default=None)
        if key is None or queries[key].at + STAGED_QUERY_AGE_MS_MIN > self._context.now():
            raise StagingFull(f"{most} queries have committed a batch within a day, which is the maximum")
        self._store.forget(key)

    def _beginning(self, plan: CommitPlan, progress: CommitProgress | None) -> CommitProgress:
        """Return the progress with which `plan` begins; `progress` is that of the last batch of its query."""
        if progress is not None and progress.batch == plan.batch:
            return progress
        return CommitProgress(
            state=CommitState.PUBLISHING,
            batch=plan.batch,
            rows=plan.rows,
            published=0,
            unroutable=0,
            at=self._context.now(),
            user=plan.user,
        )

    def _run(self, commit: Commit, work: Coroutine[object, object, None]) -> None:
        query = commit.plan.query
        self.commits[query] = commit
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[query] = task
        task.add_done_callback(partial(self._on_finished, query))

    def _on_finished(self, query: str, task: "asyncio.Task[None]") -> None:
        del self.commits[query], self._tasks[query]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            is_expected = isinstance(error, (OSError, StoreFileError, AmqpError))
            logger.error(
                "commit of query '%s' in vhost '%s' failed: %s", query, self.services.vhost.name, error,
                exc_info=None if is_expected else error,
            )  # fmt: skip

    def _dependencies(self) -> CommitDependencies:
        assert self._disk is not None
        return CommitDependencies(
            server=self._context.server,
            services=self.services,
            disk=self._disk,
            stage_index=self.stage_index,
            do=partial(done_by, self._context.committer),
        )

    # --- the disk -------------------------------------------------------------------------------

    async def _perform(self, steps: list[DiskStep]) -> None:
        disk = self._disk
        assert disk is not None
        await done_by(self._context.committer, partial(disk.perform, steps))

    def _perform_later(self, steps: list[DiskStep]) -> None:
        disk = self._disk
        assert disk is not None
        self._context.committer.do(partial(disk.perform, steps))

    def _report(self, error: StoreFileError) -> None:
        logger.error(
            "vhost '%s': staged rows are damaged, and are not committed: %s", self.services.vhost.name, error
        )


def is_over(progress: CommitProgress, batch: int) -> bool:
    """True if `batch` of the query of `progress` is committed or given up."""
    return batch < progress.batch or (
        batch == progress.batch and progress.state is not CommitState.PUBLISHING
    )


async def done_by(worker: WorkerThread, job: Callable[[], Result]) -> Result:
    """Run `job` in the thread `worker`, and return its result; cancelling the caller does not stop it."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Result] = loop.create_future()

    def work() -> None:
        try:
            result = job()
        except Exception as error:
            loop.call_soon_threadsafe(_fail, over, error)
        else:
            loop.call_soon_threadsafe(_succeed, over, result)

    worker.do(work)
    return await over


def _succeed(over: "asyncio.Future[Result]", result: Result) -> None:
    if not over.done():
        over.set_result(result)


def _fail(over: "asyncio.Future[Result]", error: Exception) -> None:
    if not over.done():
        over.set_exception(error)


async def _admitted(rules: StageRules, address: bytes) -> bool:
    return rules.admit(address)


def _write_rows(rows: RowDecoder, writer: StageWriter, data: bytes) -> dict[bytes, Message]:
    """Write the rows of one batch; returns one example row for each distinct route."""
    examples = {}
    for some in rows.take(data):
        if isinstance(some, MessageRun):
            examples[some.like.address + some.like.property_list] = some.like
            writer.add_run(some)
        else:
            for message in some:
                # A headers exchange routes by headers, and CC and BCC headers add routing keys.
                like = message.address
                if message.flags & HAS_HEADERS:
                    like += message.property_list
                examples[like] = message
                writer.add(message)
        writer.flush()
    return examples
