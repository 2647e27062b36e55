"""Moving messages from a queue to other queues over HTTP: redriving dead letters, and moving as they are."""

import asyncio
from typing import Annotated, Literal, NotRequired, TypedDict

from aiohttp import web
from msgspec import Struct

from warren.access.grants import grants_of
from warren.errors import AmqpError, PreconditionFailed
from warren.jobs.job import Job, JobKind, JobStep
from warren.jobs.permit import JobContext, Permit
from warren.limits import JOB_RATE_MAX, NAME_SIZE_MAX, PREVIEWED_MAX, SCANNED_PER_TURN, SELECTED_MESSAGES_MAX
from warren.limits_http import (
    PEEKED_PER_REQUEST_MAX,
)
from warren.management.api.jobs import check_job_limit, live_domain
from warren.management.api.messages import payload_of, properties_of, readable_classic_queue, restored
from warren.management.auth import user_of
from warren.management.conditions import ConditionError, parse_conditions
from warren.management.deprecated_fields import deprecate
from warren.management.managed_node import ManagedNode
from warren.management.operation import Flag, JsonTable, doc, documented
from warren.management.replies import bad_request, missing, reply
from warren.management.request_body import BodyFields, read_fields
from warren.management.request_context import RequestContext, request_context
from warren.management.views.jobs import JobShape, PreviewShape, job_view, preview_view
from warren.metadata.definitions_import import table_value
from warren.metadata.permissions import Permission
from warren.model.message import Message
from warren.model.names import DEFAULT_EXCHANGE_ALIAS
from warren.queues.capabilities import live_queue
from warren.queues.queue import PeekedMessage
from warren.queues.redrive_headers import origin_of
from warren.queues.reply import REPLY_TO
from warren.queues.taking_queue import TakingQueue
from warren.session.publish_rules import check_expiration
from warren.vhost.message_edit import NO_EDIT, MessageEdit
from warren.vhost.message_move import MessageFilter, MessageMove
from warren.vhost.move_preview import MovePreview
from warren.vhost.move_router import MoveRouter, QueueMoveRouter, RedriveRouter, queue_named
from warren.vhost.queue_scan import QueueScan, SelectionScan
from warren.vhost.undo_log import UndoLog

_PERSISTENT = 2
_TO_QUEUE = "queue"
_TO_EXCHANGE = "exchange"
_FACTS = ("queue", "reason", "exchange")


class DeadLetterGroupBody(TypedDict, total=False):
    """A cause of dead letters; fields that are not given match any value."""

    queue: str
    reason: str
    exchange: str


class OrderBody(TypedDict, total=False):
    """Which messages are moved, how many, and at which rate."""

    match: Annotated[list[str], doc("Conditions that a message must all meet: `routing_key=orders`.")]
    group: DeadLetterGroupBody
    positions: Annotated[list[int], doc("Positions of the messages, as returned by peeking at the queue.")]
    limit: int | str | None
    rate: Annotated[float | None, doc("Maximum messages per second; null for no limit.")]
    dry_run: Annotated[Flag, doc("Return a preview and move nothing.")]


class MessageEditBody(TypedDict, total=False):
    """Changes that are made to the moved messages."""

    headers: JsonTable
    remove_headers: list[str]
    properties: JsonTable
    remove_properties: list[str]
    payload: Annotated[str, doc("The new body; allowed if `positions` selects a single message.")]
    payload_encoding: Literal["string", "base64"]


class RedriveBody(OrderBody, total=False):
    """Which dead letters are redriven, to which target, and with which changes."""

    to: Annotated[
        Literal["queue", "exchange"],
        doc("Move each message to the queue in which it died first, or publish it to its original exchange."),
    ]
    queue: Annotated[
        str | None, doc("The target queue, in place of the one in which each message died first.")
    ]
    exchange: str | None
    routing_key: str | None
    edit: MessageEditBody


class MoveBody(OrderBody):
    """Which messages are moved, and to which queue."""

    destination: Annotated[str, doc("Name of the target queue.")]
    destination_vhost: NotRequired[str]


for _body in (RedriveBody, MoveBody):
    deprecate(_body, places="positions")


class _MoveOptions(Struct, kw_only=True):
    """The options of a request to move messages."""

    queue: TakingQueue
    places: list[int]
    fits: MessageFilter
    limit: int | None
    rate: float | None
    is_dry_run: bool

    def queue_scan(self) -> QueueScan | SelectionScan:
        """A scan of the selected positions, or of the whole queue."""
        return SelectionScan(self.queue, self.places) if self.places else QueueScan(self.queue)


@documented(body=RedriveBody, responses={200: PreviewShape, 201: JobShape})
async def redrive(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Redrive dead letters of a queue to their original queues or another target, or preview it.

    Fields: `to` (queue or exchange); `queue`, `exchange` and `routing_key` to override the original ones;
    `edit`; and `match`, `group`, `positions`, `limit`, `rate` and `dry_run`.
    """
    context = request_context(request, node)
    fields = await read_fields(request)
    options = _move_options(
        fields, await restored(readable_classic_queue(context, request.match_info["queue"]))
    )
    to = fields.text("to", _TO_QUEUE)
    if to not in (_TO_QUEUE, _TO_EXCHANGE):
        raise bad_request(f"to must be {_TO_QUEUE} or {_TO_EXCHANGE}, not '{to[:40]}'")
    target = {name: _name(fields, name) for name in (_TO_QUEUE, _TO_EXCHANGE, "routing_key")}
    if target[_TO_EXCHANGE] == DEFAULT_EXCHANGE_ALIAS:
        target[_TO_EXCHANGE] = ""
    if to == _TO_QUEUE and (target[_TO_EXCHANGE] is not None or target["routing_key"] is not None):
        raise bad_request("exchange and routing_key require to = exchange")
    place = JobContext(node.server, user_of(request), context.services, context.services)
    permit = Permit(place, options.queue)
    id = node.jobs.new_id()
    move_router = RedriveRouter(
        vhost=context.services.vhost,
        id=id,
        source=options.queue.name,
        admit=permit.admit,
        edit=_edit(fields, request, context, options),
        queue=target[_TO_QUEUE] if to == _TO_QUEUE else None,
        is_routed=to == _TO_EXCHANGE,
        exchange=target[_TO_EXCHANGE],
        routing_key=target["routing_key"],
    )
    if move_router.queue is not None:
        queue_named(context.services.vhost, move_router.queue, permit.admit)
    if options.is_dry_run:
        return reply(await _preview(options, move_router))
    job = _job(JobKind.REDRIVE, id, _job_step(options, move_router, permit), options)
    job.target = {"to": to, **{name: value for name, value in target.items() if value is not None}}
    job.undo_log = job.steps[0].message_move.undo_log = UndoLog()
    return _started(job, node)


@documented(body=MoveBody, responses={200: PreviewShape, 201: JobShape})
async def move(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Move messages of a queue to another queue, unchanged and in order, or preview it.

    Fields: `destination` (the name of the queue) and `destination_vhost`; and `match`, `group`, `positions`,
    `limit`, `rate` and `dry_run`.
    """
    context = request_context(request, node)
    fields = await read_fields(request)
    options = _move_options(
        fields, await restored(readable_classic_queue(context, request.match_info["queue"]))
    )
    name, vhost = fields.text("destination"), fields.text("destination_vhost", context.services.vhost.name)
    target = context.services
    if vhost != target.vhost.name:
        if vhost not in node.metadata.vhosts.by_name or _permission(request, node, vhost) is None:
            raise missing()
        target = live_domain(node, vhost)
    permit = Permit(JobContext(node.server, user_of(request), context.services, target), options.queue)
    if live_queue(queue_named(target.vhost, name, permit.admit)) is options.queue:
        raise bad_request("the target is the queue that the messages are in: choose another")
    move_router = QueueMoveRouter(target.vhost, name, permit.admit)
    if options.is_dry_run:
        return reply(await _preview(options, move_router))
    job = _job(JobKind.MOVE, node.jobs.new_id(), _job_step(options, move_router, permit), options)
    job.target = {"vhost": vhost, "queue": name}
    return _started(job, node)


def _job_step(options: _MoveOptions, move_router: MoveRouter, permit: Permit) -> JobStep:
    target = permit.place.target.vhost
    return JobStep(
        MessageMove(options.queue, target, options.queue_scan(), fits=options.fits, move_router=move_router),
        permit,
    )


def _job(kind: JobKind, id: str, step: JobStep, options: _MoveOptions) -> Job:
    return Job(
        id=id,
        kind=kind,
        user=step.permit.place.user.identity,
        vhost=options.queue.vhost_name,
        queue=options.queue.name,
        target={},
        steps=[step],
        limit=options.limit,
        rate=options.rate,
    )


def _started(job: Job, node: ManagedNode) -> web.StreamResponse:
    check_job_limit(node)
    node.jobs.start(job)
    return reply(job_view(job, node.now()), 201)


async def _preview(options: _MoveOptions, move_router: MoveRouter) -> dict[str, object]:
    """The preview of a move, within the bounds of one response; `next` is where the scan stopped."""
    preview = MovePreview(options.queue_scan(), options.fits, move_router, PREVIEWED_MAX)
    queue_scan = preview.queue_scan
    limit = options.limit if options.limit is not None else PEEKED_PER_REQUEST_MAX
    while (
        not queue_scan.is_over
        and queue_scan.examined < PEEKED_PER_REQUEST_MAX
        and preview.movable_count < limit
    ):
        preview.advance(SCANNED_PER_TURN, limit)
        await asyncio.sleep(0)
    is_complete = queue_scan.is_over or (options.limit is not None and preview.movable_count >= options.limit)
    return {**preview_view(preview), "next": None if is_complete else queue_scan.place}


def _move_options(fields: BodyFields, queue: TakingQueue) -> _MoveOptions:
    """The fields match (conditions), group (cause of death), positions, limit, rate and dry_run."""
    texts = fields.get("match", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise bad_request("match must be a list of conditions")
    try:
        wanted = parse_conditions(texts)
    except ConditionError as error:
        raise bad_request(str(error)) from None
    group = _group(fields)

    def fits(peeked: PeekedMessage) -> bool:
        return (group is None or group.fits(peeked.message)) and all(
            condition.fits(peeked.message) for condition in wanted
        )

    return _MoveOptions(
        queue=queue,
        places=_places(fields),
        fits=fits,
        limit=_number(fields, "limit", 1 << 62),
        rate=_rate(fields),
        is_dry_run=fields.flag("dry_run"),
    )


class _DeadLetterGroup(Struct, frozen=True):
    """The first death that selected dead letters have in common; None matches any value."""

    queue: str | None
    reason: str | None
    exchange: str | None

    def fits(self, message: Message) -> bool:
        """True if the first death of `message` is that of the group."""
        origin = origin_of(message)
        if origin is None:
            return False
        first_death = origin.first_death
        return (
            self.queue in (None, first_death.queue)
            and self.reason in (None, first_death.reason)
            and self.exchange in (None, first_death.exchange)
        )


def _group(fields: BodyFields) -> _DeadLetterGroup | None:
    if fields.get("group") is None:
        return None
    given = BodyFields(fields.table("group"), DeadLetterGroupBody.__annotations__)
    named = [given.text(name) if given.get(name) is not None else None for name in _FACTS]
    return _DeadLetterGroup(*named)


def _places(fields: BodyFields) -> list[int]:
    places = fields.get("positions", [])
    if not isinstance(places, list) or not all(
        isinstance(place, int) and not isinstance(place, bool) and 0 <= place < 1 << 62 for place in places
    ):
        raise bad_request("positions must be a list of positions of messages")
    if len(places) > SELECTED_MESSAGES_MAX:
        raise bad_request(f"{len(places)} positions are more than {SELECTED_MESSAGES_MAX}")
    if "positions" in fields and not places:
        raise bad_request("positions is empty: give at least one position, or leave the field out")
    return sorted(set(places))


def _number(fields: BodyFields, name: str, most: int) -> int | None:
    if fields.get(name) is None:
        return None
    number = fields.integer(name)
    if not 0 < number <= most:
        raise bad_request(f"{name} must be a number from 1 to {most}, not {number}")
    return number


def _rate(fields: BodyFields) -> float | None:
    rate = fields.get("rate")
    if rate is None:
        return None
    if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 < rate <= JOB_RATE_MAX:
        raise bad_request(f"rate must be a number of messages per second up to {JOB_RATE_MAX}")
    return float(rate)


def _name(fields: BodyFields, name: str) -> str | None:
    if fields.get(name) is None:
        return None
    text = fields.text(name)
    if len(text.encode("utf-8", "surrogateescape")) > NAME_SIZE_MAX:
        raise bad_request(["too_long", name])
    return text


def _edit(
    fields: BodyFields, request: web.Request, context: RequestContext, options: _MoveOptions
) -> MessageEdit:
    if fields.get("edit") is None:
        return NO_EDIT
    given = BodyFields(fields.table("edit"))
    names = given.table("properties")
    properties = properties_of(
        BodyFields({"properties": {name: value for name, value in names.items() if name != "headers"}})
    )
    try:
        headers = {name: table_value(value) for name, value in given.table("headers").items()}
    except TypeError as error:
        raise bad_request(str(error)) from None
    if any(len(name.encode()) > NAME_SIZE_MAX for name in headers):
        raise bad_request(["too_long", "headers"])
    body = None
    if given.get("payload") is not None:
        if len(options.places) != 1:
            raise bad_request("payload requires `positions` with exactly one position")
        body = payload_of(BodyFields({"payload_encoding": "string", **given.by_name}))
    changed = {name: value for name in names if (value := getattr(properties, name, None)) is not None}
    try:
        _check(changed, user_of(request).name, may_impersonate=context.rules.may_impersonate)
    except AmqpError as error:
        raise bad_request(error.message) from None
    return MessageEdit(
        headers=headers,
        headers_removed=_texts(given, "remove_headers"),
        properties=changed,
        properties_removed=_texts(given, "remove_properties") & frozenset(properties.__slots__),
        body=body,
    )


def _check(changed: dict[str, object], user: str, *, may_impersonate: bool) -> None:
    """Raise RequestRefused for a header or property that a publisher may not set either."""
    user_id, expiration, mode = (changed.get(name) for name in ("user_id", "expiration", "delivery_mode"))
    if user_id is not None and user_id != user and not may_impersonate:
        raise PreconditionFailed(f"user_id property set to '{user_id}' but authenticated user was '{user}'")
    if isinstance(expiration, str):
        check_expiration(expiration)
    if isinstance(mode, int) and mode > _PERSISTENT:
        raise PreconditionFailed(f"invalid message: {{delivery_mode_unknown,{mode}}}")
    if changed.get("reply_to") == REPLY_TO:
        raise PreconditionFailed("fast reply consumer does not exist")


def _texts(fields: BodyFields, name: str) -> frozenset[str]:
    texts = fields.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise bad_request(f"{name} must be a list of names")
    return frozenset(texts)


def _permission(request: web.Request, node: ManagedNode, vhost: str) -> Permission | None:
    return grants_of(node.metadata, user_of(request)).permission(vhost)
