"""Leases over HTTP: a reader leases messages of a queue, reads them repeatedly and settles them at once."""

from collections.abc import Iterator
from typing import Annotated, Literal, NotRequired, TypedDict

from aiohttp import web

from warren.arrow.message_rows import MessageRows, rows_of_columns
from warren.limits import (
    LEASE_BYTES_MAX,
    LEASE_KEY_SIZE_MAX,
    LEASE_MESSAGES_MAX,
    LEASE_TTL_S,
    LEASE_TTL_S_MAX,
    LEASED_PER_TURN,
    SCAN_READ_SIZE_MAX,
)
from warren.management.api.messages import readable_queue, restored
from warren.management.api.peek import query_number
from warren.management.api.queue_rows import ROWS, RowFormatQuery, row_format
from warren.management.arrow_responses import CONTENT_TYPE, RowsGone
from warren.management.auth import is_administrator, is_monitor, user_of, visible_vhosts
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.listing import Listing, reply_list
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose, run_coroutine
from warren.management.operation import (
    ErrorShape,
    Operation,
    PageQuery,
    doc,
    documented,
    documented_as,
    paged,
)
from warren.management.replies import RequestRefused, bad_request, error_reply, missing, reply
from warren.management.request_body import BodyFields, read_fields
from warren.management.request_context import RequestContext, request_context, request_context_in
from warren.management.views.leases import LeaseGrantShape, LeaseShape, lease_view
from warren.metadata.commands import RenewLease
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.vhosts import VhostMetadata
from warren.queues.batches import MessageColumns
from warren.queues.capabilities import taking_queue
from warren.vhost.lease_service import LeasedMessages, LeaseRequest, LeaseService

_MS = 1000
_OUTCOMES = {"acknowledge": LeaseState.SETTLED, "requeue": LeaseState.REQUEUED}


class LeaseBody(TypedDict):
    """Which messages to lease, and for how long."""

    key: Annotated[
        str, doc("Idempotency key: a repeated request with the same key returns the existing lease.")
    ]
    max_messages: NotRequired[Annotated[int, doc("Maximum number of messages to lease.")]]
    max_bytes: NotRequired[
        Annotated[
            int, doc("Maximum bytes of all bodies together; one message is leased even if it is larger.")
        ]
    ]
    ttl: NotRequired[
        Annotated[int, doc("Seconds after which the lease expires and its messages are requeued.")]
    ]


deprecate(LeaseBody, messages="max_messages", octets="max_bytes")


class SettleBody(TypedDict):
    """How a lease ends."""

    outcome: NotRequired[Literal["acknowledge", "requeue"]]


class RenewBody(TypedDict):
    """The remaining time of a lease from now on."""

    ttl: NotRequired[
        Annotated[int, doc("Seconds from now after which the lease expires and its messages are requeued.")]
    ]


class LeasedQuery(RowFormatQuery, total=False):
    """Which messages of a lease are returned."""

    start: Annotated[int, doc("Position in the lease of the first message to return, from 0.")]
    end: Annotated[int, doc("Position in the lease after the last message to return.")]


@documented(query=PageQuery, response=paged(LeaseShape))
async def leases(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List leases of all virtual hosts, also ended ones: all with the tag monitoring, else the user's own."""
    names = visible_vhosts(node, user_of(request))
    vhosts = [vhost for vhost in node.metadata.vhosts.by_name.values() if vhost.name in names]
    return await _listed(request, [(vhost, list(vhost.topology.leases.by_id.values())) for vhost in vhosts])


@documented(query=PageQuery, response=paged(LeaseShape))
async def leases_of_queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List leases of a queue, also ended ones: all with the tag monitoring, else the user's own."""
    context = request_context(request, node)
    name = request.match_info["queue"]
    if name not in context.records.queues:
        raise missing()
    vhost = node.metadata.vhosts.by_name[context.services.vhost.name]
    return await _listed(request, [(vhost, context.records.leases.of_queue(name))])


@documented(body=LeaseBody, responses={200: LeaseGrantShape, 201: LeaseGrantShape})
async def grant(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Lease messages of a queue: no consumer gets them until the lease ends; none if nothing is ready.

    201 means that messages were leased now, 200 that a lease with the key exists already.
    """
    context = request_context(request, node)
    fields = await read_fields(request)
    name = request.match_info["queue"]
    queue = taking_queue(await restored(readable_queue(context, name)))
    if queue is None:
        raise bad_request(f"queue '{name}' is a stream, which has no leases: read it by offset")
    key = fields.text("key")
    if not 0 < len(key.encode("utf-8", "surrogateescape")) <= LEASE_KEY_SIZE_MAX:
        raise bad_request(f"key must have 1 to {LEASE_KEY_SIZE_MAX} bytes")
    lease_request = LeaseRequest(
        id=node.jobs.new_id(),
        user=context.requester.identity,
        key=key,
        messages=_number(fields, "max_messages", LEASE_MESSAGES_MAX, LEASE_MESSAGES_MAX),
        byte_count=_number(fields, "max_bytes", LEASE_BYTES_MAX, LEASE_BYTES_MAX),
        ttl_ms=_number(fields, "ttl", LEASE_TTL_S, LEASE_TTL_S_MAX) * _MS,
    )
    lease = await run_coroutine(context.services.lease_service.grant(queue, lease_request))
    vhost = context.services.vhost.name
    if lease is None:
        nothing = {"lease": None, "vhost": vhost, "queue": name, "messages": 0, "bytes": 0}
        return reply(with_deprecated(LeaseGrantShape, nothing))
    return reply(lease_view(vhost, lease), 201 if lease.id == lease_request.id else 200)


@documented(response=LeaseShape)
def lease(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a lease."""
    vhost, found = _named(request, node, is_looked_at=True)
    _check_readable(request, node, vhost, found)
    return reply(lease_view(vhost.name, found))


@documented_as(Operation(query=LeasedQuery, responses={**ROWS, 410: ErrorShape}, response_type=CONTENT_TYPE))
async def read(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Read the messages of a lease as rows; `offset` is the position in the lease, from 0."""
    vhost, found = _named(request, node)
    context = _check_readable(request, node, vhost, found)
    _check_active(found)
    lease_service = context.services.lease_service
    held = lease_service.held.get(found.id)
    if held is None:
        raise RequestRefused(
            error_reply(503, "service_unavailable", "the messages of the lease are still being read: retry")
        )
    start = query_number(request, "start", 0, LEASE_MESSAGES_MAX)
    end = query_number(request, "end", found.messages, LEASE_MESSAGES_MAX)
    columns, compression = row_format(request)
    encoder = (await node.arrow_responses.encoder())(found.queue, columns, compression)
    return await node.arrow_responses.answer(
        request, encoder, _lease_rows(lease_service, found.id, held, range(start, end))
    )


@documented(body=SettleBody, response=LeaseShape, responses={409: ErrorShape, 410: ErrorShape})
async def settle(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """End a lease by acknowledging or requeueing its messages; durable when the response is sent.

    Ending a lease again in the same way returns the same response.
    """
    vhost, found = _named(request, node)
    context = _check_readable(request, node, vhost, found)
    fields = await read_fields(request)
    outcome = fields.get("outcome", "acknowledge")
    state = _OUTCOMES.get(outcome) if isinstance(outcome, str) else None
    if state is None:
        raise bad_request(f"outcome must be {' or '.join(_OUTCOMES)}")
    if found.is_active:
        await run_coroutine(context.services.lease_service.end(found.id, state, context.requester.user))
        vhost, found = _named(request, node)
    if found.state is LeaseState.EXPIRED:
        _check_active(found)
    if found.state is not state:
        raise RequestRefused(error_reply(409, "conflict", f"the lease is {found.state.value} already"))
    return reply(lease_view(vhost.name, found))


@documented(body=RenewBody, response=LeaseShape, responses={410: ErrorShape})
async def renew(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set the remaining time of a lease, in seconds from now."""
    vhost, found = _named(request, node)
    _check_readable(request, node, vhost, found)
    fields = await read_fields(request)
    ttl = _number(fields, "ttl", LEASE_TTL_S, LEASE_TTL_S_MAX)
    expires_at = node.now() + ttl * _MS
    await propose(node, RenewLease(vhost=vhost.name, id=found.id, expires_at=expires_at))
    vhost, found = _named(request, node)
    _check_active(found)
    return reply(lease_view(vhost.name, found))


def _lease_rows(
    lease_service: LeaseService, id: str, held: LeasedMessages, places: range
) -> Iterator[MessageRows]:
    queue = held.queue
    while places:
        if lease_service.held.get(id) is not held:
            raise RowsGone("the lease has ended")
        due = places[:LEASED_PER_TURN]
        deliveries = held.deliveries[due.start : due.stop]
        columns = MessageColumns(len(deliveries))
        places = places[columns.add_deliveries(queue, deliveries, due.start, SCAN_READ_SIZE_MAX) :]
        yield rows_of_columns(queue.name, columns)


async def _listed(
    request: web.Request, found: list[tuple[VhostMetadata, list[LeaseRecord]]]
) -> web.StreamResponse:
    user = user_of(request)
    listing = Listing(
        records=[
            (vhost.name, lease)
            for vhost, leases in found
            for lease in leases
            if is_monitor(user) or lease.user == user.identity
        ],
        view=lambda record: lease_view(*record),
        columns={
            "name": lambda record: record[1].queue,
            "vhost": lambda record: record[0],
            "expires_at": lambda record: record[1].expires_at,
        },
        is_paged=True,
        is_sorted=True,
    )
    return await reply_list(request, listing)


def _named(
    request: web.Request, node: ManagedNode, *, is_looked_at: bool = False
) -> tuple[VhostMetadata, LeaseRecord]:
    """The lease in the path: the user's own, any for administrators, and to read also with monitoring.

    For other users the response is that of a lease that does not exist.
    """
    id, user = request.match_info["lease"], user_of(request)
    for vhost in node.metadata.vhosts.by_name.values():
        found = vhost.topology.leases.by_id.get(id)
        if found is not None:
            if found.user == user.identity or is_administrator(user) or (is_looked_at and is_monitor(user)):
                return vhost, found
            break
    raise missing()


def _check_readable(
    request: web.Request, node: ManagedNode, vhost: VhostMetadata, lease: LeaseRecord
) -> RequestContext:
    """Raise RequestRefused if the user may no longer read the queue."""
    context = request_context_in(request, node, vhost)
    readable_queue(context, lease.queue)
    return context


def _check_active(lease: LeaseRecord) -> None:
    if not lease.is_active:
        raise RequestRefused(error_reply(410, "gone", f"the lease is {lease.state.value}"))


def _number(fields: BodyFields, name: str, default: int, most: int) -> int:
    """The field `name` as a number from 1 to `most`; raises RequestRefused for any other value."""
    if name not in fields:
        return default
    number = fields.integer(name)
    if not 1 <= number <= most:
        raise bad_request(f"{name} must be a number from 1 to {most}")
    return number
