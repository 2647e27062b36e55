"""Answers that streams follow: asked once for all who follow the same, and within bounds of what waits.

What is the same for a user is asked, written and held once for all of that user's streams of a moment. A
stream remembers of what it has sent no more than a digest.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from aiohttp import web
from yarl import URL

from warren.limits_http import (
    LIVE_ASKED_AT_ONCE_MAX,
    LIVE_EVENT_SIZE_MAX,
    LIVE_SIZE_MAX,
    LIVE_STREAMS_MAX,
    LIVE_USER_SIZE_MAX,
    LIVE_USER_STREAMS_MAX,
)
from warren.management.replies import WHOLE, RequestRefused, encoded, error_reply
from warren.metadata.users import User

Fetch: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

# For so long an answer is the answer to whoever asks for the same: streams ask at the same moments.
_SHARED_S = 1.0


@dataclass(frozen=True, slots=True)
class _CachedEvent:
    """What a user was answered, or will be."""

    user: User
    asked_at: float
    event: asyncio.Task[bytes]

    @property
    def size(self) -> int:
        """Its octets, when it is there."""
        is_there = self.event.done() and not self.event.cancelled() and self.event.exception() is None
        return len(self.event.result()) if is_there else 0


class EventStreams:
    """All streams of one port."""

    def __init__(self, ask: Fetch) -> None:
        self._ask = ask
        self._streams: dict[str, int] = {}
        self._unsent: dict[str, int] = {}
        self._answers: dict[tuple[str, str], _CachedEvent] = {}
        self._turns = asyncio.Semaphore(LIVE_ASKED_AT_ONCE_MAX)

    @contextmanager
    def open_stream(self, name: str) -> Iterator[None]:
        """One more stream of the user `name`, until the block ends; Refused if that is one too many."""
        if sum(self._streams.values()) >= LIVE_STREAMS_MAX:
            raise _too_many(f"{LIVE_STREAMS_MAX} streams are followed already")
        if self._streams.get(name, 0) >= LIVE_USER_STREAMS_MAX:
            raise _too_many(f"user '{name}' follows {LIVE_USER_STREAMS_MAX} streams already")
        _add(self._streams, name, 1)
        try:
            yield
        finally:
            _add(self._streams, name, -1)

    @contextmanager
    def reserve(self, name: str, size: int) -> Iterator[bool]:
        """Whether `size` octets may be sent to a stream of `name`; they wait for it until the block ends."""
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
        """What a GET of `path` answers `user`, who made `request`."""
        now = asyncio.get_running_loop().time()
        key = (user.name, path)
        answer = self._answers.get(key)
        if answer is None or now - answer.asked_at >= _SHARED_S or answer.user != user:
            self._forget(now)
            answer = _CachedEvent(user, now, asyncio.create_task(self._fetch(request, path)))
            self._answers.pop(key, None)
            self._answers[key] = answer
        return await asyncio.shield(answer.event)

    def _forget(self, now: float) -> None:
        """Let go of answers that are old, and of the eldest as long as all are too much to hold."""
        size = 0
        for key, answer in reversed(list(self._answers.items())):
            size += answer.size
            if now - answer.asked_at >= _SHARED_S or size > LIVE_USER_SIZE_MAX:
                del self._answers[key]

    async def _fetch(self, request: web.Request, path: str) -> bytes:
        async with self._turns:
            answer = await self._ask(get_request(request, path))
        body = answer.body if isinstance(answer, web.Response) else None
        if isinstance(body, bytes) and len(body) > LIVE_EVENT_SIZE_MAX:
            reason = f"the answer has {len(body)} bytes: ask for a page of it"
            answer = error_reply(413, "too_large", reason)
            body = answer.body
        text = body if isinstance(body, bytes) and body else b"null"
        return format_event(path, answer.status, text)


def get_request(request: web.Request, path: str) -> web.Request:
    """A GET of `path` by whoever made `request`."""
    asked = request.clone(method="GET", rel_url=URL(path, encoded=True))
    asked[WHOLE] = True
    return asked


def format_event(path: str, status: int, text: bytes) -> bytes:
    """An answer as an event."""
    return b'data: {"path":%b,"status":%d,"body":%b}\n\n' % (encoded(path), status, text)


def _too_many(reason: str) -> RequestRefused:
    return RequestRefused(error_reply(503, "too_many_streams", reason))


def _add(numbers: dict[str, int], name: str, number: int) -> None:
    numbers[name] = numbers.get(name, 0) + number
    if not numbers[name]:
        del numbers[name]
