"""Answers of the HTTP API: JSON, and errors in RabbitMQ's words."""

import asyncio
from collections.abc import Iterable

import msgspec
from aiohttp import web

from warren.management.negotiation import compress
from warren.management.plain_reasons import plain

_HEADERS = {
    "cache-control": "no-cache",
    "vary": "accept, accept-encoding, origin",
    "content-security-policy": "script-src 'self'; object-src 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
}
_JSON = "application/json"
# Set in a request whose answer has to come whole, as it goes into another.
WHOLE = "whole"
# What goes out as one answer; more is written piece by piece, as fast as the client takes it.
_WHOLE_SIZE_MAX = 1_048_576


def _plain(value: object) -> object:
    """A number of a field table, which knows its width, as one that does not."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


class RequestRefused(Exception):
    """The request is answered with `response` and nothing else."""

    def __init__(self, response: web.Response) -> None:
        super().__init__()
        self.response = response


def reply(body: object, status: int = 200) -> web.Response:
    """`body` as JSON."""
    return reply_octets(encoded(body), status)


def reply_octets(body: bytes, status: int = 200) -> web.Response:
    """JSON that is written already."""
    return web.Response(body=body, status=status, content_type=_JSON, headers=_HEADERS)


def encoded(body: object) -> bytes:
    """`body` as JSON; what is no text in it is written as it came, octet by octet."""
    try:
        return _encoder.encode(body)
    except UnicodeEncodeError:
        return _encoder.encode(_as_text(body))


async def reply_in_parts(request: web.Request, parts: list[bytes]) -> web.StreamResponse:
    """JSON that is there in parts, which may be large."""
    size = sum(map(len, parts))
    if size <= _WHOLE_SIZE_MAX:
        return reply_octets(b"".join(parts))
    if WHOLE in request:
        return error_reply(413, "too_large", f"the answer has {size} bytes: ask for a page of it")
    response = web.StreamResponse(headers=_HEADERS)
    response.content_type = _JSON
    response.content_length = size
    compress(request, response)
    await response.prepare(request)
    if request.method != "HEAD":
        for part in parts:
            await response.write(part)
            # A client that takes all as fast as it comes does not make the write wait.
            await asyncio.sleep(0)
    return response


def done() -> web.Response:
    """It was done, and there is nothing to say about it."""
    return web.Response(status=204, headers=_HEADERS)


def put(*, is_new: bool) -> web.Response:
    """It exists: from now on, or since before."""
    return web.Response(status=201, headers=_HEADERS) if is_new else done()


def created(location: str) -> web.Response:
    """It exists from now on, at `location`."""
    return web.Response(status=201, headers={**_HEADERS, "location": location})


def options(methods: Iterable[str]) -> web.Response:
    """What may be done with a resource."""
    return web.Response(headers={"allow": ", ".join(methods), "vary": "origin"})


def failed(reason: str, **more: object) -> web.Response:
    """A health check that found something."""
    return reply({"status": "failed", "reason": reason} | more, 503)


def error_reply(status: int, error: str, reason: object, message: str = "") -> web.Response:
    """A request that was not obeyed, and why; people are told `message` where a reason is for programs."""
    body = {"error": error, "reason": reason}
    message = message or plain(reason)
    if message != reason:
        body["message"] = message
    return reply(body, status)


def bad_request(reason: object, error: str = "bad_request", message: str = "") -> RequestRefused:
    """The client is wrong, and how."""
    return RequestRefused(error_reply(400, error, reason, message))


def not_authorised(reason: str) -> RequestRefused:
    """The user may not do this."""
    return RequestRefused(error_reply(401, "not_authorised", reason))


def not_found(message: str = "") -> web.Response:
    """No such thing; `message` says which."""
    return error_reply(404, "Object Not Found", "Not Found", message)


def missing(message: str = "") -> RequestRefused:
    """The same, from inside."""
    return RequestRefused(not_found(message))


def _as_text(value: object) -> object:
    """`value` with every string fit for JSON: octets that are no UTF-8 become characters of their own."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_as_text(key): _as_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return value
