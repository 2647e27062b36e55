"""Serves the OpenAPI document of the API."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from warren.management.managed_node import ManagedNode
from warren.management.operation import documented
from warren.management.replies import reply_bytes

_DOCUMENT: web.AppKey[Callable[[], bytes]] = web.AppKey("document")


def add_document(app: web.Application, written: Callable[[], bytes]) -> None:
    """Serve the document that `written` returns; it is called once, at the first request."""
    app[_DOCUMENT] = written


@documented(response=dict[str, Any])
async def document(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the OpenAPI 3.1 document of this API."""
    return reply_bytes(await asyncio.to_thread(request.app[_DOCUMENT]))
