"""Peeking at messages of a queue: nothing is delivered, requeued or marked."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Required, TypedDict

from aiohttp import web
from msgspec import Struct

from warren.limits_http import HTTP_GET_SIZE_MAX, LISTED_PER_TURN, PEEKED_MAX, PEEKED_PER_REQUEST_MAX
from warren.management.api.messages import encoded_body, readable_queue, restored, shown_properties
from warren.management.conditions import Condition, ConditionError, parse_conditions
from warren.management.deprecated_fields import deprecate, query_text, with_deprecated
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable, doc, documented
from warren.management.replies import bad_request, reply
from warren.management.request_context import request_context
from warren.model.blind_copies import without_bcc
from warren.model.message import Message
from warren.queues.local import LocalQueue
from warren.queues.queue import PeekedMessage
from warren.queues.vhost_queue import VhostQueue
from warren.session.amqp_connection import AmqpConnection
from warren.session.channel import Channel

_COUNT = 50
_TRUNCATE = 50_000
_READY = "ready"
_UNACKNOWLEDGED = "unacknowledged"
_QUARANTINED = "quarantined"


PeekQuery = TypedDict(
    "PeekQuery",
    {
        "state": Annotated[
            Literal["ready", "unacknowledged", "quarantined"],
            doc("State of the messages; ready by default. Only quorum queues have quarantined ones."),
        ],
        "from": Annotated[int, doc("Position from which to peek: `next` of the previous response.")],
        "count": Annotated[int, doc("Maximum number of messages to return.")],
        "truncate": Annotated[int, doc("Maximum bytes of each body to return.")],
        "match": Annotated[
            list[str], doc("A condition that messages must meet: `routing_key=orders`; may be repeated.")
        ],
    },
    total=False,
)


class UnackedDeliveryShape(TypedDict):
    """The consumer that holds an unacknowledged message."""

    connection: str
    channel: int
    consumer_tag: str | None
    delivery_tag: int
    user: str | None


class PeekedMessageShape(TypedDict, total=False):
    """A message with its position in the queue."""

    exchange: Required[str]
    routing_key: Required[str]
    properties: Required[JsonTable | list[Any]]
    payload: Required[str]
    payload_encoding: Required[Literal["string", "base64"]]
    payload_bytes: Required[int]
    is_truncated: Required[bool]
    is_persistent: Required[bool]
    published_at: Required[int]
    age_ms: Required[int]
    state: Required[Literal["ready", "unacknowledged", "quarantined"]]
    position: Required[int]
    delivery_count: Required[int]
    unacknowledged_ms: int | None
    delivery: UnackedDeliveryShape


deprecate(
    PeekedMessageShape,
    place="position",
    attempts="delivery_count",
    held_for_ms="unacknowledged_ms",
    holder="delivery",
)


class PeekShape(TypedDict):
    """Messages, and the position from which to continue."""

    messages: list[PeekedMessageShape]
    next: int | None
    examined: int


class _PeekScan(Struct):
    """The options of a peek, and what it has found so far."""

    queue: LocalQueue
    first: int
    count: int
    truncate: int
    conditions: list[Condition]
    now: int
    found: list[dict[str, object]]
    examined: int = 0
    byte_count: int = 0

    @property
    def is_enough(self) -> bool:
        """True if the response is full, or the bound of examined messages is reached."""
        return (
            len(self.found) >= self.count
            or self.examined >= PEEKED_PER_REQUEST_MAX
            or self.byte_count >= HTTP_GET_SIZE_MAX
        )

    def examine(self, message: Message, more: dict[str, object]) -> None:
        """Count `message`, and add it with the fields `more` to the result if it matches the conditions."""
        self.examined += 1
        if all(condition.fits(message) for condition in self.conditions):
            self.byte_count += min(message.body_size, self.truncate)
            view = _view(message, self.truncate, self.now) | more
            self.found.append(with_deprecated(PeekedMessageShape, view))


@documented(query=PeekQuery, response=PeekShape)
async def peek(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Peek at messages of a queue in order; `next` is the position to continue from, null at the end."""
    context = request_context(request, node)
    state = request.query.get("state", _READY)
    try:
        scan = _PeekScan(
            queue=await restored(readable_queue(context, request.match_info["queue"])),
            first=query_number(request, "from", 0, 1 << 62),
            count=query_number(request, "count", _COUNT, PEEKED_MAX),
            truncate=query_number(request, "truncate", _TRUNCATE, HTTP_GET_SIZE_MAX),
            conditions=parse_conditions(request.query.getall("match", [])),
            now=node.now(),
            found=[],
        )
    except ConditionError as error:
        raise bad_request(str(error)) from None
    if state == _READY:
        after = await _listed(scan, state, scan.queue.peek)
    elif state == _QUARANTINED:
        after = await _listed(scan, state, scan.queue.quarantined)
    elif state == _UNACKNOWLEDGED:
        after = await _unacknowledged(scan, node)
    else:
        states = f"{_READY}, {_UNACKNOWLEDGED} or {_QUARANTINED}"
        raise bad_request(f"state must be {states}, not '{state[:40]}'")
    return reply({"messages": scan.found, "next": after, "examined": scan.examined})


async def _listed(
    scan: _PeekScan, state: str, peek_from: Callable[[int, int], list[PeekedMessage]]
) -> int | None:
    """Messages in `state`, which `peek_from` returns by place."""
    place = scan.first
    while not scan.queue.is_deleted:
        peeked = peek_from(place, LISTED_PER_TURN)
        for each in peeked:
            if scan.is_enough:
                return place
            place = each.place + 1
            more = {"state": state, "position": each.place, "delivery_count": each.attempts}
            scan.examine(each.message, more)
        if len(peeked) < LISTED_PER_TURN:
            return None
        await asyncio.sleep(0)
    return None


async def _unacknowledged(scan: _PeekScan, node: ManagedNode) -> int | None:
    """Unacknowledged messages in order of connections and channels; a position counts those before it."""
    place = 0
    for connection, channel in list(channels_of(node, scan.queue)):
        for tag, delivery in channel.subscriber.unacked.tagged():
            if delivery.queue is not scan.queue:
                continue
            place += 1
            if place <= scan.first:
                continue
            if scan.is_enough:
                return place - 1
            consumer = delivery.consumer
            age_ms = max(scan.now - delivery.delivered_at, 0) if delivery.delivered_at else None
            more = {
                "state": _UNACKNOWLEDGED,
                "position": place - 1,
                "delivery_count": delivery.attempts + 1,
                "unacknowledged_ms": age_ms,
                "delivery": {
                    "connection": connection.peer.name,
                    "channel": channel.number,
                    "consumer_tag": consumer.tag if consumer is not None else None,
                    "delivery_tag": tag,
                    "user": connection.login.user if connection.login is not None else None,
                },
            }
            scan.examine(scan.queue.whole(delivery), more)
        await asyncio.sleep(0)
    return None


def channels_of(node: ManagedNode, queue: VhostQueue) -> Iterator[tuple[AmqpConnection, Channel]]:
    """The channels that may hold unacknowledged messages of `queue`, with their connections."""
    for connection in node.server.connections:
        if connection.services is not None and connection.services.vhost.name == queue.vhost_name:
            for channel in connection.channels.values():
                yield connection, channel


def _view(message: Message, truncate: int, now: int) -> dict[str, object]:
    payload, encoding = encoded_body(message.body[:truncate], "auto")
    return {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "properties": shown_properties(without_bcc(message).properties()),
        "payload": payload,
        "payload_encoding": encoding,
        "payload_bytes": message.body_size,
        "is_truncated": message.body_size > truncate,
        "is_persistent": message.is_persistent,
        "published_at": message.published_at,
        "age_ms": max(now - message.published_at, 0),
    }


def query_number(request: web.Request, name: str, default: int, most: int) -> int:
    """The query parameter `name` as a number up to `most`; raises RequestRefused for others."""
    text = query_text(request, name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 20 or int(text) > most:
        raise bad_request(f"{name} must be a number up to {most}, not '{text[:40]}'")
    return int(text)
