"""Staged publish: executors upload rows, and a driver commits all rows of a batch at once, exactly once."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any, Literal, Required, TypedDict

from aiohttp import web

from warren.errors import AccessRefused, NotFound, Undecided
from warren.limits import (
    NAME_SIZE_MAX,
    STAGED_COMMIT_S,
    STAGED_IDLE_S,
    STAGED_PARTITIONS_MAX,
    STAGED_ROW_BITS,
)
from warren.management.api.peek import query_number
from warren.management.auth import is_administrator, is_monitor, login_vhosts, user_of
from warren.management.cluster_lists import fetch_json
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.managed_node import ManagedNode
from warren.management.node_requests import other_nodes
from warren.management.operation import Operation, doc, documented, documented_as
from warren.management.replies import RequestRefused, bad_request, done, error_reply, reply
from warren.management.request_body import BodyFields, read_fields
from warren.management.request_context import RequestContext, exchange_in_path, request_context
from warren.staging.commit import Commit
from warren.staging.ipc_messages import IpcStreamRefused, Read, read_ipc_messages
from warren.staging.row_decoder import RowDecoder, RowRefused
from warren.staging.vhost_staging import (
    QueryNotOwned,
    StageRules,
    StagingConflict,
    StagingFull,
    VhostStaging,
    is_over,
)
from warren.store.segment import StoreFileError
from warren.store.staged.commit_progress import CommitProgress, CommitState
from warren.store.staged.stage import Stage, StageDescription

ARROW_STREAM = "application/vnd.apache.arrow.stream"
# Bounds of partitions and attempts, which are 64 bits in Spark. A stream identifies rows by batch and row.
_NUMBER_MAX = (1 << 63) - 1
_BATCH_MAX = (1 << 64 - STAGED_ROW_BITS) - 1
# In a stream the query is the name of a producer, which has a prefix of 7 bytes.
_QUERY_SIZE_MAX = NAME_SIZE_MAX - 7
_COMMITTED: Literal["committed"] = "committed"
_ALREADY: Literal["already committed"] = "already committed"
_COMMITTING: Literal["committing"] = "committing"


class StagePlace(TypedDict):
    """The query, batch, partition and attempt of staged rows."""

    query: Annotated[str, doc("Name of the writer, which no other writer uses.")]
    batch: Annotated[
        int, doc("Number of the batch; each batch of a query has a higher number than the one before.")
    ]
    partition: Annotated[int, doc("Number of the partition of the batch.")]
    attempt: Annotated[
        int, doc("Number of the attempt; rows staged again with the same number replace the earlier ones.")
    ]


class StageQuery(StagePlace, total=False):
    """The place of staged rows, and whether they must be routed."""

    mandatory: Annotated[bool, doc("Refuse rows that would not be routed to a queue.")]


class StagedShape(TypedDict, total=False):
    """What was staged: nothing if the batch is decided already, as `state` says."""

    rows: Required[int]
    bytes: Required[int]
    state: Literal["already committed", "committing"]


deprecate(StagedShape, octets="bytes")


class PartitionShape(TypedDict):
    """The attempt at a partition that is committed."""

    partition: int
    attempt: int


class CommitBody(TypedDict):
    """The batch to commit, and its stages in the order in which they are published."""

    query: str
    batch: int
    partitions: list[PartitionShape]


class CommitShape(TypedDict, total=False):
    """The state of a batch."""

    state: Required[Literal["committed", "already committed", "committing"]]
    rows: Required[int]
    published: int
    unroutable: int
    reason: str


class StagesMissingShape(TypedDict):
    """Stages that the commit names and that do not exist; nothing is published."""

    error: str
    reason: Any
    missing: list[PartitionShape]


class GivenUpQuery(TypedDict):
    """The query and the number of a batch."""

    query: Annotated[str, doc("Name of the writer.")]
    batch: Annotated[int, doc("Number of the batch.")]


class BatchQuery(GivenUpQuery, total=False):
    """The batch to discard, and whether that is allowed while it is being published."""

    force: Annotated[
        bool,
        doc("Discard even a batch that is being published; messages already published stay in their queues."),
    ]


class StagedBatchShape(TypedDict):
    """What one node has of a batch that is staged or being committed."""

    node: str
    vhost: str
    query: str
    batch: int
    user: str
    state: Literal["staged", "committing"]
    stages: int
    rows: int
    bytes: int
    published: int
    reason: str
    staged_at: int


deprecate(StagedBatchShape, octets="bytes")


@documented_as(Operation(query=StageQuery, body=bytes, body_type=ARROW_STREAM, responses={200: StagedShape}))
async def stage(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Stage rows (an Arrow IPC stream) until their batch is committed.

    If the batch is committed already, the rows of a task that runs again are ignored.
    """
    context = request_context(request, node)
    vhost_staging = await _vhost_staging(node, context)
    exchange = exchange_in_path(request, "exchange")
    requester = context.requester
    _check_exchange(context, exchange)
    description = StageDescription(
        query=_query(request.query.get("query")),
        batch=_number(request, "batch"),
        partition=_number(request, "partition"),
        attempt=_number(request, "attempt"),
        exchange=exchange,
        user=requester.identity,
        created_at=node.now(),
    )
    takes_over = is_administrator(user_of(request))
    _check_owned(context, vhost_staging, description.query, takes_over=takes_over)
    _check_blocked(context, node)
    decided = _known_state(vhost_staging, description)
    if decided is not None:
        await request.release()
        return reply(with_deprecated(StagedShape, {"rows": 0, "bytes": 0, "state": decided}))
    try:
        arrow = await vhost_staging.load_pyarrow()
    except ImportError:
        reason = "rows need pyarrow, which is not installed here: pip install pyarrow"
        raise RequestRefused(error_reply(501, "not_implemented", reason)) from None
    is_mandatory = request.query.get("mandatory") == "true"
    rules = StageRules(admit=context.rules.admit, is_mandatory=is_mandatory, takes_over=takes_over)
    rows = RowDecoder(arrow, exchange, requester.user, may_impersonate=context.rules.may_impersonate)
    try:
        staged = await vhost_staging.stage(description, rows, read_ipc_messages(_body_reader(request)), rules)
    except QueryNotOwned:
        raise _not_of(context, description.query) from None
    except (IpcStreamRefused, RowRefused) as error:
        raise bad_request(str(error)) from None
    except StagingConflict as error:
        raise _conflict(str(error)) from None
    except StagingFull as error:
        raise RequestRefused(error_reply(413, "too_large", str(error))) from None
    except OSError as error:
        raise _unavailable(f"staged rows cannot be written: {error.strerror or error}") from None
    return reply(with_deprecated(StagedShape, {"rows": staged.rows, "bytes": staged.byte_count}))


@documented(body=CommitBody, responses={200: CommitShape, 202: CommitShape, 409: StagesMissingShape})
async def commit(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Publish a staged batch exactly once: 200 when all is confirmed, 202 while it continues (retry)."""
    context = request_context(request, node)
    vhost_staging = await _vhost_staging(node, context)
    fields = await read_fields(request)
    query, batch = _query(fields.text("query")), _integer_field(fields, "batch")
    named = _partitions(fields)
    takes_over = is_administrator(user_of(request))
    if named and vhost_staging.owner(query) is None and not takes_over:
        # Without an owner the query has no rows; the response is the one for the query of another user.
        raise _not_of(context, query)
    _check_owned(context, vhost_staging, query, takes_over=takes_over)
    _check_may_write(context, query)
    progress = vhost_staging.progress(query)
    if progress is not None and is_over(progress, batch):
        return _finished_reply(progress, batch)
    under_way = vhost_staging.commits.get(query)
    if under_way is None:
        try:
            under_way = _start_commit(vhost_staging, context, named, query=query, batch=batch)
        except StagingConflict as error:
            raise _conflict(str(error)) from None
        except StagingFull as error:
            raise _unavailable(str(error)) from None
    elif under_way.plan.batch != batch:
        raise _conflict(f"batch {under_way.plan.batch} is being committed")
    try:
        is_done = await vhost_staging.wait(query, STAGED_COMMIT_S)
    except StoreFileError as error:
        raise _conflict(f"staged rows are damaged: {error}") from None
    except OSError as error:
        raise _unavailable(f"staged rows cannot be read: {error.strerror or error}") from None
    if not is_done or under_way.progress.state is CommitState.PUBLISHING:
        return _committing_reply(under_way)
    if under_way.progress.state is CommitState.GIVEN_UP:
        return _finished_reply(under_way.progress, batch)
    return reply(_progress_json(under_way.progress, _COMMITTED))


@documented(query=BatchQuery)
async def discard(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Discard the staged rows of a batch; with `force` also the rest of a batch being published."""
    context = request_context(request, node)
    vhost_staging = await _vhost_staging(node, context)
    query, batch = _query(request.query.get("query")), _number(request, "batch")
    if not is_administrator(user_of(request)) and vhost_staging.owner(query) != context.requester.identity:
        raise _not_of(context, query)
    under_way = vhost_staging.commits.get(query)
    try:
        if request.query.get("force") == "true" and under_way is not None and under_way.plan.batch == batch:
            if not under_way.is_decided:
                raise StagingConflict(f"the commit of batch {batch} is not decided yet: retry")
            under_way.give_up()
            await vhost_staging.wait(query, STAGED_COMMIT_S)
        else:
            await vhost_staging.discard(query, batch)
    except StagingConflict as error:
        raise _conflict(str(error)) from None
    except OSError as error:
        raise _unavailable(f"staged rows cannot be deleted: {error.strerror or error}") from None
    return done()


@documented(response=list[StagedBatchShape])
async def staged(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List batches that are staged or being published: all with the tag monitoring, else the user's own."""
    user = user_of(request)
    seen = set(node.metadata.vhosts.by_name if is_monitor(user) else login_vhosts(node, user))
    vhost_stagings = [
        vhost_staging for name, vhost_staging in sorted(node.staging.vhost_stagings.items()) if name in seen
    ]
    for vhost_staging in vhost_stagings:
        # A virtual host whose stages cannot be read has been logged; the others are listed.
        with suppress(OSError, StoreFileError):
            await vhost_staging.ready()
    found = [
        {"node": node.node_name, **_batch(vhost_staging, query, batch)}
        for vhost_staging in vhost_stagings
        for query, batch in sorted(vhost_staging.stage_index.by_batch)
        if is_monitor(user) or vhost_staging.owner(query) == user.identity
    ]
    for _, theirs in await fetch_json(request, node, other_nodes(request, node)):
        found += theirs
    return reply(found)


async def _vhost_staging(node: ManagedNode, context: RequestContext) -> VhostStaging:
    vhost_staging = node.staging.vhost_stagings.get(context.services.vhost.name)
    if vhost_staging is None:
        raise RequestRefused(
            error_reply(501, "not_implemented", "staged publish needs a data directory (data_dir)")
        )
    try:
        await vhost_staging.ready()
    except (OSError, StoreFileError) as error:
        raise _unavailable(f"staged rows cannot be read: {error}") from None
    return vhost_staging


def _known_state(vhost_staging: VhostStaging, description: StageDescription) -> str | None:
    """The state of a batch whose rows are complete; None if it takes more rows or was discarded."""
    progress, under_way = (
        vhost_staging.progress(description.query),
        vhost_staging.commits.get(description.query),
    )
    if progress is not None and is_over(progress, description.batch):
        is_given_up = progress.batch == description.batch and progress.state is CommitState.GIVEN_UP
        return None if is_given_up else _ALREADY
    if under_way is not None and under_way.plan.batch == description.batch and under_way.is_decided:
        return _COMMITTING
    return None


def _check_owned(
    context: RequestContext, vhost_staging: VhostStaging, query: str, *, takes_over: bool
) -> None:
    """Raise RequestRefused for a query of another user, with the text for one that does not exist."""
    if not vhost_staging.is_open_to(query, context.requester.identity, takes_over=takes_over):
        raise _not_of(context, query)


def _check_may_write(context: RequestContext, query: str) -> None:
    """Raise RequestRefused, also for an empty commit, if the user may not write to any exchange."""
    for name in context.services.vhost.router.exchanges:
        try:
            context.requester.authorizer.check_write_exchange(name)
        except Undecided:
            raise
        except AccessRefused:
            continue
        return
    raise _not_of(context, query)


def _not_of(context: RequestContext, query: str) -> RequestRefused:
    vhost, user = context.services.vhost.name, context.requester.user
    return RequestRefused(
        error_reply(
            403, "forbidden", f"user '{user}' has staged nothing as query '{query}' in vhost '{vhost}'"
        )
    )


def _start_commit(
    vhost_staging: VhostStaging,
    context: RequestContext,
    named: list[tuple[int, int]],
    *,
    query: str,
    batch: int,
) -> Commit:
    """A commit of the partitions and attempts that are `named`, or of what was decided before."""
    user = context.requester.identity
    plan = vhost_staging.stage_index.plans.get(query)
    if plan is not None:
        if plan.batch != batch:
            raise StagingConflict(f"batch {plan.batch} is being committed")
        return vhost_staging.resume(plan)
    places = vhost_staging.stage_index.of(query, batch)
    stages: list[Stage] = []
    missing = []
    for partition, attempt in named:
        found = places.get((partition, attempt))
        if found is None:
            missing.append({"partition": partition, "attempt": attempt})
        else:
            stages.append(found)
    if missing:
        reason = f"{len(missing)} stages of batch {batch} do not exist: nothing was published"
        raise RequestRefused(reply({"error": "missing", "reason": reason, "missing": missing}, 409))
    if any(found.description.user != user for found in stages):
        raise _not_of(context, query)
    for exchange in {found.description.exchange for found in stages}:
        _check_exchange(context, exchange)
    started = vhost_staging.commit(query, batch, stages, user)
    vhost_staging.start(started, context.rules.admit)
    return started


def _partitions(fields: BodyFields) -> list[tuple[int, int]]:
    """The partition and the attempt of each stage in the request."""
    named = fields.get("partitions")
    if not isinstance(named, list) or not all(isinstance(each, dict) for each in named):
        raise bad_request("partitions must be a list of objects with partition and attempt")
    if len(named) > STAGED_PARTITIONS_MAX:
        raise bad_request(f"a batch must have at most {STAGED_PARTITIONS_MAX} partitions")
    found = []
    for each in named:
        of_one = BodyFields(each)
        found.append((_integer_field(of_one, "partition"), _integer_field(of_one, "attempt")))
    if len({partition for partition, _ in found}) < len(found):
        raise bad_request("a partition is listed twice")
    return found


def _finished_reply(progress: CommitProgress, batch: int) -> web.Response:
    """The response for a batch that is committed or discarded."""
    if progress.batch == batch and progress.state is CommitState.GIVEN_UP:
        reason = f"batch {batch} was discarded after {progress.published} of its rows had been published"
        return error_reply(409, "given_up", reason)
    if progress.batch == batch:
        return reply(_progress_json(progress, _ALREADY))
    # Only the last batch has a record of how many rows it had.
    return reply({"state": _ALREADY, "rows": 0})


def _committing_reply(under_way: Commit) -> web.Response:
    said = _progress_json(under_way.progress, _COMMITTING)
    return reply({**said, "published": under_way.progress.published, "reason": under_way.reason}, 202)


def _progress_json(progress: CommitProgress, state: str) -> dict[str, object]:
    return {"state": state, "rows": progress.rows, "unroutable": progress.unroutable}


def _batch(vhost_staging: VhostStaging, query: str, batch: int) -> dict[str, object]:
    stages = list(vhost_staging.stage_index.of(query, batch).values())
    under_way = vhost_staging.commits.get(query)
    is_committing = under_way is not None and under_way.plan.batch == batch
    view = {
        "vhost": vhost_staging.services.vhost.name,
        "query": query,
        "batch": batch,
        "user": stages[0].description.user,
        "state": "committing" if is_committing else "staged",
        "stages": len(stages),
        "rows": sum(each.rows for each in stages),
        "bytes": sum(each.byte_count for each in stages),
        "published": under_way.progress.published if is_committing and under_way is not None else 0,
        "reason": under_way.reason if is_committing and under_way is not None else "",
        "staged_at": max(each.description.created_at for each in stages),
    }
    return with_deprecated(StagedBatchShape, view)


def _check_exchange(context: RequestContext, name: str) -> None:
    """Raise unless the user may write to the exchange `name`; routing keys are checked separately."""
    try:
        context.requester.authorizer.check_write_exchange(name)
    except Undecided:
        raise
    except AccessRefused as error:
        raise RequestRefused(error_reply(403, "forbidden", error.reply_text)) from None
    if name not in context.services.vhost.router.exchanges:
        raise NotFound(f"no exchange '{name}' in vhost '{context.services.vhost.name}'")


def _check_blocked(context: RequestContext, node: ManagedNode) -> None:
    """Raise RequestRefused while an alarm blocks publishers: staged rows take disk space, too."""
    if node.server.blocked_reason:
        raise _unavailable(f"publishers are blocked: {node.server.blocked_reason}")


def _body_reader(request: web.Request) -> Read:
    """Read the body of the request; a client that sends nothing for too long is disconnected."""

    async def read(size: int) -> bytes:
        try:
            return await asyncio.wait_for(request.content.read(size), STAGED_IDLE_S)
        except TimeoutError:
            raise IpcStreamRefused(f"no data received for {STAGED_IDLE_S:.0f} s") from None

    return read


def _query(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "surrogateescape")) <= _QUERY_SIZE_MAX:
        raise bad_request(f"query must be a name of up to {_QUERY_SIZE_MAX} bytes")
    return name


def _number(request: web.Request, name: str) -> int:
    if name not in request.query:
        raise bad_request(f"{name} is missing")
    return query_number(request, name, 0, _BATCH_MAX if name == "batch" else _NUMBER_MAX)


def _integer_field(fields: BodyFields, name: str) -> int:
    number = fields.integer(name)
    most = _BATCH_MAX if name == "batch" else _NUMBER_MAX
    if not 0 <= number <= most:
        raise bad_request(f"{name} must be a number up to {most}, not {number}")
    return number


def _conflict(reason: str) -> RequestRefused:
    return RequestRefused(error_reply(409, "conflict", reason))


def _unavailable(reason: str) -> RequestRefused:
    return RequestRefused(error_reply(503, "service_unavailable", reason))
