"""What can be asked here, told to whoever would ask."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from warren.management.managed_node import ManagedNode
from warren.management.operation import documented
from warren.management.replies import reply_octets

_DOCUMENT: web.AppKey[Callable[[], bytes]] = web.AppKey("document")


def add_document(app: web.Application, written: Callable[[], bytes]) -> None:
    """Have `app` show what `written` gives; it is asked once, when somebody wants it."""
    app[_DOCUMENT] = written


@documented(response=dict[str, Any])
async def document(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """The document of this API, OpenAPI 3.1."""
    return reply_octets(await asyncio.to_thread(request.app[_DOCUMENT]))
