"""The HTTP servers: the API on one port, metrics on another."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cache

from aiohttp import web
from msgspec import Struct

from warren.errors import AmqpError, MetadataTimeout
from warren.limits_http import (
    HTTP_BODY_SIZE_MAX,
)
from warren.management.api.live import GETS, add_live
from warren.management.api.oauth_sessions import add_oauth_pages
from warren.management.api.openapi_document import add_document
from warren.management.auth import Right, authorize, check_scheme
from warren.management.carried_request import CARRIED
from warren.management.current_metadata import with_current_metadata
from warren.management.http_connections import HttpConnections, HttpPortSettings
from warren.management.http_protocol import SERVER, HttpProtocol, HttpTimeouts
from warren.management.managed_node import ListenerView, ManagedNode
from warren.management.manual import add_manual
from warren.management.metadata_changes import amqp_error_reply
from warren.management.metadata_wait import METADATA_WAIT, MetadataWait, timeout_reason
from warren.management.negotiation import compress, plain_text_refusal
from warren.management.node_requests import NODES_MISSING
from warren.management.openapi import document
from warren.management.operation import OPERATION, operation_of
from warren.management.placement import Handler, Place, handle_at
from warren.management.prometheus.endpoints import SCRAPE_STATISTICS, detailed, metrics, per_object
from warren.management.prometheus.exposition import ScrapeStatistics
from warren.management.replies import RequestRefused, encoded, error_reply, not_found, options
from warren.management.request_body import BODY_MEMORY, BodyMemory
from warren.management.resource import PathResource
from warren.management.routes import ROUTES, HttpRoute
from warren.management.web_interface import PREFIX, add_web_interface
from warren.model.decided import decided
from warren.transport.sockets import bind

logger = logging.getLogger("warren.management")

Responder = Callable[[web.Request], Awaitable[web.StreamResponse]]

Endpoint = Callable[[web.Request, ManagedNode], Awaitable[web.StreamResponse]]

_BACKLOG = 128
_SHUTDOWN_S = 1.0
_POLICY = "content-security-policy"
_ENCODING_SHOWN = 40
_IDENTITY_ENCODINGS = ("", "identity")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_READING = ("GET", "HEAD")
_METRICS_METHODS = ("HEAD", "GET", "OPTIONS")
_METRICS: dict[str, Endpoint] = {
    "": metrics,
    "/per-object": per_object,
    "/detailed": detailed,
}


class ResponseSettings(Struct, frozen=True, kw_only=True):
    """Settings of all responses, such as RabbitMQ's `management.hsts.policy`."""

    hsts: str = ""
    csp: str = ""
    # Origins whose pages may make requests (CORS); `*` allows all.
    origins: frozenset[str] = frozenset()
    origins_max_age: int | None = None
    metrics_path: str = "/metrics"
    # True if metrics are only for users who may see the objects of others.
    is_metrics_login: bool = False
    # The prefix of all paths of the API, its documentation and the web interface.
    path_prefix: str = ""
    is_compressed: bool = True


RESPONSE_SETTINGS: web.AppKey[ResponseSettings] = web.AppKey("answering", ResponseSettings)


class HttpServer:
    """One listening HTTP port."""

    def __init__(
        self,
        node: ManagedNode,
        protocol: str,
        settings: HttpPortSettings,
        response_settings: ResponseSettings,
    ) -> None:
        """`protocol` is http or http/prometheus, and with TLS https or https/prometheus."""
        self._node = node
        self._protocol = protocol
        app = application(node, protocol, response_settings)
        add_live(app, self._ask)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=_SHUTDOWN_S)
        self._connections = HttpConnections(settings, self._make_protocol)
        self.addresses: list[tuple[str, int]] = []

    async def start(self, host: str, port: int) -> None:
        """Listen on `host` and `port`; raises OSError if the address is not available."""
        sockets = bind(host, port, _BACKLOG)
        await self._runner.setup()
        for listening in sockets:
            self._connections.listen(listening)
            self.addresses.append(listening.getsockname()[:2])
        self._node.listeners.extend(ListenerView(self._protocol, *address) for address in self.addresses)

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        """The response to `request`, which was made inside the broker instead of on a socket."""
        assert self._runner.server is not None
        return await self._runner.server.request_handler(request)

    async def stop(self) -> None:
        """Finish the requests in progress and close."""
        await self._connections.stop()
        await self._runner.cleanup()
        self._connections.close()

    def _make_protocol(self, timeouts: HttpTimeouts) -> HttpProtocol:
        assert self._runner.server is not None
        return HttpProtocol(self._runner.server, asyncio.get_running_loop(), timeouts)


def application(node: ManagedNode, protocol: str, response_settings: ResponseSettings) -> web.Application:
    """The HTTP API of `node`, or for a `protocol` that ends in /prometheus its metrics page."""
    app = web.Application(middlewares=[_errors], client_max_size=HTTP_BODY_SIZE_MAX)
    app[RESPONSE_SETTINGS] = response_settings
    app[BODY_MEMORY] = BodyMemory()
    app.on_response_prepare.append(_add_headers)
    if protocol.endswith("/prometheus"):
        app[SCRAPE_STATISTICS] = ScrapeStatistics()
        app.router.add_route("*", response_settings.metrics_path + "/{registry:[^/]+}", _no_registry)
        for path, endpoint in _METRICS.items():
            for written in (path, f"{path}/"):
                app.router.add_route("*", response_settings.metrics_path + written, _metrics(node, endpoint))
        return app
    prefix = app[PREFIX] = response_settings.path_prefix
    for route in ROUTES:
        resource = PathResource(f"{prefix}/api{route.path}")
        resource.add_route("*", _responder(node, route))
        app.router.register_resource(resource)
    add_document(app, cache(lambda: encoded(document(ROUTES) | {"servers": [{"url": f"{prefix}/api"}]})))
    add_manual(app, lambda: document(ROUTES))
    add_web_interface(app)
    add_oauth_pages(app, node)
    return app


def _metrics(node: ManagedNode, endpoint: Endpoint) -> Responder:
    """The responder of a metrics path, with RabbitMQ's response to each method and Accept header."""

    async def respond(request: web.Request) -> web.StreamResponse:
        if request.method == "OPTIONS":
            return options(_METRICS_METHODS)
        if request.method not in _METRICS_METHODS:
            is_known = request.method in _METHODS
            return web.Response(
                status=405 if is_known else 501, headers={"allow": ", ".join(_METRICS_METHODS)}
            )
        if refusal := plain_text_refusal(request.headers.get("accept")):
            return web.Response(status=refusal)
        if request.app[RESPONSE_SETTINGS].is_metrics_login:
            await authorize(request, node, Right.MONITOR)
        return web.Response(status=204) if request.method == "HEAD" else await endpoint(request, node)

    return respond


async def _no_registry(request: web.Request) -> web.StreamResponse:
    return web.Response(status=404, text="Unknown Registry")


def _responder(node: ManagedNode, route: HttpRoute) -> Responder:
    """The responder of `route`; the method is checked before the user, and both before the handler runs."""

    async def handle(request: web.Request, handler: Handler) -> web.StreamResponse:
        check_scheme(request, node)
        await authorize(request, node, route.right_of(request.method))
        _check_encoding(request)
        request[OPERATION] = operation_of(handler)
        place = route.place_of(request.method)
        if CARRIED in request and place is Place.HERE and request.method not in _READING:
            reason = f"{request.method} of this path is not for other nodes: each handles it itself"
            raise RequestRefused(error_reply(403, "forbidden", reason))

        async def answer() -> web.StreamResponse:
            return await handle_at(place, request, node, handler)

        return await decided(lambda: with_current_metadata(request, node.metadata, node.proposals, answer))

    async def respond(request: web.Request) -> web.StreamResponse:
        if request.method == "OPTIONS":
            return options(route.methods)
        handler = route.handler(request.method)
        if handler is None:
            return web.Response(status=405, headers={"allow": ", ".join(route.methods)})
        wait = MetadataWait()
        METADATA_WAIT.set(wait)
        try:
            return await handle(request, handler)
        except MetadataTimeout as error:
            return error_reply(503, "service_unavailable", timeout_reason(node, error, wait))
        finally:
            wait.end()

    setattr(respond, GETS, route.handler("GET"))
    return respond


def _check_encoding(request: web.Request) -> None:
    """Refuse a compressed body: RabbitMQ accepts none, and a small one may expand to a large one."""
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in _IDENTITY_ENCODINGS:
        reason = f"a request body must not have the content encoding '{encoding[:_ENCODING_SHOWN]}'"
        raise RequestRefused(error_reply(415, "unsupported_media_type", reason))


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the header `server`, without a version, and the configured headers."""
    response.headers["server"] = SERVER
    if NODES_MISSING in request:
        response.headers[NODES_MISSING] = request[NODES_MISSING]
    if isinstance(request.protocol, HttpProtocol) and request.protocol.has_had_enough:
        response.headers["connection"] = "close"
        response.force_close()
    response_settings = request.app[RESPONSE_SETTINGS]
    # RFC 6797 §7.2: HSTS is not sent over an unencrypted connection.
    if response_settings.hsts and request.secure:
        response.headers["strict-transport-security"] = response_settings.hsts
    origin = request.headers.get("origin", "")
    if origin and not response_settings.origins.isdisjoint((origin, "*")):
        _add_cors_headers(request, response, origin)
    if response_settings.csp and _POLICY in response.headers:
        response.headers[_POLICY] = response_settings.csp


def _add_cors_headers(request: web.Request, response: web.StreamResponse, origin: str) -> None:
    """Add RabbitMQ's CORS headers, which let a page of `origin` read the response."""
    response.headers["access-control-allow-origin"] = origin
    response.headers["access-control-allow-credentials"] = "true"
    if request.method != "OPTIONS":
        return
    max_age = request.app[RESPONSE_SETTINGS].origins_max_age
    if max_age is not None:
        response.headers["access-control-max-age"] = str(max_age)
    wanted = request.headers.get("access-control-request-headers")
    if wanted is not None:
        response.headers["access-control-allow-headers"] = wanted
    response.headers["access-control-allow-methods"] = response.headers.get("allow", "")


def _is_left(request: web.Request) -> bool:
    """True if the client has disconnected."""
    return request.transport is None or request.transport.is_closing()


@web.middleware
async def _errors(request: web.Request, handler: Responder) -> web.StreamResponse:
    """Turn exceptions into RabbitMQ's error bodies, which hold no details of them; compress the response."""
    response = await _answer(request, handler)
    if request.app[RESPONSE_SETTINGS].is_compressed:
        compress(request, response)
    return response


async def _answer(request: web.Request, handler: Responder) -> web.StreamResponse:
    try:
        return await handler(request)
    except RequestRefused as refusal:
        return refusal.response
    except AmqpError as error:
        return amqp_error_reply(error)
    except web.HTTPNotFound:
        return not_found()
    except web.HTTPMethodNotAllowed as error:
        return web.Response(status=405, headers={"allow": ", ".join(sorted(error.allowed_methods))})
    except web.HTTPException:
        raise
    except Exception as error:
        if isinstance(error, ConnectionError) and _is_left(request):
            # The client has disconnected, so there is no response to send and no error to log.
            raise
        logger.exception("unexpected exception in %s %s", request.method, request.path)
        return error_reply(500, "Internal Server Error", "see the log of the broker")
