"""One HTTP connection: aiohttp's protocol with timeouts for what a client sends and reads.

aiohttp closes idle connections, but waits without end for a client that sends half a request or does not
read its response. Its own log lines about malformed requests are replaced by lines without their content.
"""

import asyncio
import logging
from collections.abc import Callable

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from msgspec import Struct

from warren.limits_http import (
    HTTP_DRAIN_S,
    HTTP_HEADER_SIZE_MAX,
    HTTP_HEADERS_MAX,
    HTTP_HEADERS_S,
    HTTP_HEADERS_SIZE_MAX,
    HTTP_IDLE_S,
    HTTP_LINE_SIZE_MAX,
    HTTP_STALLED_S,
    HTTP_STALLED_SIZE_MIN,
)

logger = logging.getLogger("warren.management")

# The value of the header `server`.
SERVER = "Warren"
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
_NO_MORE = b"Server: Warren\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_INTERNAL = 500


class HttpTimeouts(Struct, frozen=True, kw_only=True):
    """Timeouts of a client in seconds; the reasons are given with the limits."""

    headers_s: float = HTTP_HEADERS_S
    idle_s: float = HTTP_IDLE_S
    stalled_s: float = HTTP_STALLED_S
    # The number of requests on one connection; None is unlimited.
    requests_max: int | None = None


def _nothing() -> None:
    """The default callback."""


class HttpProtocol(RequestHandler):
    """One HTTP connection; `check_timeouts` is called about once a second."""

    __slots__ = (
        "_awaited",
        "_link",
        "_low",
        "_low_at",
        "_part_at",
        "_part_size",
        "_timeouts",
        "_waits_since",
        "lost",
        "on_lost",
        "on_open",
    )

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, timeouts: HttpTimeouts) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]
            logger=logger,
            # Idle time is checked here; this timeout of aiohttp is too long to be reached.
            keepalive_timeout=2 * max(timeouts.idle_s, timeouts.headers_s),
            lingering_time=HTTP_DRAIN_S,
            max_line_size=HTTP_LINE_SIZE_MAX,
            max_headers=HTTP_HEADERS_MAX,
            max_field_size=HTTP_HEADER_SIZE_MAX,
            # A compressed body is not decompressed before it has been checked (see `request_body`).
            auto_decompress=False,
        )
        self._timeouts = timeouts
        self.on_open: Callable[[], None] = _nothing
        self.on_lost: Callable[[], None] = _nothing
        # Done when the connection is lost.
        self.lost: asyncio.Future[None] = loop.create_future()
        # The transport until the connection is lost, also when nothing more will be sent.
        self._link: asyncio.Transport | None = None
        # The wait for a request, and when it was first seen; when a partial request began, and its size.
        self._awaited: asyncio.Future[None] | None = None
        self._waits_since = loop.time()
        self._part_at: float | None = None
        self._part_size = 0
        # The smallest count of unsent bytes of a response that was seen, and when.
        self._low = 0
        self._low_at = 0.0

    @property
    def is_waiting(self) -> bool:
        """True if no complete request has been received and none is being answered."""
        return self._current_request is None and not self._messages and not self._unsent

    @property
    def has_had_enough(self) -> bool:
        """True if the connection has reached its number of requests."""
        most = self._timeouts.requests_max
        return most is not None and self._request_count >= most

    @property
    def _unsent(self) -> int:
        return self._link.get_write_buffer_size() if self._link is not None else 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when the connection is open and its TLS handshake is complete."""
        super().connection_made(transport)
        self._link = self.transport
        self.on_open()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Called when the connection is closed."""
        self._link = None
        if not self.lost.done():
            self.lost.set_result(None)
        super().connection_lost(exc)
        self.on_lost()

    def data_received(self, data: bytes) -> None:
        """Called with received bytes."""
        super().data_received(data)
        # The first bytes often arrive before the handler waits for a request.
        awaits = self._request_count == 0 or (self._waiter is not None and not self._waiter.done())
        if self._messages or not awaits:
            self._part_at, self._part_size = None, 0
            return
        if self._part_at is None:
            self._part_at = self._loop.time()
        self._part_size += len(data)
        if self._part_size > HTTP_HEADERS_SIZE_MAX:
            self._refuse(_TOO_LARGE)

    def check_timeouts(self) -> None:
        """Close the connection if it exceeds a timeout."""
        now, timeouts = self._loop.time(), self._timeouts
        waiter = self._waiter
        if waiter is not self._awaited:
            self._awaited, self._waits_since = waiter, now
        if waiter is not None and not self._unsent:
            if self._part_at is not None:
                if now - self._part_at >= timeouts.headers_s:
                    self._refuse(_TOO_LATE)
            elif now - self._waits_since >= (timeouts.idle_s if self._request_count else timeouts.headers_s):
                self.drop()
        self._check_unsent(now)

    def drop(self) -> None:
        """Close the connection without sending what is buffered."""
        self.force_close()
        if self._link is not None:
            self._link.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Log a malformed request or an unhandled exception, and return the error response."""
        if isinstance(exc, ConnectionError) and self._link is None:
            logger.debug("%s closed the connection during a request", request.remote)
        elif status >= _INTERNAL:
            logger.error("unexpected exception in a request from %s", request.remote, exc_info=exc)
        else:
            logger.info("malformed HTTP request from %s: %s", request.remote, type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        text = "Internal Server Error" if status >= _INTERNAL else "Bad Request"
        response = web.Response(status=status, text=text, headers={"server": SERVER})
        response.force_close()
        return response

    # --- private ------------------------------------------------------------------------------

    def _check_unsent(self, now: float) -> None:
        """Close the connection if the client has read too little of a response for too long."""
        unsent = self._unsent
        # The count of unsent bytes grows only when the client has read what was there before.
        if not unsent or unsent > self._low or unsent <= self._low - HTTP_STALLED_SIZE_MIN:
            self._low, self._low_at = unsent, now
        elif now - self._low_at >= self._timeouts.stalled_s:
            self.drop()

    def _refuse(self, status: bytes) -> None:
        if self.transport is not None:
            self.transport.write(status + _NO_MORE)
        self.force_close()
