"""Requeueing unacknowledged messages, whose consumers stay subscribed."""

import asyncio
from typing import Annotated, Any, TypeAlias, TypedDict

from aiohttp import web
from msgspec import Struct

from warren.limits import (
    EXPIRY_MS_MAX,
)
from warren.limits_http import (
    LISTED_PER_TURN,
    RETURNED_PER_REQUEST_MAX,
)
from warren.management.api.peek import channels_of
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.managed_node import ManagedNode
from warren.management.operation import Flag, doc, documented
from warren.management.replies import bad_request, reply
from warren.management.request_body import BodyFields, read_fields
from warren.management.request_context import request_context
from warren.queues.capabilities import live_queue
from warren.queues.queue import Delivery
from warren.session.amqp_connection import AmqpConnection
from warren.session.channel import Channel

# The name of a connection, the number of a channel on it, and a delivery tag on the channel.
_DeliveryKey: TypeAlias = tuple[str, int, int]
_TAG_MAX = (1 << 64) - 1
_CHANNEL_MAX = 65_535


class DeliveryKeyShape(TypedDict):
    """A delivery, identified as in the response of peeking at unacknowledged messages."""

    connection: str
    channel: int
    delivery_tag: int


class RequeueBody(TypedDict, total=False):
    """Which deliveries are requeued: named ones, or all that match the other fields."""

    deliveries: list[DeliveryKeyShape]
    connection: str
    channel: int
    consumer_tag: str
    older_than_ms: Annotated[
        int, doc("Only deliveries that have been unacknowledged for at least this many ms.")
    ]
    all: Annotated[
        Flag, doc("Requeue all unacknowledged messages of the queue; required if no other field is given.")
    ]


class RequeuedShape(TypedDict):
    """How many deliveries were requeued."""

    requeued: int
    missing: Annotated[int, doc("Number of entries of `deliveries` that are not unacknowledged any more.")]


deprecate(RequeuedShape, returned="requeued")


class _DeliveryFilter(Struct, frozen=True, kw_only=True):
    """Selects the deliveries to requeue."""

    # The deliveries that were named; None if they are selected by the other fields.
    places: frozenset[_DeliveryKey] | None
    connection: str | None
    channel: int | None
    consumer_tag: str | None
    # Selects deliveries made at this time (ms) or before.
    before: int | None

    def may_be_of(self, connection: AmqpConnection, channel: Channel) -> bool:
        """True if deliveries of this channel may be selected."""
        name, number = connection.peer.name, channel.number
        if self.places is not None:
            return any(place[:2] == (name, number) for place in self.places)
        return self.connection in (None, name) and self.channel in (None, number)

    def has(self, place: _DeliveryKey, delivery: Delivery) -> bool:
        """True if `delivery`, which has the key `place`, is selected."""
        if self.places is not None:
            return place in self.places
        if self.before is not None and not 0 < delivery.delivered_at <= self.before:
            return False
        consumer = delivery.consumer
        return self.consumer_tag is None or (consumer is not None and consumer.tag == self.consumer_tag)


@documented(body=RequeueBody, response=RequeuedShape)
async def requeue_unacked(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Requeue unacknowledged messages of a queue.

    They return to their positions, marked as redelivered, and are delivered to any consumer, perhaps to the
    same consumer. Later acknowledgements for the requeued deliveries are ignored.
    """
    context = request_context(request, node)
    fields = await read_fields(request)
    choice = _choice(fields, node.now())
    queue = context.services.queue_service.configurable_queue(context.requester, request.match_info["queue"])
    # A requeued message may be delivered to a channel that comes later in this loop. The last tag of each
    # channel is noted first, so that such a message is not requeued again.
    live = live_queue(queue)
    last_tags = [
        (connection, channel, channel.subscriber.unacked.last_tag)
        for connection, channel in channels_of(node, queue)
        if choice.may_be_of(connection, channel)
    ]
    requeued = 0
    for connection, channel, last in last_tags:
        name, number = connection.peer.name, channel.number
        tags = [
            tag
            for tag, delivery in channel.subscriber.unacked.tagged()
            if tag <= last and delivery.queue in (queue, live) and choice.has((name, number, tag), delivery)
        ]
        for at in range(0, len(tags), LISTED_PER_TURN):
            requeued += channel.revoke(tags[at : at + LISTED_PER_TURN])
            await asyncio.sleep(0)
    missing = 0 if choice.places is None else len(choice.places) - requeued
    return reply(with_deprecated(RequeuedShape, {"requeued": requeued, "missing": missing}))


def _choice(fields: BodyFields, now: int) -> _DeliveryFilter:
    places = _places(fields) if "deliveries" in fields else None
    older = _number(fields.by_name, "older_than_ms", EXPIRY_MS_MAX) if "older_than_ms" in fields else None
    choice = _DeliveryFilter(
        places=places,
        connection=_text(fields, "connection"),
        channel=_number(fields.by_name, "channel", _CHANNEL_MAX) if "channel" in fields else None,
        consumer_tag=_text(fields, "consumer_tag"),
        before=None if older is None else now - older,
    )
    conditions = (choice.connection, choice.channel, choice.consumer_tag, choice.before)
    is_narrowed = any(condition is not None for condition in conditions)
    if places is not None and is_narrowed:
        raise bad_request("give either deliveries or a selection such as connection, not both")
    if places is None and not is_narrowed and not fields.flag("all"):
        raise bad_request("give deliveries, connection, channel, consumer_tag, older_than_ms or all")
    return choice


def _places(fields: BodyFields) -> frozenset[_DeliveryKey]:
    named = fields.get("deliveries")
    if not isinstance(named, list) or not all(isinstance(one, dict) for one in named):
        raise bad_request("deliveries must be a list of objects")
    if len(named) > RETURNED_PER_REQUEST_MAX:
        raise bad_request(f"{len(named)} deliveries are too many: at most {RETURNED_PER_REQUEST_MAX}")
    return frozenset(
        (
            str(one.get("connection")),
            _number(one, "channel", _CHANNEL_MAX),
            _number(one, "delivery_tag", _TAG_MAX),
        )
        for one in named
    )


def _text(fields: BodyFields, name: str) -> str | None:
    return fields.text(name) if name in fields else None


def _number(values: dict[str, Any], name: str, most: int) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise bad_request(f"{name} must be a number up to {most}, not {value!r}")
    return value
