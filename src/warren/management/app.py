"""The HTTP servers: the API on one port, metrics on another."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from warren.management.api import connections, health, nodes, overview, vhosts
from warren.management.auth import NotAuthorised, authenticate
from warren.management.managed import ListenerView, Managed
from warren.management.metrics import metrics
from warren.management.replies import not_found, refused
from warren.transport.sockets import bind

logger = logging.getLogger("warren.management")

View = Callable[[web.Request, Managed], web.Response]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_BACKLOG = 128
# Definitions are the largest thing sent here: as RabbitMQ 4.3.
_BODY_SIZE_MAX = 10_000_000

ROUTES: dict[str, View] = {
    "/api/overview": overview.overview,
    "/api/nodes": nodes.nodes,
    "/api/connections": connections.connections,
    "/api/whoami": overview.who_am_i,
    "/api/health/checks/alarms": health.alarms,
    "/api/health/checks/local-alarms": health.local_alarms,
    "/api/health/checks/port-listener/{port}": health.port_listener,
    "/api/health/checks/protocol-listener/{protocol}": health.protocol_listener,
    "/api/health/checks/virtual-hosts": health.virtual_hosts,
    "/api/health/checks/node-is-mirror-sync-critical": health.critical,
    "/api/health/checks/node-is-quorum-critical": health.critical,
}


class HttpServer:
    """One listening HTTP port."""

    def __init__(self, node: Managed, protocol: str) -> None:
        self._node = node
        self._protocol = protocol
        self._runner = web.AppRunner(_app(node, protocol), access_log=None, handle_signals=False)
        self.addresses: list[tuple[str, int]] = []

    async def start(self, host: str, port: int) -> None:
        """Listen; an OSError says why the address cannot be had."""
        sockets = bind(host, port, _BACKLOG)
        await self._runner.setup()
        for listening in sockets:
            await web.SockSite(self._runner, listening, shutdown_timeout=1).start()
            self.addresses.append(listening.getsockname()[:2])
        self._node.listeners.extend(ListenerView(self._protocol, *address) for address in self.addresses)

    async def stop(self) -> None:
        """Finish the requests under way and close."""
        await self._runner.cleanup()


def _app(node: Managed, protocol: str) -> web.Application:
    app = web.Application(middlewares=[_errors], client_max_size=_BODY_SIZE_MAX)
    if protocol == "http/prometheus":
        app.router.add_get("/metrics", _handler(node, metrics))
        return app
    for path, view in ROUTES.items():
        app.router.add_get(path, _admitting(node, _handler(node, view)))
    app.router.add_post(
        "/api/vhosts/{vhost}/start/{node}", _admitting(node, partial(vhosts.start, node=node))
    )
    return app


def _handler(node: Managed, view: View) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return view(request, node)

    return handle


def _admitting(node: Managed, handler: Handler) -> Handler:
    """`handler` for users of the HTTP API, and nobody else."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            request["user"] = authenticate(request, node)
        except NotAuthorised as refusal:
            return refusal.response
        return await handler(request)

    return handle


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """RabbitMQ's body for what aiohttp refuses by itself; nothing of an exception goes to the client."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return not_found()
    except web.HTTPMethodNotAllowed as error:
        return web.Response(status=405, headers={"allow": ", ".join(sorted(error.allowed_methods))})
    except web.HTTPException:
        raise
    except Exception:
        logger.exception("unexpected exception in %s %s", request.method, request.path)
        return refused(500, "Internal Server Error", "see the log of the broker")
