"""A blocking HTTP client with pooled connections, for the command line and the Spark connector.

Connections stay open between requests, so that TCP and TLS are not set up for each of them. A client does not
follow redirects, use proxies of the environment, or decompress bodies.
"""

import base64
import re
import ssl
import warnings
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from types import TracebackType
from typing import Self

import urllib3
from urllib3.exceptions import HTTPError, InsecureRequestWarning
from urllib3.util import SKIP_HEADER

from warren.blocking.http_target import HttpTarget
from warren.limits_http import HTTP_CLIENT_IDLE_MAX

_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE"))
# Errors of a connection that the server has closed.
_LOST = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class HttpResponse:
    """A response; the caller reads and closes it, and pyarrow can read it as a file.

    Its connection is kept for the next request if the body was read to its end.
    """

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.reason = response.reason or ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """True if nothing more can be read."""
        return self._response.closed

    def read(self, size: int | None = None) -> bytes:
        """Return at most `size` bytes, or all that remain. Raises OSError or HTTPException."""
        try:
            return self._response.read(size, decode_content=False)
        except HTTPError as error:
            raise _cause(error) from None

    def close(self) -> None:
        """Close the response, and its connection unless the body was read to its end."""
        self._response.close()


class HttpClient:
    """Sends requests to one server as one user; it can be used by several threads."""

    def __init__(self, target: HttpTarget, timeout_s: float, context: ssl.SSLContext | None = None) -> None:
        """`context` is needed for TLS. Raises ValueError if the host is not a host name."""
        self._target = target
        # Of connecting, and of each read, of the requests that follow.
        self.timeout_s = timeout_s
        self._context = context
        self._pool = self._new_pool()
        token = base64.b64encode(f"{target.user}:{target.password}".encode("utf-8", "surrogateescape"))
        self._authorization = f"Basic {token.decode('ascii')}"
        if context is not None and context.verify_mode is ssl.CERT_NONE:
            # The user has asked for it, and urllib3 would write a warning to standard error.
            message = f"Unverified HTTPS request is being made to host '{re.escape(target.host)}'"
            warnings.filterwarnings("ignore", message, InsecureRequestWarning)

    def close(self) -> None:
        """Close the idle connections; the client cannot be used any more."""
        self._pool.close()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        is_idempotent: bool | None = None,
        is_anonymous: bool = False,
    ) -> HttpResponse:
        """Send a request and return the response, of any status. Raises OSError or HTTPException.

        A kept connection may have been closed by the server. An idempotent request is then sent once more,
        over a new connection. By default, `method` decides whether it is idempotent. An anonymous request has
        no credentials.
        """
        # urllib3 would add its own name and version as the user agent.
        sent = {**(headers or {}), "user-agent": SKIP_HEADER}
        if not is_anonymous:
            sent["authorization"] = self._authorization
        if body is not None and not isinstance(body, bytes):
            # Pieces are sent in chunks and cannot be sent again: they get a connection that was just opened.
            pool = self._new_pool()
            try:
                return self._send(pool, method, path, headers=sent, body=body)
            finally:
                # The connection is still open for the response, and is closed when that was read.
                pool.close()
        pool = self._pool
        opened = pool.num_connections
        try:
            return self._send(pool, method, path, headers=sent, body=body)
        except _LOST:
            may_repeat = method in _IDEMPOTENT if is_idempotent is None else is_idempotent
            if not may_repeat or not opened or pool.num_connections > opened:
                raise
        # The server has probably closed the other idle connections too.
        self._pool = self._new_pool()
        return self._send(self._pool, method, path, headers=sent, body=body)

    def _send(
        self,
        pool: urllib3.HTTPConnectionPool,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | Iterable[bytes] | None,
    ) -> HttpResponse:
        try:
            response = pool.urlopen(
                method,
                self._target.prefix + path,
                body,
                dict(headers),
                timeout=urllib3.Timeout(connect=self.timeout_s, read=self.timeout_s),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
        except HTTPError as error:
            raise _cause(error) from None
        return HttpResponse(response)

    def _new_pool(self) -> urllib3.HTTPConnectionPool:
        host, port = self._target.host, self._target.port
        size = HTTP_CLIENT_IDLE_MAX
        if not self._target.is_tls:
            return urllib3.HTTPConnectionPool(host, port, maxsize=size)
        return urllib3.HTTPSConnectionPool(host, port, maxsize=size, ssl_context=self._context)


def _cause(error: HTTPError) -> OSError | HTTPException:
    """Return the error of the standard library that urllib3 has wrapped; callers know these."""
    for wrapped in (error, *error.args, error.__cause__):
        if isinstance(wrapped, OSError | HTTPException):
            return wrapped
    return OSError(str(error))
