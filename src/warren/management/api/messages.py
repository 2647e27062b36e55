"""Single messages over HTTP: publishing, getting, and the aliveness test of a virtual host."""

import asyncio
import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NotRequired, TypedDict, TypeVar

from aiohttp import web

from warren.errors import AccessRefused, AmqpError, NotFound, Undecided
from warren.limits import (
    NAME_SIZE_MAX,
)
from warren.limits_http import HTTP_CONFIRM_S_MAX, HTTP_GET_SIZE_MAX, LISTED_PER_TURN
from warren.management.carried_request import CARRIED
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import run_coroutine
from warren.management.operation import JsonTable, documented
from warren.management.placement import relay_to_home
from warren.management.replies import RequestRefused, bad_request, error_reply, reply
from warren.management.request_body import BodyFields, read_fields
from warren.management.request_context import RequestContext, exchange_in_path, request_context
from warren.metadata.definitions import json_value
from warren.metadata.definitions_import import table_value
from warren.model.blind_copies import without_bcc
from warren.model.message import Message, encode_address
from warren.queues.capabilities import local_queue, taking_queue
from warren.queues.local import LocalQueue
from warren.queues.queue import NACKED, REJECTED, Delivery
from warren.queues.taking_queue import TakingQueue
from warren.queues.vhost_queue import VhostQueue
from warren.session.direct_publish import NotConfirmed, compose_message, publish
from warren.wire import methods
from warren.wire.properties import BasicProperties

Q = TypeVar("Q", bound=LocalQueue)
_ALIVENESS_QUEUE = "aliveness-test"
_ALIVENESS_BODY = b"test_message"
_NUMBERS = ("delivery_mode", "priority", "timestamp")
_TEXTS = (
    "content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type",
    "user_id", "app_id", "cluster_id",
)  # fmt: skip
# The range of each numeric property.
_NUMBERS_MAX = {"delivery_mode": 255, "priority": 255, "timestamp": (1 << 64) - 1}
_SETTLE: dict[object, Callable[[TakingQueue, Delivery], None]] = {
    "ack_requeue_true": lambda queue, delivery: queue.requeue(delivery, NACKED),
    "reject_requeue_true": lambda queue, delivery: queue.requeue(delivery, REJECTED),
    "ack_requeue_false": lambda queue, delivery: queue.acknowledge(delivery),
    "reject_requeue_false": lambda queue, delivery: queue.reject(delivery),
}
_REQUEUE = ("ack_requeue_true", "reject_requeue_true")


class PublishBody(TypedDict):
    """A message to publish."""

    routing_key: str
    properties: JsonTable | list[Any]
    payload: str
    payload_encoding: Literal["string", "base64"]


class PublishedShape(TypedDict):
    """Whether a message was routed; `alarms` names the resources that block AMQP publishers, if any do."""

    routed: bool
    alarms: NotRequired[list[Literal["disk", "memory"]]]


class GetBody(TypedDict):
    """How many messages are fetched, and whether they are requeued or removed."""

    ackmode: Literal["ack_requeue_true", "reject_requeue_true", "ack_requeue_false", "reject_requeue_false"]
    count: int | str
    encoding: Literal["auto", "base64"]
    truncate: NotRequired[int | str]


class FetchedMessageShape(TypedDict):
    """A message fetched from a queue."""

    payload_bytes: int
    redelivered: bool
    exchange: str
    routing_key: str
    message_count: int
    properties: JsonTable | list[Any]
    payload: str
    payload_encoding: Literal["string", "base64"]


class AlivenessShape(TypedDict):
    """The aliveness test passed."""

    status: Literal["ok"]


@documented(body=PublishBody, response=PublishedShape)
async def publish_message(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Publish a message, also during an alarm; returns after it is confirmed, with `routed`."""
    context = request_context(request, node)
    fields = await read_fields(request)
    body, properties = payload_of(fields), properties_of(fields)
    key = fields.text("routing_key")
    if len(key.encode("utf-8", "surrogateescape")) > NAME_SIZE_MAX:
        raise bad_request("routing_key_too_long")
    address = encode_address(exchange_in_path(request, "exchange"), key)
    try:
        is_routed = await _publish_confirmed(
            context, compose_message(address, properties, body, node.now()), properties
        )
    except Undecided:
        raise
    except AmqpError as error:
        raise bad_request(f"{error.code} {error.reply_text}") from None
    except TimeoutError:
        raise RequestRefused(error_reply(503, "service_unavailable", _unconfirmed(node))) from None
    alarms = [resource.value for resource in node.alarms.blocking]
    return reply({"routed": is_routed} | ({"alarms": alarms} if alarms else {}))


@documented(body=GetBody, response=list[FetchedMessageShape])
async def get_messages(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the first messages of a queue; `ackmode` requeues or removes them."""
    context = request_context(request, node)
    fields = await read_fields(request)
    mode, count, encoding = fields.get("ackmode"), fields.integer("count"), fields.get("encoding")
    if not isinstance(mode, str) or mode not in _SETTLE:
        raise bad_request(["unknown_ackmode", mode])
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    truncate = fields.integer("truncate") if "truncate" in fields else None
    if truncate is not None and truncate < 0:
        raise bad_request(["negative_truncate", truncate])
    queue = readable_classic_queue(context, request.match_info["queue"])

    def view(delivery: Delivery, left: int) -> dict[str, object]:
        _trace(context, queue, delivery)
        return _message(delivery, left, encoding, truncate)

    return reply(await _got(queue, count, mode, view))


@documented(response=AlivenessShape)
async def aliveness(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Check a virtual host: declare the queue `aliveness-test`, publish to it and get the message."""
    context = request_context(request, node)
    properties = BasicProperties()
    try:
        await run_coroutine(
            context.services.queue_service.declare_queue(
                context.requester, methods.QueueDeclare(queue=_ALIVENESS_QUEUE)
            )
        )
    except AmqpError as error:
        raise _channel_error(error) from None
    declared = context.records.queues.get(_ALIVENESS_QUEUE)
    if declared is not None and not node.is_own(node.home_of(declared)) and CARRIED not in request:
        # The declaration has just placed it on another node.
        return await relay_to_home(request, node, context.services.vhost.name, declared)
    address = encode_address("", _ALIVENESS_QUEUE)
    try:
        await _publish_confirmed(
            context, compose_message(address, properties, _ALIVENESS_BODY, node.now()), properties
        )
    except AmqpError as error:
        raise _channel_error(error) from None
    except TimeoutError:
        raise RequestRefused(error_reply(503, "service_unavailable", _unconfirmed(node))) from None
    queue = readable_classic_queue(context, _ALIVENESS_QUEUE)
    if not await _got(queue, 1, "ack_requeue_false", lambda delivery, left: {}):
        raise RequestRefused(error_reply(503, "failed", "the published message did not arrive in the queue"))
    return reply({"status": "ok"})


async def _publish_confirmed(context: RequestContext, message: Message, properties: BasicProperties) -> bool:
    """True if `message` was routed; RequestRefused if a queue rejects it, TimeoutError if unconfirmed."""
    publishing = run_coroutine(
        publish(context.services, context.rules, message, properties=properties, origin=context.origin)
    )
    try:
        return await asyncio.wait_for(publishing, HTTP_CONFIRM_S_MAX)
    except NotConfirmed:
        raise bad_request("rejected Unable to publish message. Check queue limits.") from None


def _unconfirmed(node: ManagedNode) -> str:
    """The reason for a publish without a confirm in time."""
    alarms = ", ".join(resource.value for resource in node.alarms.blocking)
    alarm = f"; alarm: {alarms}" if alarms else ""
    waits = f"not confirmed within {HTTP_CONFIRM_S_MAX} s: the message is waiting to be written to disk"
    return f"{waits}, and may arrive in the queue later{alarm}"


async def _got(
    queue: TakingQueue, count: int, mode: str, view: Callable[[Delivery, int], dict[str, object]]
) -> list[dict[str, object]]:
    """Up to `count` messages as `view` shows them; messages to requeue go back at the end."""
    got: list[dict[str, object]] = []
    held: list[Delivery] = []
    byte_count = 0
    try:
        while len(got) != count and byte_count < HTTP_GET_SIZE_MAX and not queue.is_deleted:
            fetched = await _fetched(queue)
            if fetched is None:
                break
            delivery, left = fetched
            byte_count += delivery.byte_count
            got.append(view(delivery, left))
            if mode in _REQUEUE:
                held.append(delivery)
            else:
                _SETTLE[mode](queue, delivery)
            if not len(got) % LISTED_PER_TURN:
                await asyncio.sleep(0)
    finally:
        for delivery in held:
            _SETTLE[mode](queue, delivery)
        queue.pump()
    return got


async def _fetched(queue: TakingQueue) -> tuple[Delivery, int] | None:
    """What `queue.fetch` returns; a message that comes after the request was cancelled is put back."""
    fetching = run_coroutine(queue.fetch(False))
    try:
        return await asyncio.shield(fetching)
    except asyncio.CancelledError:
        fetching.add_done_callback(partial(_put_back, queue))
        raise
    except AmqpError as error:
        raise _channel_error(error) from None


def _put_back(queue: TakingQueue, fetching: "asyncio.Future[tuple[Delivery, int] | None]") -> None:
    fetched = None if fetching.exception() is not None else fetching.result()
    if fetched is not None:
        queue.requeue(fetched[0])
        queue.pump()


def _trace(context: RequestContext, queue: VhostQueue, delivery: Delivery) -> None:
    if context.services.vhost.is_traced:
        context.services.tracer.delivered(queue.name, delivery.message, delivery.attempts > 0, context.origin)


def readable_classic_queue(context: RequestContext, name: str) -> TakingQueue:
    """The queue `name`; raises RequestRefused if the user may not read it or it is a stream."""
    queue = taking_queue(readable_queue(context, name))
    if queue is None:
        raise bad_request(f"queue '{name}' is a stream: use peek or a consumer")
    return queue


def readable_queue(context: RequestContext, name: str) -> LocalQueue:
    """The queue `name`; raises RequestRefused if the user may not read it, or it is on another node."""
    try:
        queue = context.services.queue_service.live_queue(context.requester, name)
    except AmqpError as error:
        raise _channel_error(error) from None
    return queue_here(queue)


def queue_here(queue: VhostQueue) -> LocalQueue:
    """Return `queue`; raises RequestRefused if its messages are on another node."""
    local = local_queue(queue)
    if local is None:
        raise bad_request(f"queue '{queue.name}' is on another node, which must be asked for its messages")
    return local


async def restored(queue: Q) -> Q:
    """Return `queue` when the messages of earlier runs are in it, which takes a quorum queue a moment.

    Raises RequestRefused if it takes too long.
    """
    try:
        await asyncio.wait_for(run_coroutine(queue.inspect()), HTTP_CONFIRM_S_MAX)
    except TimeoutError:
        raise RequestRefused(
            error_reply(503, "service_unavailable", f"queue '{queue.name}' has no leader yet")
        ) from None
    return queue


def _channel_error(error: AmqpError) -> RequestRefused:
    """The error that a channel would be closed with, as an HTTP response; an Undecided is raised again."""
    if isinstance(error, Undecided):
        raise error
    if isinstance(error, AccessRefused):
        return RequestRefused(error_reply(401, "not_authorised", error.reply_text))
    if isinstance(error, NotFound):
        return RequestRefused(error_reply(404, "not_found", error.reply_text))
    return bad_request(f"{error.code} {error.reply_text}")


def _message(delivery: Delivery, left: int, encoding: object, truncate: int | None) -> dict[str, object]:
    message = delivery.queue.outgoing(delivery)
    body = message.body if truncate is None else message.body[:truncate]
    payload, written = encoded_body(body, encoding)
    return {
        "payload_bytes": delivery.byte_count,
        "redelivered": delivery.attempts > 0,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "message_count": left,
        "properties": shown_properties(without_bcc(message).properties()),
        "payload": payload,
        "payload_encoding": written,
    }


def encoded_body(body: bytes, encoding: object) -> tuple[str, str]:
    """`body` for JSON and its encoding: string if it is UTF-8 and `encoding` is auto, else base64."""
    if encoding == "auto":
        try:
            return body.decode(), "string"
        except UnicodeDecodeError:
            pass
    return b64encode(body).decode("ascii"), "base64"


def shown_properties(properties: BasicProperties) -> object:
    """The properties that are set; an empty list if there are none, as in RabbitMQ."""
    found: dict[str, object] = {
        name: value for name in (*_NUMBERS, *_TEXTS) if (value := getattr(properties, name)) is not None
    }
    if properties.headers is not None:
        found["headers"] = json_value(properties.headers)
    return found or []


def payload_of(fields: BodyFields) -> bytes:
    """The message body in the fields `payload` and `payload_encoding`."""
    payload, encoding = fields.get("payload"), fields.get("payload_encoding")
    if not isinstance(payload, str):
        raise bad_request("payload_not_string")
    if encoding == "string":
        return payload.encode()
    if encoding != "base64":
        raise bad_request(["unsupported_encoding", encoding])
    try:
        return b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(["not_base64", payload]) from None


def properties_of(fields: BodyFields) -> BasicProperties:
    """The field `properties` of a request, headers among them."""
    given = BodyFields(fields.table("properties"))
    properties = BasicProperties()
    for name in _NUMBERS:
        if name in given:
            number = given.get(name)
            if (
                not isinstance(number, int)
                or isinstance(number, bool)
                or not 0 <= number <= _NUMBERS_MAX[name]
            ):
                raise bad_request(["not_int", name])
            setattr(properties, name, number)
    for name in _TEXTS:
        if name in given:
            text = given.get(name)
            if not isinstance(text, str):
                raise bad_request(["not_string", name])
            if len(text.encode()) > NAME_SIZE_MAX:
                raise bad_request(["too_long", name])
            setattr(properties, name, text)
    if "headers" in given:
        try:
            properties.headers = {key: table_value(value) for key, value in given.table("headers").items()}
        except TypeError as error:
            raise bad_request(str(error)) from None
    return properties
