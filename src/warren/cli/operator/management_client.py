"""A client of the HTTP API, with bounded responses, and failures that say what to do."""

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

from warren.blocking.http_target import HttpTarget
from warren.blocking.tls import refusal_hint
from warren.cli.operator.failures import (
    BROKEN,
    NOT_AUTHORISED,
    UNHEALTHY,
    UNREACHABLE,
    USAGE,
    AnswerTooLong,
    Failure,
    ObjectNotFound,
    Refused,
    Unanswered,
)
from warren.cli.operator.tls import TLS_NAMES, tls_context
from warren.client.uri import NO_FILES, ClientTls
from warren.limits import (
    CLI_ANSWER_SIZE_MAX,
)
from warren.limits_http import (
    PAGE_SIZE_MAX,
)

Row = dict[str, Any]
Query = Mapping[str, object] | Sequence[tuple[str, object]]
# Prefix of the error texts for a missing object.
_CODE = "NOT_FOUND - "
_ERRORS = (OSError, http.client.HTTPException)
# Error texts that contain no more than the status.
_OTHER_USER = "use --uri http://USER:PASSWORD@HOST:PORT, or WARREN_USER and WARREN_PASSWORD"


class ManagementClient:
    """A client of one broker."""

    def __init__(self, target: HttpTarget, timeout_s: float, tls: ClientTls = NO_FILES) -> None:
        """`tls` applies if `target` uses TLS; raises Failure if its files are not usable."""
        self.target = target
        # Called with the first response.
        self.once_answered: Callable[[], None] | None = None
        self._tls = tls
        # urllib3 is loaded only by commands that send requests (decision 0194).
        from warren.blocking.http_client import HttpClient

        context = tls_context(tls) if target.is_tls else None
        try:
            self._client = HttpClient(target, timeout_s, context)
        except ValueError as error:
            raise Failure(f"{target.origin}: {error}", USAGE) from None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def limit_time(self, timeout_s: float) -> None:
        """Set the timeout of the requests that follow."""
        self._client.timeout_s = timeout_s

    def check_answering(self) -> None:
        """Raise Failure unless an HTTP server responds on the port, with any response."""
        self._ask("GET", "/", is_anonymous=True)

    def get(self, path: str, query: Query = ()) -> Any:
        """Return the JSON response of a GET request for `path`."""
        return self.send("GET", path + ("?" + urlencode(query) if query else ""))

    def exists(self, path: str) -> bool:
        """True if a GET request for `path` succeeds, False if it returns 404."""
        try:
            self.get(path, {"columns": "name"})
        except ObjectNotFound:
            return False
        return True

    def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Send a request, and return the JSON response; None if it has no body. Raises Failure."""
        # No `accept`: RabbitMQ refuses some changes to clients that accept JSON only.
        sent = dict(headers or {})
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            sent["content-type"] = "application/json"
        status, answer = self._ask(method, path, content, sent)
        if status in (200, 201, 204):
            return _decoded(answer) if answer.strip() else None
        raise self._failure(status, answer)

    def rows(
        self, path: str, query: Mapping[str, object], progress: Callable[[int, int], None]
    ) -> Iterator[Row]:
        """Yield the rows of a list; `progress` is called with the rows so far and their total.

        A list with selected columns is requested as a whole, which takes the broker a hundredth of the time
        of pages, for each of which it sorts the list. A list with all columns is requested by pages, to bound
        the responses.
        """
        if query:
            with suppress(AnswerTooLong):
                answer = self.get(path, query)
                if not isinstance(answer, list):
                    raise _strange()
                yield from answer
                return
        yield from self._pages(path, query, progress)

    def _pages(
        self, path: str, query: Mapping[str, object], progress: Callable[[int, int], None]
    ) -> Iterator[Row]:
        number, count = 1, 0
        while True:
            try:
                answer = self.get(path, {**query, "page": number, "page_size": PAGE_SIZE_MAX})
            except Failure as failure:
                # Objects were deleted meanwhile: the page before was the last.
                if number > 1 and "page_out_of_range" in failure.message:
                    return
                raise
            if isinstance(answer, list):
                yield from answer
                return
            if not isinstance(answer, dict) or not {"items", "filtered_count", "page_count"} <= answer.keys():
                raise _strange()
            yield from answer["items"]
            count += len(answer["items"])
            progress(count, answer["filtered_count"])
            if number >= answer["page_count"]:
                return
            number += 1

    def _ask(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        is_anonymous: bool = False,
    ) -> tuple[int, bytes]:
        try:
            with self._client.request(
                method, f"/api{path}", content, headers, is_anonymous=is_anonymous
            ) as response:
                answer = response.read(CLI_ANSWER_SIZE_MAX + 1)
        except _ERRORS as error:
            kind = Unanswered if isinstance(error, TimeoutError) else Failure
            raise kind(self._unreached(error), UNREACHABLE) from None
        if self.once_answered is not None:
            called, self.once_answered = self.once_answered, None
            called()
        if len(answer) > CLI_ANSWER_SIZE_MAX:
            raise AnswerTooLong(
                f"the response is longer than {CLI_ANSWER_SIZE_MAX} bytes: request fewer items or columns",
                BROKEN,
            )
        return response.status, answer

    def _unreached(self, error: Exception) -> str:
        target = self.target
        where = target.origin
        if target.is_tls and (hint := refusal_hint(error, self._tls, TLS_NAMES)):
            if isinstance(error, ssl.SSLCertVerificationError):
                return f"{where}: certificate refused ({error.verify_message}); {hint}"
            return f"{where}: connection closed ({_reason(error)}); {hint}"
        if isinstance(error, ssl.SSLError | http.client.BadStatusLine):
            return f"{where}: wrong protocol; use https:// instead of http:// in --uri, or the reverse"
        if isinstance(error, TimeoutError):
            return f"{where}: no response in time; --timeout SECONDS waits longer"
        return f"{where}: cannot connect ({_reason(error)}); check that the broker is running, and --uri"

    def _failure(self, status: int, answer: bytes) -> Failure:
        words, is_named = _words(answer)
        words = words or f"status {status} without a reason"
        if status in (401, 403):
            return Failure(
                f"user {self.target.user} is not permitted: {words}; {_OTHER_USER}", NOT_AUTHORISED
            )
        if status == 404:
            return ObjectNotFound(words, is_named=is_named)
        if status == 503:
            return Failure(words, UNHEALTHY)
        if 400 <= status < 500:
            return Refused(words)
        return Failure(f"the broker failed with status {status}: {words}; see its log", BROKEN)


def filled(template: str, arguments: Mapping[str, Any]) -> str:
    """Replace `{names}` in a path by arguments, each encoded as one segment."""
    return template.format_map({name: quote(str(value), safe="") for name, value in arguments.items()})


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _decoded(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except ValueError:
        raise _strange() from None


def _strange() -> Failure:
    return Failure("the response is not from a management API: check --uri", BROKEN)


def _words(answer: bytes) -> tuple[str, bool]:
    """Return the error text of a response in one line, and whether it names the missing object.

    If the body is not JSON, only its beginning is returned.
    """
    try:
        body = json.loads(answer)
    except ValueError:
        return " ".join(answer[:200].decode("utf-8", "replace").split()), False
    if not isinstance(body, dict):
        return str(body), False
    error, reason, message = body.get("error"), body.get("reason"), body.get("message")
    if isinstance(message, str):
        return message, True
    # Text for a queue or an exchange: no queue 'q' in vhost '/'.
    is_named = error == "not_found" and isinstance(reason, str) and " " in reason
    return (str(reason).removeprefix(_CODE) if is_named else _reason_words(error, reason)), is_named


def _reason_words(error: object, reason: object) -> str:
    if not isinstance(reason, str):
        reason = json.dumps(reason) if reason is not None else ""
    return (
        reason
        if error in (None, reason, "bad_request", "not_authorised", "not_authorized")
        else f"{error}: {reason}"
    )
