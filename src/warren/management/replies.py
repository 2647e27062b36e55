"""Responses of the HTTP API: JSON, and errors with RabbitMQ's texts."""

import asyncio
from collections.abc import Iterable, Mapping

import msgspec
from aiohttp import web

from warren.management.negotiation import compress
from warren.management.plain_reasons import plain

_NO_HEADERS: Mapping[str, str] = {}
_HEADERS = {
    "cache-control": "no-cache",
    "vary": "accept, accept-encoding, origin",
    "content-security-policy": "script-src 'self'; object-src 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
}
_JSON = "application/json"
# Set in a request whose response must be one whole body, because it becomes part of another.
WHOLE = "whole"
# Set in a request whose response has ended before its end.
BROKEN_OFF = "broken off"
# The largest response that is sent as one body; a larger one is sent in parts as the client reads.
_WHOLE_SIZE_MAX = 1_048_576


def _plain(value: object) -> object:
    """A number of a field table, which has a type with a width, as a plain int or float."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


class RequestRefused(Exception):
    """Ends a request with `response`."""

    def __init__(self, response: web.Response) -> None:
        super().__init__()
        self.response = response


def reply(body: object, status: int = 200) -> web.Response:
    """A response with `body` as JSON."""
    return reply_bytes(encoded(body), status)


def reply_bytes(body: bytes, status: int = 200) -> web.Response:
    """A response with `body`, which is JSON already."""
    return web.Response(body=body, status=status, content_type=_JSON, headers=_HEADERS)


def encoded(body: object) -> bytes:
    """`body` as JSON; strings that are not UTF-8 are converted."""
    try:
        return _encoder.encode(body)
    except UnicodeEncodeError:
        return _encoder.encode(_as_text(body))


async def reply_in_parts(
    request: web.Request, parts: list[bytes], headers: Mapping[str, str] = _NO_HEADERS
) -> web.StreamResponse:
    """A response with JSON in `parts`, which may be large, and `headers` beside the usual ones."""
    size = sum(map(len, parts))
    if size <= _WHOLE_SIZE_MAX:
        whole = reply_bytes(b"".join(parts))
        whole.headers.update(headers)
        return whole
    if WHOLE in request:
        return error_reply(413, "too_large", f"the response has {size} bytes: request a page of it")
    response = web.StreamResponse(headers={**_HEADERS, **headers})
    response.content_type = _JSON
    response.content_length = size
    compress(request, response)
    await response.prepare(request)
    if request.method != "HEAD":
        for part in parts:
            await response.write(part)
            # Writing to a client that reads fast does not suspend, so yield to the event loop.
            await asyncio.sleep(0)
    return response


def break_off(request: web.Request) -> None:
    """End the response to `request` so that the client sees that it is incomplete."""
    request[BROKEN_OFF] = True
    if request.transport is not None:
        request.transport.abort()


def done() -> web.Response:
    """A response without a body: the operation succeeded."""
    return web.Response(status=204, headers=_HEADERS)


def put(*, is_new: bool) -> web.Response:
    """The response to a PUT: 201 if the object is new, 204 if it existed."""
    return web.Response(status=201, headers=_HEADERS) if is_new else done()


def created(location: str) -> web.Response:
    """The response for an object that was created at `location`."""
    return web.Response(status=201, headers={**_HEADERS, "location": location})


def options(methods: Iterable[str]) -> web.Response:
    """The response to OPTIONS: the methods that a resource supports."""
    return web.Response(headers={"allow": ", ".join(methods), "vary": "origin"})


def failed(reason: str, **more: object) -> web.Response:
    """The response of a failed health check (503)."""
    return reply({"status": "failed", "reason": reason} | more, 503)


def error_reply(status: int, error: str, reason: object, message: str = "") -> web.Response:
    """An error response; `message` explains a `reason` that is a term for programs, by default by `plain`."""
    body = {"error": error, "reason": reason}
    message = message or plain(reason)
    if message != reason:
        body["message"] = message
    return reply(body, status)


def bad_request(reason: object, error: str = "bad_request", message: str = "") -> RequestRefused:
    """A refusal with status 400."""
    return RequestRefused(error_reply(400, error, reason, message))


def not_authorised(reason: str) -> RequestRefused:
    """A refusal with status 401: the user lacks a right."""
    return RequestRefused(error_reply(401, "not_authorised", reason))


def not_found(message: str = "") -> web.Response:
    """A response with status 404; `message` says what does not exist."""
    return error_reply(404, "Object Not Found", "Not Found", message)


def missing(message: str = "") -> RequestRefused:
    """A refusal with status 404, to be raised inside a handler; `message` says what does not exist."""
    return RequestRefused(not_found(message))


def _as_text(value: object) -> object:
    """`value` with each string fit for JSON: bytes that are not UTF-8 become replacement characters."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_as_text(key): _as_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return value
