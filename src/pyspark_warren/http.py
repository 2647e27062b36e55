"""A client of the broker's HTTP API, for JSON and for rows in Arrow format."""

import http.client
import json
import os
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

from pyspark_warren.amqp import hint_of, retry_delays, tls_context
from pyspark_warren.answers import UnexpectedAnswer
from pyspark_warren.options import BrokerOptions
from warren.blocking.http_client import HttpClient, HttpResponse
from warren.blocking.http_target import HttpTarget
from warren.blocking.tls import wants_certificate
from warren.client.uri import ClientTls
from warren.limits_http import HTTP_CLIENT_ANSWER_SIZE_MAX, HTTP_CLIENTS_MAX

T = TypeVar("T")

# RabbitMQ's default ports are 5672 and 15672, with TLS 5671 and 15671.
PORT_DISTANCE = 10_000
PORTS = {"http": 15_672, "https": 15_671}
ARROW_STREAM = "application/vnd.apache.arrow.stream"
_RETRYABLE_STATUSES = frozenset({502, 503, 504})
# The time of change and the size of each TLS file; None for one that is not given or missing.
_FileVersions = tuple[tuple[int, int] | None, ...]


class HttpApiError(Exception):
    """A request failed; `status` is 0 without an answer, and -1 if a retry cannot help either."""

    def __init__(self, text: str, status: int = 0, body: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.body = body or {}

    @property
    def is_retryable(self) -> bool:
        """Whether a retry can succeed when the broker is available again."""
        return not self.status or self.status in _RETRYABLE_STATUSES


def _as_it_is(told: Any) -> Any:
    return told


class HttpApi:
    """Sends requests as the user of `managementUri`, or else as the user of the AMQP URI.

    Requests raise HttpApiError if they fail, and for an answer that `read`, one of `answers`, refuses.
    """

    def __init__(self, broker: BrokerOptions, *, timeout_s_min: float = 0.0) -> None:
        """`timeout_s_min` is the minimum timeout for an answer in seconds, if `timeoutMs` is less."""
        target = broker.target
        scheme = "https" if target.is_tls else "http"
        parts = urlsplit(
            broker.management or f"{scheme}://{_host(target.host)}:{target.port + PORT_DISTANCE}"
        )
        if parts.scheme not in PORTS or not parts.hostname:
            # The error does not contain the value, which may have a password.
            raise ValueError("'managementUri' must have the form http://host:15672")
        self._target = HttpTarget(
            host=parts.hostname,
            port=parts.port or PORTS[parts.scheme],
            is_tls=parts.scheme == "https",
            user=unquote(parts.username) if parts.username is not None else target.user,
            password=unquote(parts.password) if parts.password is not None else target.password,
            prefix=parts.path.rstrip("/"),
        )
        self._timeout_s = max(broker.timeout_ms / 1000, timeout_s_min)
        self._files = _file_versions(broker.tls) if self._target.is_tls else ()
        self.broker = broker
        self.place = self._target.origin
        # Wrong TLS files are reported before the first request.
        self._client()

    def get(
        self, path: str, query: Mapping[str, Any] | None = None, read: Callable[[Any], T] = _as_it_is
    ) -> T:
        """Return the JSON at `path`, read by `read`."""
        return self._read(path, self._ask("GET", _with_query(path, query), None, {}), read)

    def post(self, path: str, body: Mapping[str, Any], read: Callable[[Any], T] = _as_it_is) -> T:
        """Send JSON and return the answer. The request may be repeated, so it must be idempotent."""
        data = json.dumps(body).encode()
        return self._read(path, self._ask("POST", path, data, {"Content-Type": "application/json"}), read)

    def send(self, path: str, query: Mapping[str, Any], body: Iterable[bytes], read: Callable[[Any], T]) -> T:
        """Send an Arrow stream in pieces, without retries, and return the answer."""
        kind = {"Content-Type": ARROW_STREAM}
        return self._read(path, self._ask_once("POST", _with_query(path, query), body, kind), read)

    def delete(self, path: str, query: Mapping[str, Any]) -> None:
        """Delete `path`; an answer 404 is a success."""
        try:
            self._ask("DELETE", _with_query(path, query), None, {}).read()
        except HttpApiError as refused:
            if refused.status != 404:
                raise

    def open(self, path: str, query: Mapping[str, Any]) -> HttpResponse:
        """Send a GET and return the answer, which the caller reads and closes."""
        return self._ask("GET", _with_query(path, query), None, {})

    def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpResponse:
        """Send a request, with retries while the broker is unavailable."""
        for wait_s in retry_delays(self.broker):
            try:
                return self._ask_once(method, path, body, headers)
            except HttpApiError as refused:
                if wait_s is None or not refused.is_retryable:
                    raise
            time.sleep(wait_s)
        raise AssertionError

    def _ask_once(
        self, method: str, path: str, body: bytes | Iterable[bytes] | None, headers: Mapping[str, str]
    ) -> HttpResponse:
        # The callers repeat a POST with one body too, but not one with a body in pieces.
        is_idempotent = body is None or isinstance(body, bytes)
        try:
            answer = self._client().request(method, path, body, headers, is_idempotent=is_idempotent)
        except (OSError, http.client.HTTPException) as error:
            is_final = isinstance(error, ssl.SSLCertVerificationError) or wants_certificate(error)
            hint = hint_of(error, self.broker.tls) if self._target.is_tls else ""
            raise HttpApiError(
                f"no response from {self.place}: {error}{hint}", -1 if is_final else 0
            ) from error
        if answer.status < 300:
            return answer
        told = self._told(answer)
        text = told.get("reason") or told.get("error") or answer.reason
        # The query string is long, since it lists every column.
        place = path.partition("?")[0]
        raise HttpApiError(
            f"{self.place} answered {answer.status} to {method} {place}: {text}", answer.status, told
        )

    def _read(self, path: str, answer: HttpResponse, read: Callable[[Any], T]) -> T:
        try:
            return read(document(self._body(answer)))
        except UnexpectedAnswer as error:
            raise HttpApiError(f"{self.place} gave an unexpected answer to {path}: {error}", -1) from None

    def _told(self, answer: HttpResponse) -> Mapping[str, Any]:
        """Return the body of an error; an empty one if it is not that of the HTTP API."""
        try:
            told = document(self._body(answer))
        except UnexpectedAnswer:
            return {}
        return told if isinstance(told, dict) else {}

    def _body(self, answer: HttpResponse) -> bytes:
        with answer:
            try:
                data = answer.read(HTTP_CLIENT_ANSWER_SIZE_MAX + 1)
            except (OSError, http.client.HTTPException) as error:
                raise HttpApiError(f"the answer of {self.place} was cut off: {error}") from error
        if len(data) > HTTP_CLIENT_ANSWER_SIZE_MAX:
            raise UnexpectedAnswer(f"it has more than {HTTP_CLIENT_ANSWER_SIZE_MAX} bytes")
        return data

    def _client(self) -> HttpClient:
        return _shared_client(os.getpid(), self._target, self._timeout_s, (self.broker.tls, self._files))


@lru_cache(maxsize=HTTP_CLIENTS_MAX)
def _shared_client(
    process: int, target: HttpTarget, timeout_s: float, tls: tuple[ClientTls, _FileVersions]
) -> HttpClient:
    """Return the client that a process has for a broker, so that all tasks in it use the same connections.

    A process that was forked makes its own. A file that was replaced, such as a renewed certificate, is read.
    """
    return HttpClient(target, timeout_s, tls_context(tls[0]) if target.is_tls else None)


def _file_versions(tls: ClientTls) -> _FileVersions:
    versions: list[tuple[int, int] | None] = []
    for file in (tls.ca_file, tls.cert_file, tls.key_file):
        try:
            found = os.stat(file or "")
        except OSError:
            versions.append(None)
        else:
            versions.append((found.st_mtime_ns, found.st_size))
    return tuple(versions)


def path(*parts: str) -> str:
    """Return a path below /api, with each part percent-encoded."""
    return "/api/" + "/".join(quote(part, safe="") for part in parts)


def _with_query(place: str, query: Mapping[str, Any] | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    # A name with several values is repeated.
    return f"{place}?{urlencode(given, doseq=True)}" if given else place


def document(data: bytes) -> Any:
    """Return the JSON in the body of an answer; None if it is empty. Raises UnexpectedAnswer."""
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError) as error:
        raise UnexpectedAnswer(f"it is not JSON: {error}") from None


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
