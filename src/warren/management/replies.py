"""Answers of the HTTP API: JSON, and errors in RabbitMQ's words."""

import json

from aiohttp import web

_HEADERS = {
    "cache-control": "no-cache",
    "vary": "accept, accept-encoding, origin",
    "content-security-policy": "script-src 'self'; object-src 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
}


def reply(body: object, status: int = 200) -> web.Response:
    """`body` as JSON."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return web.Response(text=text, status=status, content_type="application/json", headers=_HEADERS)


def failed(reason: str, **more: object) -> web.Response:
    """A health check that found something."""
    return reply({"status": "failed", "reason": reason} | more, 503)


def refused(status: int, error: str, reason: str) -> web.Response:
    """A request that was not obeyed, and why."""
    return reply({"error": error, "reason": reason}, status)


def not_found() -> web.Response:
    """No such thing."""
    return refused(404, "Object Not Found", "Not Found")
