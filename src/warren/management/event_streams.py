"""Responses for event streams: fetched once for all streams of a user, and bounded in their memory.

The response of a path is fetched, encoded and held once for all streams of the same user at a moment. A
stream keeps only a digest of what it has sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from aiohttp import web
from msgspec import Struct
from yarl import URL

from warren.limits_http import (
    LIVE_ASKED_AT_ONCE_MAX,
    LIVE_EVENT_SIZE_MAX,
    LIVE_SIZE_MAX,
    LIVE_STREAMS_MAX,
    LIVE_USER_SIZE_MAX,
    LIVE_USER_STREAMS_MAX,
)
from warren.management.node_requests import NODES_MISSING
from warren.management.replies import WHOLE, RequestRefused, encoded, error_reply
from warren.metadata.identity import shown_name
from warren.metadata.users import User

Fetch: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

# Streams fetch at the same moments; for this time (s) they share the response of a path.
_SHARED_S = 1.0


class _CachedEvent(Struct, frozen=True):
    """The event of a user and a path, which may still be being fetched."""

    user: User
    asked_at: float
    event: asyncio.Task[bytes]

    @property
    def size(self) -> int:
        """The size of the event in bytes; 0 until it is complete."""
        is_there = self.event.done() and not self.event.cancelled() and self.event.exception() is None
        return len(self.event.result()) if is_there else 0


class EventStreams:
    """All event streams of one HTTP port."""

    def __init__(self, ask: Fetch) -> None:
        self._ask = ask
        self._streams: dict[str, int] = {}
        self._unsent: dict[str, int] = {}
        self._answers: dict[tuple[str, str], _CachedEvent] = {}
        self._turns = asyncio.Semaphore(LIVE_ASKED_AT_ONCE_MAX)

    @contextmanager
    def open_stream(self, name: str) -> Iterator[None]:
        """Count a stream of the user `name` until the block ends; RequestRefused if there are too many."""
        if sum(self._streams.values()) >= LIVE_STREAMS_MAX:
            raise _too_many(f"there are {LIVE_STREAMS_MAX} event streams already")
        if self._streams.get(name, 0) >= LIVE_USER_STREAMS_MAX:
            raise _too_many(f"user '{shown_name(name)}' has {LIVE_USER_STREAMS_MAX} event streams already")
        _add(self._streams, name, 1)
        try:
            yield
        finally:
            _add(self._streams, name, -1)

    @contextmanager
    def reserve(self, name: str, size: int) -> Iterator[bool]:
        """True if `size` bytes may be sent to the user `name`; they are reserved until the block ends."""
        if (
            self._unsent.get(name, 0) + size > LIVE_USER_SIZE_MAX
            or sum(self._unsent.values()) + size > LIVE_SIZE_MAX
        ):
            yield False
            return
        _add(self._unsent, name, size)
        try:
            yield True
        finally:
            _add(self._unsent, name, -size)

    async def event(self, request: web.Request, user: User, path: str) -> bytes:
        """The event with the response to a GET of `path` by `user`, who made `request`."""
        now = asyncio.get_running_loop().time()
        key = (user.identity, path)
        answer = self._answers.get(key)
        if answer is None or now - answer.asked_at >= _SHARED_S or answer.user != user:
            self._forget(now)
            answer = _CachedEvent(user, now, asyncio.create_task(self._fetch(request, path)))
            self._answers.pop(key, None)
            self._answers[key] = answer
        return await asyncio.shield(answer.event)

    def _forget(self, now: float) -> None:
        """Drop old responses, and the oldest ones until the rest fit into LIVE_USER_SIZE_MAX."""
        size = 0
        for key, answer in reversed(list(self._answers.items())):
            size += answer.size
            if now - answer.asked_at >= _SHARED_S or size > LIVE_USER_SIZE_MAX:
                del self._answers[key]

    async def _fetch(self, request: web.Request, path: str) -> bytes:
        async with self._turns:
            asked = get_request(request, path)
            answer = await self._ask(asked)
        body = answer.body if isinstance(answer, web.Response) else None
        if isinstance(body, bytes) and len(body) > LIVE_EVENT_SIZE_MAX:
            reason = f"the response has {len(body)} bytes: request a page of it"
            answer = error_reply(413, "too_large", reason)
            body = answer.body
        text = body if isinstance(body, bytes) and body else b"null"
        missing = asked.get(NODES_MISSING, "")
        return format_event(path, answer.status, text, missing.split(", ") if missing else ())


def get_request(request: web.Request, path: str) -> web.Request:
    """A GET request of `path` by the user of `request`."""
    asked = request.clone(method="GET", rel_url=URL(path, encoded=True))
    asked[WHOLE] = True
    return asked


def format_event(path: str, status: int, text: bytes, missing: Sequence[str] = ()) -> bytes:
    """A response as a server-sent event, with the nodes that are `missing` from it, if there are any."""
    without = b'"nodes_missing":%b,' % encoded(missing) if missing else b""
    return b'data: {"path":%b,"status":%d,%b"body":%b}\n\n' % (encoded(path), status, without, text)


def _too_many(reason: str) -> RequestRefused:
    return RequestRefused(error_reply(503, "too_many_streams", reason))


def _add(numbers: dict[str, int], name: str, number: int) -> None:
    numbers[name] = numbers.get(name, 0) + number
    if not numbers[name]:
        del numbers[name]
