"""Messages moved from a queue to others over HTTP: dead letters sent back, and messages moved as they are."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypedDict

from aiohttp import web

from warren.errors import AmqpError, PreconditionFailed
from warren.limits import (
    JOB_RATE_MAX,
    LOOKED_AT_PER_TURN,
    MESSAGES_CHOSEN_MAX,
    NAME_SIZE_MAX,
    PREVIEWED_MAX,
)
from warren.limits_http import (
    PEEKED_PER_REQUEST_MAX,
)
from warren.management.api.jobs import check_free, live_domain
from warren.management.api.messages import emptied_queue, payload_of, properties_of
from warren.management.asking import Asking, asking
from warren.management.auth import user_of
from warren.management.bodies import Fields, read_fields
from warren.management.describing import Flag, Table, described, meant
from warren.management.jobs.job import Job, Kind, Leg
from warren.management.jobs.permit import Permit, Place
from warren.management.managed import Managed
from warren.management.matching import ConditionError, conditions
from warren.management.replies import bad_request, missing, reply
from warren.management.views.jobs import JobShape, PreviewShape, job_view, preview_view
from warren.metadata.definitions_import import table_value
from warren.metadata.permissions import Permission
from warren.model.message import Message
from warren.model.names import DEFAULT_EXCHANGE_ALIAS
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Peeked
from warren.queues.redriven import origin_of
from warren.session.publishing import REPLY_TO, check_expiration
from warren.vhost.edit import NO_EDIT, Edit
from warren.vhost.looking import Chosen, Looking
from warren.vhost.moving import Fits, Moving
from warren.vhost.preview import Preview
from warren.vhost.trail import Trail
from warren.vhost.ways import Redriving, ToQueue, Ways, queue_named

_PERSISTENT = 2
_TO_QUEUE = "queue"
_TO_EXCHANGE = "exchange"
_FACTS = ("queue", "reason", "exchange")


class GroupBody(TypedDict, total=False):
    """A cause of dead letters, or as much of it as is said."""

    queue: str
    reason: str
    exchange: str


class OrderBody(TypedDict, total=False):
    """Which messages, how many and how fast."""

    match: Annotated[list[str], meant("Conditions, all of which must hold: `routing_key=orders`")]
    group: GroupBody
    places: Annotated[list[int], meant("Of messages, as looking into the queue shows them")]
    limit: int | str | None
    rate: Annotated[float | None, meant("Messages per second")]
    dry_run: Annotated[Flag, meant("Only say what would go where")]


class EditBody(TypedDict, total=False):
    """What is changed on the way."""

    headers: Table
    remove_headers: list[str]
    properties: Table
    remove_properties: list[str]
    payload: Annotated[str, meant("Of the one message that is chosen by its place")]
    payload_encoding: Literal["string", "base64"]


class RedriveBody(OrderBody, total=False):
    """Which dead letters go where, and what is changed in them."""

    to: Annotated[Literal["queue", "exchange"], meant("The queue where each died first, or its exchange")]
    queue: Annotated[str | None, meant("This queue instead")]
    exchange: str | None
    routing_key: str | None
    edit: EditBody


class MoveBody(OrderBody):
    """Which messages go where."""

    destination: Annotated[str, meant("A queue")]
    destination_vhost: NotRequired[str]


@dataclass(slots=True, kw_only=True)
class _Order:
    """What a request asks to be moved, and how."""

    queue: ClassicQueue
    places: list[int]
    fits: Fits
    limit: int | None
    rate: float | None
    is_dry_run: bool

    def looking(self) -> Looking | Chosen:
        """What is to be looked at."""
        return Chosen(self.queue, self.places) if self.places else Looking(self.queue)


@described(body=RedriveBody, answers={200: PreviewShape, 201: JobShape})
async def redrive(request: web.Request, node: Managed) -> web.StreamResponse:
    """Send dead letters of a queue back to where they came from, or where they should go; or show what would.

    to: queue or exchange; queue, exchange, routing_key: others than their own; edit; and what `_order` reads.
    """
    asks = asking(request, node)
    fields = await read_fields(request)
    order = _order(fields, emptied_queue(asks, request.match_info["queue"]))
    to = fields.text("to", _TO_QUEUE)
    if to not in (_TO_QUEUE, _TO_EXCHANGE):
        raise bad_request(f"to is {_TO_QUEUE} or {_TO_EXCHANGE}, not '{to[:40]}'")
    target = {name: _name(fields, name) for name in (_TO_QUEUE, _TO_EXCHANGE, "routing_key")}
    if target[_TO_EXCHANGE] == DEFAULT_EXCHANGE_ALIAS:
        target[_TO_EXCHANGE] = ""
    if to == _TO_QUEUE and (target[_TO_EXCHANGE] is not None or target["routing_key"] is not None):
        raise bad_request("exchange and routing_key are for to: exchange")
    place = Place(node.server, user_of(request), asks.domain, asks.domain, node.now)
    permit = Permit(place, order.queue)
    id = node.jobs.new_id()
    ways = Redriving(
        vhost=asks.domain.vhost,
        id=id,
        source=order.queue.name,
        admit=permit.admit,
        edit=_edit(fields, request, asks, order),
        queue=target[_TO_QUEUE] if to == _TO_QUEUE else None,
        is_routed=to == _TO_EXCHANGE,
        exchange=target[_TO_EXCHANGE],
        routing_key=target["routing_key"],
    )
    if ways.queue is not None:
        queue_named(asks.domain.vhost, ways.queue, permit.admit)
    if order.is_dry_run:
        return reply(await _preview(order, ways))
    job = _job(Kind.REDRIVE, id, _leg(order, ways, permit), order)
    job.target = {"to": to, **{name: value for name, value in target.items() if value is not None}}
    job.trail = job.legs[0].moving.trail = Trail()
    return _started(job, node)


@described(body=MoveBody, answers={200: PreviewShape, 201: JobShape})
async def move(request: web.Request, node: Managed) -> web.StreamResponse:
    """Move messages of a queue to another, as they are, in their order; or show what would be.

    destination: its name; destination_vhost; and what `_order` reads.
    """
    asks = asking(request, node)
    fields = await read_fields(request)
    order = _order(fields, emptied_queue(asks, request.match_info["queue"]))
    name, vhost = fields.text("destination"), fields.text("destination_vhost", asks.domain.vhost.name)
    target = asks.domain
    if vhost != target.vhost.name:
        if vhost not in node.metadata.vhosts.by_name or _permission(request, node, vhost) is None:
            raise missing()
        target = live_domain(node, vhost)
        target.vhost.now = node.now()
    permit = Permit(Place(node.server, user_of(request), asks.domain, target, node.now), order.queue)
    if queue_named(target.vhost, name, permit.admit) is order.queue:
        raise bad_request("the messages are in this queue already")
    ways = ToQueue(target.vhost, name, permit.admit)
    if order.is_dry_run:
        return reply(await _preview(order, ways))
    job = _job(Kind.MOVE, node.jobs.new_id(), _leg(order, ways, permit), order)
    job.target = {"vhost": vhost, "queue": name}
    return _started(job, node)


def _leg(order: _Order, ways: Ways, permit: Permit) -> Leg:
    target = permit.place.target.vhost
    return Leg(Moving(order.queue, target, order.looking(), fits=order.fits, ways=ways), permit)


def _job(kind: Kind, id: str, leg: Leg, order: _Order) -> Job:
    return Job(
        id=id,
        kind=kind,
        user=leg.permit.place.user.name,
        vhost=order.queue.vhost_name,
        queue=order.queue.name,
        target={},
        legs=[leg],
        limit=order.limit,
        rate=order.rate,
    )


def _started(job: Job, node: Managed) -> web.StreamResponse:
    check_free(node)
    node.jobs.start(job)
    return reply(job_view(job, node.now()), 201)


async def _preview(order: _Order, ways: Ways) -> dict[str, object]:
    """What would happen, as far as one answer may look; `next` is the place where it did not any more."""
    preview = Preview(order.looking(), order.fits, ways, PREVIEWED_MAX)
    looking = preview.looking
    limit = order.limit if order.limit is not None else PEEKED_PER_REQUEST_MAX
    while not looking.is_over and looking.examined < PEEKED_PER_REQUEST_MAX and preview.going_count < limit:
        preview.go(LOOKED_AT_PER_TURN, limit)
        await asyncio.sleep(0)
    is_complete = looking.is_over or (order.limit is not None and preview.going_count >= order.limit)
    return {**preview_view(preview), "next": None if is_complete else looking.place}


def _order(fields: Fields, queue: ClassicQueue) -> _Order:
    """match: conditions; group: a cause of dead letters; places: of messages; limit; rate; dry_run."""
    texts = fields.get("match", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise bad_request("match is a list of conditions")
    try:
        wanted = conditions(texts)
    except ConditionError as error:
        raise bad_request(str(error)) from None
    group = _group(fields)

    def fits(peeked: Peeked) -> bool:
        return (group is None or group.fits(peeked.message)) and all(
            condition.fits(peeked.message) for condition in wanted
        )

    return _Order(
        queue=queue,
        places=_places(fields),
        fits=fits,
        limit=_number(fields, "limit", 1 << 62),
        rate=_rate(fields),
        is_dry_run=fields.flag("dry_run"),
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """What dead letters must have in common; None is anything."""

    queue: str | None
    reason: str | None
    exchange: str | None

    def fits(self, message: Message) -> bool:
        """Whether `message` is one of them."""
        origin = origin_of(message)
        if origin is None:
            return False
        grave = origin.grave
        return (
            self.queue in (None, grave.queue)
            and self.reason in (None, grave.reason)
            and self.exchange in (None, grave.exchange)
        )


def _group(fields: Fields) -> _Group | None:
    if fields.get("group") is None:
        return None
    given = Fields(fields.table("group"), GroupBody.__annotations__)
    named = [given.text(name) if given.get(name) is not None else None for name in _FACTS]
    return _Group(*named)


def _places(fields: Fields) -> list[int]:
    places = fields.get("places", [])
    if not isinstance(places, list) or not all(
        isinstance(place, int) and not isinstance(place, bool) and 0 <= place < 1 << 62 for place in places
    ):
        raise bad_request("places is a list of the places of messages")
    if len(places) > MESSAGES_CHOSEN_MAX:
        raise bad_request(f"{len(places)} places are more than {MESSAGES_CHOSEN_MAX}")
    if "places" in fields and not places:
        raise bad_request("places is empty: nothing is chosen")
    return sorted(set(places))


def _number(fields: Fields, name: str, most: int) -> int | None:
    if fields.get(name) is None:
        return None
    number = fields.integer(name)
    if not 0 < number <= most:
        raise bad_request(f"{name} is a number from 1 to {most}, not {number}")
    return number


def _rate(fields: Fields) -> float | None:
    rate = fields.get("rate")
    if rate is None:
        return None
    if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 < rate <= JOB_RATE_MAX:
        raise bad_request(f"rate is a number of messages per second up to {JOB_RATE_MAX}")
    return float(rate)


def _name(fields: Fields, name: str) -> str | None:
    if fields.get(name) is None:
        return None
    text = fields.text(name)
    if len(text.encode("utf-8", "surrogateescape")) > NAME_SIZE_MAX:
        raise bad_request(["too_long", name])
    return text


def _edit(fields: Fields, request: web.Request, asks: Asking, order: _Order) -> Edit:
    if fields.get("edit") is None:
        return NO_EDIT
    given = Fields(fields.table("edit"))
    names = given.table("properties")
    properties = properties_of(
        Fields({"properties": {name: value for name, value in names.items() if name != "headers"}})
    )
    try:
        headers = {name: table_value(value) for name, value in given.table("headers").items()}
    except TypeError as error:
        raise bad_request(str(error)) from None
    if any(len(name.encode()) > NAME_SIZE_MAX for name in headers):
        raise bad_request(["too_long", "headers"])
    body = None
    if given.get("payload") is not None:
        if len(order.places) != 1:
            raise bad_request("a payload is for one message: choose it by its place")
        body = payload_of(Fields({"payload_encoding": "string", **given.by_name}))
    changed = {name: value for name in names if (value := getattr(properties, name, None)) is not None}
    try:
        _check(changed, user_of(request).name, may_impersonate=asks.rules.may_impersonate)
    except AmqpError as error:
        raise bad_request(error.message) from None
    return Edit(
        headers=headers,
        headers_removed=_texts(given, "remove_headers"),
        properties=changed,
        properties_removed=_texts(given, "remove_properties") & frozenset(properties.__slots__),
        body=body,
    )


def _check(changed: dict[str, object], user: str, *, may_impersonate: bool) -> None:
    """What a publisher may not say, nobody may write into a message."""
    user_id, expiration, mode = (changed.get(name) for name in ("user_id", "expiration", "delivery_mode"))
    if user_id is not None and user_id != user and not may_impersonate:
        raise PreconditionFailed(f"user_id property set to '{user_id}' but authenticated user was '{user}'")
    if isinstance(expiration, str):
        check_expiration(expiration)
    if isinstance(mode, int) and mode > _PERSISTENT:
        raise PreconditionFailed(f"invalid message: {{delivery_mode_unknown,{mode}}}")
    if changed.get("reply_to") == REPLY_TO:
        raise PreconditionFailed("fast reply consumer does not exist")


def _texts(fields: Fields, name: str) -> frozenset[str]:
    texts = fields.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise bad_request(f"{name} is a list of names")
    return frozenset(texts)


def _permission(request: web.Request, node: Managed, vhost: str) -> Permission | None:
    return node.metadata.permissions.get(user_of(request).name, vhost)
